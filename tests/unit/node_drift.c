/* node_drift.c - tests of what a host knows of another one's clock (vmm/node/clock/drift.h), and of
 * the clock that follows it (base/hostclock.h). */
#include <math.h>
#include <stdlib.h>
#include "base/hostclock.h"
#include "tests/unit/unit.h"
#include "vmm/node/clock/drift.h"

static double between(double low, double high) { return low + (high - low) * rand() / RAND_MAX; }

/* An answer may take any time each way.  The true difference is always within the known bounds,
 * which are never wider than this answer alone gives. */
static void test_clock_bounds(void)
{
	srand(3);
	for (int round = 0; round < 1000; round++) {
		int64_t ahead = ((int64_t)rand() << 20) - (1ll << 50), error;
		uint64_t now = 1ull << 60, least = UINT64_MAX;
		struct drift drift = { 0 };

		for (int i = 0; i < 24; i++) {
			uint64_t there = 1000 + (uint64_t)rand() % 100000,
				 back = 1000 + (uint64_t)rand() % 100000;

			CU_ASSERT(drift_add(&drift, now, now + there + (uint64_t)ahead,
					    now + there + back));
			now += there + back;
			least = there + back < least ? there + back : least;
		}
		error = drift_ahead(&drift, now) - ahead;
		CU_ASSERT((uint64_t)llabs(error) <= drift_doubt(&drift, now));
		CU_ASSERT(drift_doubt(&drift, now) <= least / 2 + 5000);
	}
}

/* Two computers whose clocks drift apart.  Every two seconds one asks the other, and steers.  Time
 * is the asker's. */
struct clocks {
	/* apart: ns that the other clock gains in each ns. way_ns: the most that a message usually
	 * takes. */
	double apart, way_ns;
	int64_t other_ns;     /* how far the other clock is ahead */
	uint64_t now_ns;
	struct drift drift;
	struct host_clock shown;
	uint64_t last_ns;
	unsigned forgotten;
};
static struct clocks world;

static void pass(double ns)
{
	world.now_ns += (uint64_t)ns;
	world.other_ns += (int64_t)(ns * world.apart);
}

static uint64_t world_ns(void) { return world.now_ns; }
static uint64_t world_now(const void *context)
{
	(void)context;
	return world.now_ns;
}

static void ask_and_steer(unsigned answers)
{
	struct clock_line line;
	int64_t behind;

	for (unsigned i = 0; i < answers; i++) {
		uint64_t asked = world.now_ns, answered;

		pass(between(100e3, rand() % 8 ? world.way_ns : 30e6)); /* some are late */
		answered = world.now_ns + (uint64_t)world.other_ns;
		pass(between(100e3, rand() % 8 ? world.way_ns : 30e6));
		world.forgotten += !drift_add(&world.drift, asked, answered, world.now_ns);
	}
	line = hostclock_line(&world.shown);
	behind = (int64_t)(world.now_ns + (uint64_t)drift_ahead(&world.drift, world.now_ns) -
			   clock_line_at(&line, world.now_ns));
	hostclock_turn(&world.shown, world_now, NULL,
		       drift_steer(behind, drift_rate(&world.drift)));
}

/* Runs for that long.  Checks that the shown clock never goes back, and never runs much too fast or
 * slow.  Returns its largest error. */
static int64_t most_wrong(double seconds, unsigned answers)
{
	int64_t most = 0;

	for (double left = seconds; left > 0; left -= DRIFT_PERIOD_S) {
		for (int i = 0; i < 20; i++) {
			uint64_t before = world.now_ns, shown;
			int64_t wrong, passed;

			pass(DRIFT_PERIOD_S * 5e7);
			shown = hostclock_now(&world.shown, world_ns);
			passed = (int64_t)(shown - world.last_ns);
			CU_ASSERT(passed > (int64_t)(world.now_ns - before) * 15 / 16 - 2);
			CU_ASSERT(i == 0 ||
				  passed < (int64_t)(world.now_ns - before) * 17 / 16 + 2);
			world.last_ns = shown;
			wrong = llabs((int64_t)(world.now_ns + (uint64_t)world.other_ns - shown));
			most = wrong > most ? wrong : most;
		}
		ask_and_steer(answers);
	}
	return most;
}

static void test_clock_drift(void)
{
	static const double rates[] = { 0, 1e-6, -40e-6, 100e-6, -450e-6, 900e-6 };

	srand(4);
	for (unsigned i = 0; i < ARRAY_LEN(rates); i++) {
		world = (struct clocks){ .apart = rates[i],
					 .way_ns = 400e3,
					 .now_ns = 1ull << 50,
					 .other_ns = -(1ll << 48) };
		hostclock_set(&world.shown,
			      (struct clock_line){ world.now_ns,
						   world.now_ns + (uint64_t)world.other_ns, 0 });
		/* a slow answer */
		drift_add(&world.drift, world.now_ns - 300000000,
			  world.now_ns + (uint64_t)world.other_ns, world.now_ns);
		ask_and_steer(24);
		CU_ASSERT(drift_doubt(&world.drift, world.now_ns) < 300000);
		world.last_ns = hostclock_now(&world.shown, world_ns);
		CU_ASSERT(most_wrong(20, 4) < 2500000); /* at first the rate is not known */
		CU_ASSERT(fabs(drift_rate(&world.drift) - rates[i]) < 50e-6);
		CU_ASSERT(most_wrong(3600, 4) < 300000);
		CU_ASSERT(most_wrong(20, 0) < 300000); /* nobody answers */
		CU_ASSERT(most_wrong(60, 4) < 300000);
		CU_ASSERT_EQUAL(world.forgotten, 0);
		world.apart += 30e-6; /* the other clock changes its rate */
		CU_ASSERT(most_wrong(60, 4) < 1000000);
		CU_ASSERT(most_wrong(600, 4) < 300000);
		/* and this computer, or the other one, stands still for half a second */
		world.other_ns += 500000000;
		CU_ASSERT(most_wrong(120, 4) < 501000000);
		CU_ASSERT(most_wrong(600, 4) < 300000);
		world.other_ns -= 500000000;
		CU_ASSERT(most_wrong(120, 4) < 501000000);
		CU_ASSERT(most_wrong(600, 4) < 300000);
		CU_ASSERT(world.forgotten >= 2);
	}
}

static void test_clock_line(void)
{
	static const struct clock_line lines[] = { { 1000, 5000, 0 },
						   { 1ull << 60, 7, 1 << 28 },
						   { 5, 1ull << 60, -(1 << 28) },
						   { 0, 0, 4295 } };

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
		const struct clock_line *line = &lines[i];

		CU_ASSERT_EQUAL(clock_line_at(line, line->from_ns), line->machine_ns);
		for (int64_t passed = -4000000000; passed < 4000000000; passed += 12345678) {
			uint64_t at = line->from_ns + (uint64_t)passed,
				 shows = clock_line_at(line, at),
				 when = clock_line_when(line, shows);
			int64_t early = (int64_t)(at - when);

			CU_ASSERT((int64_t)(clock_line_at(line, at + 1000) - shows) > 900);
			CU_ASSERT(passed < 0 || (early >= -1 && early <= passed / 200 + 1));
		}
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "clock bounds", test_clock_bounds },
		{ "clock drift", test_clock_drift },
		{ "clock line", test_clock_line },
		UNIT_END
	};

	return UNIT_RUN("clocks of hosts", tests);
}
