/* barriers.h - barriers whose threads are on several hosts (base/barrier.h): tells their counts to
 * all hosts, and wakes the CPUs that wait for their sums. */
#ifndef VMM_NODE_PAGES_BARRIERS_H
#define VMM_NODE_PAGES_BARRIERS_H

#include <stdbool.h>

struct node;

/* If a CPU of this host waits for a sum, or has a count to be told to other hosts, takes that from
 * its slot.  Returns true if there was something. */
bool barriers_look_at(struct node *node, unsigned cpu);

#endif
