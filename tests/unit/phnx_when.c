/* phnx_when.c - tests of phoenix/routing/when.h. */
#include "phoenix/core/bounds.h"
#include "phoenix/routing/when.h"
#include "tests/unit/unit.h"

enum { NOW = 100000000, MS = 1000 };

/* Nothing is under way, and something has to be told since now. */
static struct when_facts quiet(void)
{
	return (struct when_facts){
		.now = NOW, .n_links = 4, .progress = NOW - 1000 * MS, .since = NOW
	};
}

static void what_nothing_holds_goes_at_once(void)
{
	struct when_facts f = quiet();
	struct when at = when_to_tell(&f);

	CU_ASSERT_EQUAL(at.away, NOW);
	CU_ASSERT_EQUAL(at.here, NOW);
	CU_ASSERT_EQUAL(at.names, NOW);
	CU_ASSERT_EQUAL(at.all, NOW);
}

static void connections_come_first(void)
{
	struct when_facts f = quiet();
	struct when at;

	f.progress = NOW;
	f.hopeful = true;
	f.slowest = 7 * MS;
	at = when_to_tell(&f);
	CU_ASSERT(at.away > NOW + 2 * f.slowest && at.away < NOW + 50 * MS);
	f.proving = true;		/* it has answered once, and is given longer */
	CU_ASSERT(when_to_tell(&f).away > at.away);
	CU_ASSERT(when_to_tell(&f).all >= when_to_tell(&f).away);
}

static void names_wait_for_a_rest(void)
{
	struct when_facts f = quiet();

	f.progress = NOW;
	CU_ASSERT_EQUAL(when_to_tell(&f).away, NOW);
	CU_ASSERT(when_to_tell(&f).names >= when_at_rest(NOW, f.n_links, 0));
}

static void this_place_waits_for_its_names(void)
{
	struct when_facts f = quiet();

	f.unnamed = true;
	f.named = NOW;
	CU_ASSERT_EQUAL(when_to_tell(&f).away, NOW);
	CU_ASSERT_EQUAL(when_to_tell(&f).here, NOW);
	CU_ASSERT(when_to_tell(&f).all > NOW + 50 * MS);
}

/* Whatever holds it, nothing waits longer than this; what is not true any more waits less. */
static void nothing_waits_for_ever(void)
{
	struct when_facts f = quiet();

	f.proving = f.hopeful = f.unnamed = true;
	f.slowest = 10000 * MS;
	for (int i = 0; i < 50; i++, f.progress += 100 * MS, f.named = f.progress) {
		struct when at = when_to_tell(&f);
		CU_ASSERT(at.away <= f.since + 320 * MS && at.here <= f.since + 320 * MS);
		CU_ASSERT(at.names <= f.since + 320 * MS && at.all <= f.since + 320 * MS);
	}
	f.urgent = NOW;
	CU_ASSERT(when_to_tell(&f).all <= NOW + 22 * MS);
	f.lateness = 10 * MS;		/* while nodes run late, it may */
	CU_ASSERT(when_to_tell(&f).all > NOW + 100 * MS);
	CU_ASSERT(when_to_tell(&f).all <= NOW + 22 * MS + MANY_TURNS * f.lateness);
}

static void the_simulator_delays_all_but_names(void)
{
	struct when_facts f = quiet();
	struct when at;

	f.not_before = NOW + 30 * MS;
	at = when_to_tell(&f);
	CU_ASSERT_EQUAL(at.away, f.not_before);
	CU_ASSERT_EQUAL(at.here, f.not_before);
	CU_ASSERT_EQUAL(at.all, f.not_before);
	CU_ASSERT_EQUAL(at.names, NOW);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(what_nothing_holds_goes_at_once),
		UNIT_TEST(connections_come_first),
		UNIT_TEST(names_wait_for_a_rest),
		UNIT_TEST(this_place_waits_for_its_names),
		UNIT_TEST(nothing_waits_for_ever),
		UNIT_TEST(the_simulator_delays_all_but_names),
		UNIT_END
	};

	return UNIT_RUN("phnx_when", tests);
}
