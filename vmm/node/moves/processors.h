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

/* CPUs have come or gone, or a monitor has been started. */
void processors_settle(struct node *node);

#endif
