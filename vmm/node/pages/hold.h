/* hold.h - how long a page that has arrived on this host stays before it goes to the next: pure
 * decisions from the page's recent history.  The page store (pagestore.c) reports events and asks;
 * the page protocol limits the total (DSM_HOLD_MAX_US).
 *
 * A page that has just arrived is not taken before the CPU that asked for it has run with it.
 * Between two writers it stays a short time longer, so that both make progress.  While the page's
 * CPU computes, a longer hold is better, since each return of the page costs a round trip.  It is
 * not once that CPU waits at a lock or a barrier, since its next request comes only after that
 * wait.  A locked instruction that misses its page reports that (vcpu/locked.h), and ends the holds
 * of its host; the page that it needs is not held for long either.  A CPU that waits in a loop ends
 * them too (spin.h).
 */
#ifndef VMM_NODE_PAGES_HOLD_H
#define VMM_NODE_PAGES_HOLD_H

#include "base/hostshm.h"
#include "base/types.h"

enum {
	HOLD_RUN_MAX_US = 2000, /* limit for the requesting CPU to run with the page */
	HOLD_INSN_US = 20,	/* the time for the instruction that needed the page; */
	/* or, if the CPU may write, for a short critical section: shorter than the time until the
	 * next request */
	HOLD_SECTION_US = 30,
	HOLD_POLL_US = 50,
};

/* Between two writers a page stays for `min_us`, doubled up to `max_us` each time that it is back
 * within `soon_us`. */
struct hold_lengths { uint32_t min_us, max_us, soon_us; };
/* `end`: whether locked instructions end holds. */
const struct hold_lengths *hold_lengths(bool end);

/* The history of one page.  All zero: nothing is known.  Times are ns of one clock that never goes
 * back. */
struct page_hold {
	uint32_t gfn_plus_1;
	uint32_t writer_us; /* how long it stays between two writers */
	uint64_t came_ns;
	uint64_t went_ns; /* 0: it has not left since it arrived */
	uint64_t used_ns; /* since when it has been used; 0: not yet */
	bool locked;	  /* it came for a locked instruction: a lock or a counter is in it */
};

/* The page, or the right to write to it, has arrived.  `locked`: a locked instruction waits for it.
 * The history of another page is dropped. */
void hold_arrived(struct page_hold *hold, gfn_t gfn, const struct hold_lengths *lengths,
		  bool locked, uint64_t now_ns);

/* The page has gone.  Does nothing if `hold` is another page's. */
void hold_went(struct page_hold *hold, gfn_t gfn, uint64_t now_ns);

/* Another host wants the page, and this one would keep `left` (PAGE_NONE or PAGE_READ).  `has` is
 * this host's right.  `awaited`: a local CPU asked for the page and has not run yet.  `synced_ns`:
 * when a locked instruction last ended all holds of this host; 0: never.  Returns 0 if the page may
 * go, otherwise after how many microseconds to ask again. */
uint32_t hold_us(struct page_hold *hold, gfn_t gfn, enum page_right has, enum page_right left,
		 bool awaited, uint64_t synced_ns, uint64_t now_ns);

/* The same without MECHANISM_HOLD: the page may go as soon as the CPU that asked for it has run one
 * instruction, so that each request makes progress. */
uint32_t hold_one_us(struct page_hold *hold, gfn_t gfn, bool awaited, uint64_t now_ns);

#endif
