/* share.h - a host's share of the guest's RAM: how many pages it holds, and which clean copies go when they are too many.
 *
 * Only copies may go, since their owner has the page too (dsm_drop()); what this host owns stays whatever the share is.  The
 * copy that was fetched longest ago goes first; the newest SHARE_NEWEST stay, since CPUs wait for them.  Pure book-keeping:
 * the page store (pagestore.c) tells what comes and goes, and asks.
 */
#ifndef VMM_NODE_PAGES_SHARE_H
#define VMM_NODE_PAGES_SHARE_H

#include "base/types.h"

enum { SHARE_NEWEST = 256 };

struct share;

/* For `n_pages` of guest RAM, of which this host may hold `limit` before copies go; dies when there is no memory. */
struct share *share_new(uint32_t n_pages, uint32_t limit);
void share_free(struct share *share);

/* `count` pages have come that no list names: the host owns them. */
void share_came(struct share *share, uint32_t count);
/* A copy has come: the newest. */
void share_came_copy(struct share *share, gfn_t gfn);
/* The page is no copy any more: it is owned here, or will be. It need not have been one. */
void share_owned(struct share *share, gfn_t gfn);
/* The page has gone. */
void share_went(struct share *share, gfn_t gfn);

/* True: more pages than the share, and `*gfn` is the copy that shall go first. */
bool share_excess(const struct share *share, gfn_t *gfn);

#endif
