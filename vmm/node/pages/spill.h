/* spill.h - keeps this host to its share of the guest's RAM (share.h): drops copies, hands pages
 * that it owns over to hosts with room (room.h), and lets its CPUs wait for further pages until
 * others have left.
 *
 * A host offers some pages at once, by dsm_handover(), each to the host that is its home, if that
 * has room, or to the one with the most.  The host that is to take one may have filled up
 * meanwhile: then it refuses it, says what it holds (MSG_PAGE_ROOM), and the owner chooses again.
 *
 * A CPU never waits for ever.  Its want is served though the host is full
 *  - if no host has room: then this host holds more than its share, and one warning says so;
 *  - while a snapshot is cut: the machine is to stand still, so CPUs must stop, and no page may be
 *    in flight;
 *  - on a host that leaves: all its pages go;
 *  - if no page has left for SPILL_PATIENCE_MS.
 */
#ifndef VMM_NODE_PAGES_SPILL_H
#define VMM_NODE_PAGES_SPILL_H

#include "base/types.h"

enum {
	SPILL_WINDOW = 64, /* pages that are offered and still here, at most */
	SPILL_NEWS_MS = 20, /* no host has room: news of it may be on its way for so long */
	SPILL_PATIENCE_MS = 500,
};

struct node;

void spill_start(struct node *node);
void spill_end(struct node *node); /* does nothing if it was not started */

/* Something has come, or a CPU wants something: does what is to be done now. */
void spill_step(struct node *node);

/* A CPU wants the page since `since_ns`: returns whether the page may be requested now.  If not,
 * spill_step() asks again, for each want that waits (wants.h). */
bool spill_lets(struct node *node, gfn_t gfn, uint64_t since_ns);
void spill_fetches(struct node *node, gfn_t gfn); /* it is requested now, for a CPU */
/* The same for a page that no CPU waits for. */
bool spill_lets_ahead(struct node *node, gfn_t gfn);

/* Host `owner` hands the page over.  Returns whether this host takes it; `must`: it has to. */
bool spill_adopts(struct node *node, gfn_t gfn, unsigned owner, bool must);

/* Returns whether this host holds nearly all of its share.  Then a copy costs less than a page that
 * it would own, since it is dropped; so what is only read is not requested to write to. */
bool spill_is_near(const struct node *node);

struct spill_counts {
	uint64_t spills; /* owned pages that have left */
	uint64_t refused; /* offers that another host refused */
	uint64_t excused; /* pages that were requested for a CPU though this host was full */
	uint64_t forced;  /* pages of hosts that leave */
};
struct spill_counts spill_counts(const struct node *node);

#endif
