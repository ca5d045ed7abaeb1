/* clock.h - the hosts' clocks, where they are several computers': each host knows how far node 0's is ahead of its own.
 *
 * It asks node 0 for the time, some times one after the other; the answer that took least counts, and half of what it took is
 * the most that it can be wrong.  So a guest that reads the clock, lets another processor know, and hears what that one's says, finds
 * no time that lies before its own: the message took at least as long.
 */
#ifndef VMM_CLUSTER_CLOCK_H
#define VMM_CLUSTER_CLOCK_H

#include "vmm/node.h"

/* The best of some answers. Pure. */
struct clock_guess { uint64_t took_ns; int64_t ahead_ns; unsigned answers; };

static inline void clock_guess_add(struct clock_guess *guess, uint64_t sent_ns, uint64_t answered_ns, uint64_t came_ns)
{
	uint64_t took = came_ns - sent_ns;

	if (!guess->answers++ || took < guess->took_ns) {
		guess->took_ns = took;
		guess->ahead_ns = (int64_t)(answered_ns - (sent_ns + took / 2));
	}
}

void clock_start(struct node *node);
/* Called when all other daemons are reached: true once this host knows; node_check_ready() is called then. */
bool clock_known(struct node *node);
/* A moment of node 0's clock by this host's; the same where all hosts are on one computer. */
uint64_t clock_here(const struct node *node, uint64_t node0_ns);

#endif
