/* processors.h - which of this host's processors each of its CPUs has, and whether a CPU may spin
 * while it waits for another one.
 *
 * A monitor and its VM processes hand over to each other thousands of times a second.  On one
 * processor a stop costs 4-11 us, across two 50-64 us.  So each CPU has one of the processors that
 * the daemon may use, and CPUs share a processor only if there are more CPUs than processors.  Then
 * spinning is useless: the CPU that is waited for may need the processor (VMP_CPU_SPINS).
 */
#ifndef VMM_NODE_MOVES_PROCESSORS_H
#define VMM_NODE_MOVES_PROCESSORS_H

#include "base/limits.h"
#include "base/types.h"

struct child;
struct node;

/* Sets a processor, by its index among the allowed ones, for each of `cpus` (a bit set).  CPU n
 * gets processor n if that is free, since hosts on one computer do not know of each other.  Returns
 * true if some share one.  Pure. */
bool processors_deal(uint32_t cpus, unsigned processors, uint16_t processor[MAX_CPUS]);

/* Whether there are as many CPUs as processors (EXACT), fewer (SPARE) or more (CROWDED).  The CPUs
 * are those of this host, or of all hosts that are on this computer. */
enum processors_room { PROCESSORS_SPARE, PROCESSORS_EXACT, PROCESSORS_CROWDED };

/* Compares the number of the machine's CPUs that share `processors` processors.  Pure. */
enum processors_room processors_room(unsigned cpus, unsigned processors);

void processors_start(struct node *node);

/* Returns the number of processors that the daemon may use. */
uint32_t processors_count(const struct node *node);

/* CPUs have arrived or left, or a monitor was started.  If each processor has its CPU, the daemon
 * stays on the processors of its own CPUs, and runs there while a CPU waits. */
void processors_settle(struct node *node);

/* Around a fork of the daemon.  A monitor is bound from its first moment to the processor that its
 * CPU will have: a VM process that it starts before it is bound would stay unbound.  Other children
 * may use all processors that the daemon was given.  No child sets that itself: it would undo what
 * the daemon has bound it to.  The numbers of the VM processes that the CPU had here are
 * forgotten. */
void processors_before_fork(const struct node *node, const struct child *child);
void processors_after_fork(const struct node *node);

/* Returns the CPUs of this host (a bit set) that use the processor on which the caller runs.
 * `others` is 0 if no other host's CPU can use it. */
uint32_t processors_users(const struct node *node, unsigned *others);

#endif
