/* hold.h - how long a page that has arrived on this host stays before it goes to the next: pure
 * decisions from the page's recent history.  The page store (pagestore.c) reports events and asks;
 * the page protocol limits the total (DSM_HOLD_MAX_US).
 *
 * A page that has just arrived is not taken before the CPU that asked for it has run with it.
 * Between two writers it stays a short time longer, so that both make progress.
 */
#ifndef VMM_NODE_PAGES_HOLD_H
#define VMM_NODE_PAGES_HOLD_H

#include "base/hostshm.h"
#include "base/types.h"

enum {
	HOLD_RUN_MAX_US = 2000, /* limit for the requesting CPU to run with the page */
	HOLD_INSN_US = 20,	/* and the time for the instruction that needed it, */
	/* or for a short critical section, if the CPU may write: shorter than the time until the
	 * next request */
	HOLD_SECTION_US = 30,
	HOLD_MIN_US = 100,	/* between two writers it stays for so long ... */
	HOLD_MAX_US = 400,	/* ... up to so long, if it keeps coming back */
	PING_PONG_US = 2000,	/* a page that is back within this time keeps coming back */
	HOLD_POLL_US = 50,
};

/* The history of one page.  All zero: nothing is known.  Times are ns of one clock that never goes
 * back. */
struct page_hold {
	uint32_t gfn_plus_1;
	uint32_t writer_us; /* how long it stays between two writers */
	uint64_t came_ns;
	uint64_t went_ns; /* 0: not since it arrived */
	uint64_t used_ns; /* since when it has been used; 0: not yet */
};

/* The page, or the right to write to it, has arrived.  The history of another page is dropped. */
void hold_arrived(struct page_hold *hold, gfn_t gfn, uint64_t now_ns);

/* The page has gone.  Does nothing if `hold` is another page's. */
void hold_went(struct page_hold *hold, gfn_t gfn, uint64_t now_ns);

/* Another host wants the page, and this one would keep `left` (PAGE_NONE or PAGE_READ).  `has` is
 * this host's right.  `awaited`: a local CPU asked for the page and has not run yet.  Returns 0 if
 * the page may go, otherwise after how many microseconds to ask again. */
uint32_t hold_us(struct page_hold *hold, gfn_t gfn, enum page_right has, enum page_right left,
		 bool awaited, uint64_t now_ns);

/* The same without MECHANISM_HOLD: the page may go as soon as the CPU that asked for it has run one
 * instruction, so that each request makes progress. */
uint32_t hold_one_us(struct page_hold *hold, gfn_t gfn, bool awaited, uint64_t now_ns);

#endif
