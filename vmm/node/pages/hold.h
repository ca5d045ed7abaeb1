/* hold.h - how long a page that has come to this host stays before it goes to the next: pure decisions on what happened to
 * it of late.  The page store (pagestore.c) tells what happens and asks; the page protocol bounds the whole
 * (DSM_HOLD_MAX_US).
 *
 * A page that has just come is not taken before the CPU that asked for it has run with it.  Between two writers it stays a
 * short time longer, so that both get something done.
 */
#ifndef VMM_NODE_PAGES_HOLD_H
#define VMM_NODE_PAGES_HOLD_H

#include "base/hostshm.h"
#include "base/types.h"

enum {
	HOLD_RUN_MAX_US = 2000, /* so long the asking CPU may take until it has run with the page */
	HOLD_INSN_US = 20,	/* and so long for the instruction that needed it, */
	HOLD_SECTION_US = 30,	/* or for a short critical section, if it may write: less than the next request takes to come */
	HOLD_MIN_US = 100,	/* between two writers it stays for so long ... */
	HOLD_MAX_US = 400,	/* ... up to so long, if it goes to and fro */
	PING_PONG_US = 2000,	/* back within this time of being taken: it goes to and fro */
	HOLD_POLL_US = 50,
};

/* What happened to one page. All zero: nothing known. Times are ns of one clock that does not go back. */
struct page_hold {
	uint32_t gfn_plus_1;
	uint32_t writer_us; /* how long it stays between two writers */
	uint64_t came_ns;
	uint64_t went_ns; /* 0: not since it came */
	uint64_t used_ns; /* since then it is used; 0: not yet */
};

/* The page has come, or the right to write to it. What was known of another page is forgotten. */
void hold_arrived(struct page_hold *hold, gfn_t gfn, uint64_t now_ns);

/* The page has gone; of another page than `hold`'s nothing is kept. */
void hold_went(struct page_hold *hold, gfn_t gfn, uint64_t now_ns);

/* Another host wants the page, which leaves this one with `left` (PAGE_NONE or PAGE_READ): 0 when it may go, else after
 * how many microseconds to ask again. `has`: this host's right. `awaited`: a local CPU asked for it and has not run yet. */
uint32_t hold_us(struct page_hold *hold, gfn_t gfn, enum page_right has, enum page_right left, bool awaited, uint64_t now_ns);

#endif
