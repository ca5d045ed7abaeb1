/* share.h - a host's share of the guest's RAM: how many pages it holds, and which leave when they
 * are too many.
 *
 * Clean copies leave first, since their owner has the page too (dsm_drop()): those that were
 * fetched longest ago, some together.  Then pages that this host owns go to other hosts (spill.h):
 * first those that another host has handed over, since nobody here has asked for them; then new
 * ones; and then settled ones, each time the one that has been so for the longest time.  The newest
 * copies and new pages stay, since CPUs wait for them.
 *
 * A page that comes is new.  New pages settle while the settled ones are less than 7/8 of the
 * share.  After that the eighth that is left is for what passes through: a program that goes
 * through more memory than the share, again and again, finds the settled pages each time.  If the
 * longest stay alone decided, it would find none.  A page that comes back before as many have left
 * as the share is settles at once, and the first of the settled ones is new again.  So if a program
 * begins to use other pages, which would fit in, they settle when they come for the second time.
 *
 * A CPU writes faster than pages leave.  So a host that is full does not fetch further pages for
 * its CPUs before others have left.  It is full a little above its share (share_most()), and until
 * enough have left that the CPUs can fetch a run at once.
 *
 * Pure bookkeeping: the page store (pagestore.c) reports what comes and goes, and asks.
 */
#ifndef VMM_NODE_PAGES_SHARE_H
#define VMM_NODE_PAGES_SHARE_H

#include "base/types.h"

enum {
	/* so many copies, and new pages, stay: twice what one CPU requests together; less if the
	 * share is small */
	SHARE_NEWEST = 1024,
	SHARE_NEW_PART = 8,  /* the part of a full share that is for new pages */
	SHARE_LATELY = 16,   /* how long ago a page has left is known in such parts of a share */
	SHARE_TOGETHER = 64, /* so many copies are dropped together, or this part of the share */
	SHARE_ABOVE = 32,    /* a host may hold this part of its share more, */
	SHARE_RUN = 129,     /* and is not full any more when so many pages less are here, */
	SHARE_RUN_PART = 64, /* or this part of its share, if that is less */
};

struct share;

/* Makes the lists for `n_pages` of guest RAM, of which this host may hold `limit`.  Dies without
 * memory. */
struct share *share_new(uint32_t n_pages, uint32_t limit);
void share_free(struct share *share);

/* Pages are here from the start, and owned. */
void share_loaded(struct share *share, gfn_t first, uint32_t count);
/* A page has arrived that this host owns. */
void share_came(struct share *share, gfn_t gfn);
/* A copy has arrived; it is the newest. */
void share_came_copy(struct share *share, gfn_t gfn);
/* The copy is owned here now, or will be soon.  Nothing happens if it is no copy. */
void share_owned(struct share *share, gfn_t gfn);
/* The page has left. */
void share_went(struct share *share, gfn_t gfn);

/* Another host hands the page over.  A CPU of this host wants it: it is one like others. */
void share_adopts(struct share *share, gfn_t gfn);
void share_wanted(struct share *share, gfn_t gfn);
bool share_adopted(const struct share *share, gfn_t gfn); /* and has not come yet */

/* The owned page is offered to another host.  It stays after all, and is the first to go; or it is
 * the newest, since it cannot go now. */
void share_offers(struct share *share, gfn_t gfn);
void share_stays(struct share *share, gfn_t gfn);
void share_renew(struct share *share, gfn_t gfn);
bool share_is_offered(const struct share *share, gfn_t gfn);
uint32_t share_offered(const struct share *share); /* number of pages */

/* Returns how many copies to drop, and which, the first to go first: none if the host holds no more
 * pages than its share, else some more than that, since neighbours cost less together. */
unsigned share_excess(const struct share *share, gfn_t gfn[SHARE_TOGETHER]);
/* Returns true, and the owned page to offer first, if the host holds more than its share and
 * dropping copies and what was offered do not suffice. */
bool share_spills(const struct share *share, gfn_t *gfn);
/* Returns whether no further page may be fetched.  `coming`: the pages that were requested. */
bool share_full(struct share *share, uint32_t coming);

uint32_t share_limit(const struct share *share);
/* How much a host with that share may hold. */
uint32_t share_most(uint32_t limit);
uint32_t share_held(const struct share *share);
uint32_t share_held_most(const struct share *share); /* since the start */
/* What would be left if this host dropped all copies that it may drop. */
uint32_t share_kept(const struct share *share);

#endif
