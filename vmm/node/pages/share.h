/* share.h - a host's share of the guest's RAM: how many pages it holds, and which clean copies it
 * drops when they are too many.
 *
 * Only copies may be dropped, since their owner has the page too (dsm_drop()).  What this host owns
 * stays, whatever the share is.  The copy that was fetched longest ago goes first; the newest
 * SHARE_NEWEST stay, since CPUs wait for them.  Pure bookkeeping: the page store (pagestore.c)
 * reports what comes and goes, and asks.
 */
#ifndef VMM_NODE_PAGES_SHARE_H
#define VMM_NODE_PAGES_SHARE_H

#include "base/types.h"

enum { SHARE_NEWEST = 256 };

struct share;

/* Makes the list for `n_pages` of guest RAM, of which this host may hold `limit` before copies are
 * dropped.  Dies without memory. */
struct share *share_new(uint32_t n_pages, uint32_t limit);
void share_free(struct share *share);

/* `count` pages have arrived that the list of copies does not contain: the host owns them. */
void share_came(struct share *share, uint32_t count);
/* A copy has arrived; it is the newest. */
void share_came_copy(struct share *share, gfn_t gfn);
/* The page is owned here, or will be: it is no longer a copy.  It need not have been one. */
void share_owned(struct share *share, gfn_t gfn);
/* The page has left. */
void share_went(struct share *share, gfn_t gfn);

/* Returns true, and the copy to drop first, if the host holds more pages than its share. */
bool share_excess(const struct share *share, gfn_t *gfn);

#endif
