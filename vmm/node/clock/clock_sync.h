/* clock_sync.h - the hosts' clocks, where they are several computers': each host's clock of the machine follows node 0's.
 *
 * It asks node 0 for the time, some times before the machine starts, and a few times every two seconds from then on (drift.h says
 * what follows from the answers), and lets its own (base/hostclock.h) run a little faster or slower.  Half of the shortest round
 * trip is the most that it is wrong by.  So a guest that reads the clock, lets another processor know, and hears what that one's
 * says, finds no time that lies before its own: the message took at least as long.
 */
#ifndef VMM_NODE_CLOCK_CLOCK_SYNC_H
#define VMM_NODE_CLOCK_CLOCK_SYNC_H

#include "vmm/node/node.h"

void clock_start(struct node *node);
/* Called when all other daemons are reached: true once this host knows; node_check_ready() is called then. */
bool clock_known(struct node *node);
/* The machine's clock begins, or has begun, at this moment of node 0's. */
void clock_begin(struct node *node, uint64_t start_ns);

#endif
