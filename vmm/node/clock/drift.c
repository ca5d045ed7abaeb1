/* drift.c - see drift.h. */
#include "vmm/node/clock/drift.h"

#define MOST 1e-3     /* no two computers' clocks drift apart faster, unless a clock is set */
#define CHANGE 1e-4   /* their rates seldom change by more */
#define WANDER 5e-11  /* by how much a rate may change in a second, for example by warming up */
#define SECOND 1e9
#define JUDGE_AFTER (SECOND / 5)

enum { JUDGE_ANEW_S = 60, SETTLE_S = 4 * DRIFT_PERIOD_S };

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

static void advance(struct drift *d, int64_t now_ns)
{
	double passed = (double)(now_ns - d->at_ns), wander = passed / SECOND * WANDER;

	d->low_ns += (int64_t)(d->slowest * passed) - 1;
	d->high_ns += (int64_t)(d->fastest * passed) + 1;
	d->slowest = most(d->slowest - wander, -MOST);
	d->fastest = least(d->fastest + wander, MOST);
	d->at_ns = now_ns;
}

static void begin_judging(struct drift *d)
{
	d->since.at_ns = d->at_ns;
	d->since.low_ns = d->low_ns;
	d->since.high_ns = d->high_ns;
}

static void judge(struct drift *d)
{
	double passed = (double)(d->at_ns - d->since.at_ns);

	if (2 * (d->high_ns - d->low_ns) < d->since.high_ns - d->since.low_ns)
		return begin_judging(d); /* for example, the first answer was slow */
	if (passed < JUDGE_AFTER)
		return;
	d->slowest = most(d->slowest, (double)(d->low_ns - d->since.high_ns) / passed);
	d->fastest = least(d->fastest, (double)(d->high_ns - d->since.low_ns) / passed);
	if (d->slowest > d->fastest) {
		d->slowest = -MOST;
		d->fastest = MOST;
		begin_judging(d);
	} else if (passed > JUDGE_ANEW_S * SECOND) {
		begin_judging(d);
	}
}

static void begin(struct drift *d, int64_t now_ns, int64_t low_ns, int64_t high_ns, double slowest,
		  double fastest)
{
	d->at_ns = now_ns;
	d->low_ns = low_ns;
	d->high_ns = high_ns;
	d->slowest = most(slowest, -MOST);
	d->fastest = least(fastest, MOST);
	begin_judging(d);
}

/* (TRICKS: clock-bounds) */
bool drift_add(struct drift *d, uint64_t asked_ns, uint64_t answered_ns, uint64_t came_ns)
{
	int64_t apart_ns = (int64_t)((double)(came_ns - asked_ns) * MOST) + 1;
	int64_t low_ns = (int64_t)(answered_ns - came_ns) - apart_ns,
		high_ns = (int64_t)(answered_ns - asked_ns) + apart_ns;

	if (!d->answers++) {
		begin(d, (int64_t)came_ns, low_ns, high_ns, -MOST, MOST);
		return true;
	}
	advance(d, (int64_t)came_ns);
	if (high_ns < d->low_ns || low_ns > d->high_ns) {
		begin(d, (int64_t)came_ns, low_ns, high_ns, drift_rate(d) - CHANGE,
		      drift_rate(d) + CHANGE);
		return false;
	}
	if (low_ns > d->low_ns)
		d->low_ns = low_ns;
	if (high_ns < d->high_ns)
		d->high_ns = high_ns;
	judge(d);
	return true;
}

int64_t drift_ahead(const struct drift *d, uint64_t now_ns)
{
	return d->low_ns + (d->high_ns - d->low_ns) / 2 +
	       (int64_t)(drift_rate(d) * (double)((int64_t)now_ns - d->at_ns));
}

uint64_t drift_doubt(const struct drift *d, uint64_t now_ns)
{
	struct drift then = *d;

	advance(&then, (int64_t)now_ns);
	return (uint64_t)(then.high_ns - then.low_ns) / 2;
}

double drift_rate(const struct drift *d)
{
	return (d->slowest + d->fastest) / 2;
}

int64_t drift_steer(int64_t behind_ns, double rate)
{
	double faster = rate + (double)behind_ns / (SETTLE_S * SECOND);

	return (int64_t)(most(least(faster, 1. / 16), -1. / 16) * 4294967296.);
}
