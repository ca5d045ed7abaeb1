/* poll.h - the daemon's event loop.  It sleeps until something happens, as any does; but while its own CPUs wait for pages it looks
 * again and again, for a while.
 *
 * To be woken is what a page costs: 20 to 50 us at each end, against 15 for a round trip between two that look.  The processor of a
 * CPU that waits has nothing else to do; every other one has.  (TRICKS: poll-where-nothing-runs)
 */
#ifndef VMM_NODE_POLL_H
#define VMM_NODE_POLL_H

#include "base/types.h"

struct node;

enum { POLL_US = 300 }; /* so long after the last page message, or the last request of a CPU: most answers have come by then */

/* What there is to gain, and who else could use the processor on which the daemon runs. */
struct poll_view {
	bool awaited;	 /* some CPU of this host waits for a page, wherever */
	unsigned halted; /* CPUs on this processor that have nothing to do: what comes for another host is served sooner */
	unsigned busy;	 /* CPUs on this processor that neither wait nor are halted, of this host or another one */
	uint64_t quiet_ns; /* since the last page message or request */
};

/* Pure. */
bool poll_pays(const struct poll_view *view);

/* A CPU has asked for a page, or a message of the page protocol has come. */
void poll_note(struct node *node);

/* Until event_base_loopbreak(). */
void poll_loop(struct node *node);

#endif
