/* drift.h - what a host knows about another computer's clock, and how its own clock follows it.
 * Pure.
 *
 * An answer to "what time is it?" gives sure bounds for how far the other clock is ahead: it was
 * read after the question was sent, and before the answer arrived.  Earlier bounds still hold,
 * widened by as much as the clocks may have drifted apart since; the intersection is narrower than
 * both.  The rates at which the clocks may drift apart are learned in the same way, from bounds
 * that are far enough apart in time.  So a slow answer does no harm, and a few fast ones are
 * enough.  If bounds exclude each other, a rate has changed (somebody has set a clock) or a
 * computer has stood still; then everything begins anew.
 */
#ifndef VMM_NODE_CLOCK_DRIFT_H
#define VMM_NODE_CLOCK_DRIFT_H

#include "base/types.h"

struct drift {
	unsigned answers;
	int64_t at_ns;		   /* by this host's clock */
	int64_t low_ns, high_ns;   /* the other clock was ahead by a value in this range */
	double slowest, fastest;   /* and gains a value in this range, in ns for each ns */
	/* the bounds from which the rates are derived */
	struct { int64_t at_ns, low_ns, high_ns; } since;
};

/* Takes an answer: when it was asked (own clock), answered (other clock) and received (own clock).
 * Returns false if it contradicts what was known, which is then forgotten. */
bool drift_add(struct drift *drift, uint64_t asked_ns, uint64_t answered_ns, uint64_t came_ns);
/* After the first answer.  Return how far the other clock is ahead at a time, how large the error
 * may be, and how fast it gains. */
int64_t drift_ahead(const struct drift *drift, uint64_t now_ns);
uint64_t drift_doubt(const struct drift *drift, uint64_t now_ns);
double drift_rate(const struct drift *drift);

/* Returns how much faster, in 2^-32, a clock must run in the next seconds.  It is `behind_ns`
 * behind a clock that gains `rate` on its host.  The correction is slow enough that no program
 * notices.  Called again every DRIFT_PERIOD_S, it converges. */
enum { DRIFT_PERIOD_S = 2 };
int64_t drift_steer(int64_t behind_ns, double rate);

#endif
