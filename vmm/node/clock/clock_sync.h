/* clock_sync.h - the clocks of hosts on different computers: each host's clock of the machine
 * follows node 0's.
 *
 * A host asks node 0 for the time, some times before the machine starts, and a few times every two
 * seconds from then on (drift.h says what follows from the answers).  It then lets its own clock
 * (base/hostclock.h) run a little faster or slower.  The error is at most half of the shortest
 * round trip.  So if a guest reads the clock on one processor, sends a message to another one and
 * reads the clock there, the second time is not before the first: the message took at least as
 * long.
 */
#ifndef VMM_NODE_CLOCK_CLOCK_SYNC_H
#define VMM_NODE_CLOCK_CLOCK_SYNC_H

#include "vmm/node/node.h"

void clock_start(struct node *node);
/* Called when all other daemons are connected.  Returns true if this host knows node 0's clock;
 * otherwise node_check_ready() is called when it does. */
bool clock_known(struct node *node);
/* Starts the machine's clock, which begins at this time of node 0's clock. */
void clock_begin(struct node *node, uint64_t start_ns);

#endif
