/* both.h - which pages this host requests to write to although a CPU only reads them, and when.
 *
 * Threads that hand a word to and fro read a page until the word has changed, and then write to it:
 * two fetches for a handover, the copy and then the right.  A page that was used so is requested
 * with both rights at once.
 *
 * The thread that waits reads the page again as soon as it has left.  If its request came before
 * the other host's thread has written, it would take the page from the one that it waits for.  So
 * the request leaves `away_us` after the page did; meanwhile the daemon polls.  That time is
 * learned for each page: a request was too early if the page comes back as it left, or if the other
 * host has held it.  A page for which the time becomes too long is requested as before.
 *
 * A page that is requested ahead counts as read, too: where two threads' parts of an array meet, it
 * comes with a run of pages that are read, and goes after the writes.
 *
 * To the page protocol these are ordinary requests to write.  One struct both is the history of a
 * page on this host; all zero: nothing is known.  Times are ns of one clock that never goes back.
 * Pure.
 */
#ifndef VMM_NODE_PAGES_BOTH_H
#define VMM_NODE_PAGES_BOTH_H

#include "base/types.h"

enum {
	BOTH_PAIRS = 2,	      /* so many reads that were followed by a write turn it on; */
	BOTH_MOST_PAIRS = 64, /* four times as many each time that it did not pay, up to this */
	BOTH_SPARE_PAIRS = 2, /* so many pages more may come in vain before it is off */
	BOTH_AWAY_US = 40,    /* at first */
	BOTH_AWAY_MIN_US = 10,
	BOTH_AWAY_MAX_US = 80, /* longer than this does not pay */
	BOTH_EARLY_US = 8,     /* added after a request that was too early; others subtract 1 */
	BOTH_HELD_US = 20,     /* a request that takes so much longer than others was held */
};

struct both {
	uint32_t gfn_plus_1;
	bool has_read; /* a CPU has read the page, and none of this host has written to it since */
	bool at_once;  /* it was requested to write when a CPU read it */
	uint8_t pairs, needs; /* it is on while pairs >= needs */
	uint16_t away_us;
	uint32_t fast_us; /* how long a request takes that is not held */
	uint32_t came_sum, left_sum; /* of the contents; 0: not known */
	uint64_t left_ns, sent_ns;
};

/* A CPU misses the page with this right.  Returns the right to request. */
enum page_right both_missed(struct both *both, gfn_t gfn, enum page_right right);

/* The page is requested ahead, for a CPU that will probably need it with this right.  Returns the
 * right to request. */
enum page_right both_ahead(struct both *both, gfn_t gfn, enum page_right right);

/* Returns the time at which the request should leave: now_ns or later. */
uint64_t both_leaves_ns(const struct both *both, uint64_t now_ns);

/* The request has left. */
void both_sent(struct both *both, uint64_t now_ns);

/* Returns whether the page is requested to write to when it is read. */
bool both_is_on(const struct both *both, gfn_t gfn);

/* Return whether both_came() must be called when the page comes, and whether both_left() needs the
 * sum of its contents, which costs a third of a microsecond. */
bool both_expects(const struct both *both, gfn_t gfn);
bool both_compares(const struct both *both, gfn_t gfn);

void both_came(struct both *both, uint32_t sum, uint64_t now_ns);

/* The page leaves, or its right to write does (`left`).  `sum` is 0 if it is not needed or
 * not known. */
void both_left(struct both *both, gfn_t gfn, enum page_right left, uint32_t sum, uint64_t now_ns);

#endif
