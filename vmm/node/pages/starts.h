/* starts.h - pages that a CPU needs while it starts: the kernel's text, and variables that are
 * seldom written to.
 *
 * The host whose CPU starts the others owns most of them.  It notes which pages it gives copies of
 * to the host where it has started a CPU last.  When it starts a CPU on another host, it names to
 * that host those of which the one before still has its copy.  That host requests them together
 * (starts_on_pages()), instead of one at a time as its CPU misses them.
 */
#ifndef VMM_NODE_PAGES_STARTS_H
#define VMM_NODE_PAGES_STARTS_H

#include "base/limits.h"
#include "base/types.h"

struct node;

enum { STARTS_MOST = 512 };

struct starts {
	bool started; /* a CPU was started on another host */
	unsigned host; /* where that was last */
	uint32_t n;
	gfn_t gfn[STARTS_MOST]; /* pages of which that host got copies, in this order */
};

/* A CPU is about to start on that host: names pages to it. */
void starts_name(struct node *node, unsigned host);

/* ---- pure ---- */

/* A copy was sent to `host`: notes it, if a CPU has started there last. */
void starts_note(struct starts *starts, unsigned host, gfn_t gfn);
/* A CPU starts on `host`.  copies(ctx, gfn) returns the bit set of hosts with copies of a page.
 * Stores the pages to be named, and returns how many.  From now on copies for that host are
 * noted. */
uint32_t starts_choose(struct starts *starts, unsigned host,
		       uint32_t (*copies)(const void *ctx, gfn_t gfn), const void *ctx,
		       gfn_t named[STARTS_MOST]);

#endif
