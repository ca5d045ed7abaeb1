/* drift.h - what a host knows of another computer's clock, and how its own follows it.  Pure.
 *
 * Each answer to "what time is it?" says for sure between which bounds the other clock is ahead: it was read after the question had
 * been sent, and before the answer came.  Bounds from before still hold, as wide as the clocks may have moved apart since; both
 * together are narrower than each.  The rates at which they may move apart are learned likewise, from bounds that are far enough
 * apart in time.  So a slow answer does no harm, and a few fast ones do.  Bounds that exclude each other say that a rate has changed
 * (somebody sets the clock), or that a computer has stood still: then all begins anew.
 */
#ifndef VMM_NODE_CLOCK_DRIFT_H
#define VMM_NODE_CLOCK_DRIFT_H

#include "base/types.h"

struct drift {
	unsigned answers;
	int64_t at_ns;		   /* by this host's clock */
	int64_t low_ns, high_ns;   /* the other one was ahead by something between these */
	double slowest, fastest;   /* and moves ahead by something between these, ns for each ns */
	struct { int64_t at_ns, low_ns, high_ns; } since; /* what the rates are judged by */
};

/* Asked, answered (by the other clock) and come. False: this excludes what was known, which is forgotten. */
bool drift_add(struct drift *drift, uint64_t asked_ns, uint64_t answered_ns, uint64_t came_ns);
/* After the first answer: by how much the other one is ahead at a moment, by how much that may be wrong, and how fast it grows. */
int64_t drift_ahead(const struct drift *drift, uint64_t now_ns);
uint64_t drift_doubt(const struct drift *drift, uint64_t now_ns);
double drift_rate(const struct drift *drift);

/* How much faster, in 2^-32, a clock must run for the next seconds that is `behind_ns` behind one that gains `rate` on its host:
 * gently enough that nobody minds. Called again every DRIFT_PERIOD_S, it gets there. */
enum { DRIFT_PERIOD_S = 2 };
int64_t drift_steer(int64_t behind_ns, double rate);

#endif
