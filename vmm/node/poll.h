/* poll.h - the daemon's event loop.  It sleeps until an event arrives.  While its own CPUs wait
 * for pages it polls instead, for a limited time.
 *
 * Most of a page's price is waking up: 20 to 50 us at each end, against 15 for a round trip
 * between two daemons that poll.  The processor of a waiting CPU is otherwise idle; every other
 * processor is in use.  (TRICKS: poll-where-nothing-runs)
 */
#ifndef VMM_NODE_POLL_H
#define VMM_NODE_POLL_H

#include "base/types.h"

struct node;

/* the daemon polls for so long after the last page message or request of a CPU: most answers have
 * come by then */
enum { POLL_US = 300 };

/* What polling can gain, and who else could use the processor on which the daemon runs. */
struct poll_view {
	bool awaited;	 /* some CPU of this host waits for a page, wherever */
	/* CPUs on this processor that have nothing to do; with polling, messages for another host's
	 * CPU are served sooner */
	unsigned halted;
	/* CPUs on this processor that neither wait nor are halted, of this host or another one */
	unsigned busy;
	uint64_t quiet_ns; /* since the last page message or request */
};

/* Returns whether polling is worth its time.  Pure. */
bool poll_pays(const struct poll_view *view);

/* A CPU has asked for a page, or a message of the page protocol has come. */
void poll_note(struct node *node);

/* Runs the loop until loop_stop(). */
void poll_loop(struct node *node);

#endif
