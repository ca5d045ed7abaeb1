/* processors.h - which of this host's processors each of its CPUs has, and whether who waits for another CPU may spin.
 *
 * A monitor and its VM processes hand over to each other thousands of times a second: on one processor a stop costs 4-11 us,
 * across two 50-64 us.  So each CPU has one of the processors that we are allowed, and two of them share one only where there are
 * more CPUs than processors.  There, who waits spins for nothing: what it waits for may need the processor (VMP_CPU_SPINS).
 */
#ifndef VMM_NODE_MOVES_PROCESSORS_H
#define VMM_NODE_MOVES_PROCESSORS_H

#include "base/limits.h"
#include "base/types.h"

struct node;

/* A processor, by its place among the allowed ones, for each of `cpus` (a bit set).  Where it is free, CPU n has
 * processor n: hosts on one computer do not know of each other.  True: some share. Pure. */
bool processors_deal(uint32_t cpus, unsigned processors, uint16_t processor[MAX_CPUS]);

/* Whether there are as many CPUs as processors, fewer or more: of this host, or of all hosts that are on this computer. */
enum processors_room { PROCESSORS_SPARE, PROCESSORS_EXACT, PROCESSORS_CROWDED };

/* `cpus`: as many of the machine's CPUs as share `processors`. Pure. */
enum processors_room processors_room(unsigned cpus, unsigned processors);

void processors_start(struct node *node);

/* CPUs have come or gone, or a monitor has been started.  Where each processor has its CPU the daemon stays on those of its own:
 * there it may take what a CPU leaves that waits. */
void processors_settle(struct node *node);

/* In a child of the daemon, before it is bound anywhere: it may use all processors that the daemon was given. */
void processors_child(const struct node *node);

/* The CPUs of this host (a bit set) that use the processor on which the caller runs.  `others`: 0, or not if another host's
 * may. */
uint32_t processors_users(const struct node *node, unsigned *others);

#endif
