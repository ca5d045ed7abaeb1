/* ahead.h - which pages to fetch before they are asked for: runs of read misses, seen and continued.
 *
 * Pure decisions on the frames that local CPUs miss, called by dsm.c.  Misses of three pages one after the other,
 * upwards or downwards, make a run; what comes next is then asked for at once, first AHEAD_FIRST pages, twice as many each time
 * that the run has used up half, AHEAD_MOST at most.  Other misses come between (several CPUs, the guest kernel's pages), so a
 * few runs are remembered, the least recently used one is forgotten.
 */
#ifndef DSM_AHEAD_H
#define DSM_AHEAD_H

#include "base/types.h"

enum { AHEAD_RUNS = 8, AHEAD_MISSES = 3, AHEAD_FIRST = 4, AHEAD_MOST = 16 };

/* All zero: no runs. */
struct ahead {
	struct ahead_run {
		int64_t last;	 /* the frame that was missed last */
		int64_t end;	 /* the first one beyond those asked for; n_pages or -1 beyond all */
		int step;	 /* 1, -1, or 0: one page is no run yet */
		uint32_t window; /* pages that were asked for together, 0 at first */
		uint32_t length; /* misses in it */
		uint32_t used;	 /* `misses` then; 0: none */
	} run[AHEAD_RUNS];
	uint32_t misses;
};

/* Pages to ask for: first, first + step, ..., `count` of them. */
struct ahead_pages {
	gfn_t first;
	int step;
	uint32_t count;
};

/* A CPU misses `gfn`, or waits for it since it was fetched ahead and is not here yet. The host has `n_pages`. */
struct ahead_pages ahead_on_miss(struct ahead *ahead, gfn_t gfn, uint32_t n_pages);

#endif
