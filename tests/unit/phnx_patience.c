/* phnx_patience.c - tests of phoenix/net/patience.h. */
#include "phoenix/net/patience.h"
#include "tests/unit/unit.h"

enum { SECOND = 1000000 };

static void a_burst_is_free(void)
{
	struct patience p = { 0 };

	CU_ASSERT_EQUAL(patience_until(&p, 5 * SECOND), 0);
	patience_spend(&p, 5 * SECOND, PATIENCE_BURST_US - 1);
	CU_ASSERT_EQUAL(patience_until(&p, 5 * SECOND), 0);
	patience_spend(&p, 5 * SECOND, 1);
	CU_ASSERT(patience_until(&p, 5 * SECOND) > 5 * SECOND);
}

/* At the time that is said, strangers may be accepted again, and not much earlier. */
static void time_is_forgiven(void)
{
	struct patience p = { 0 };
	uint64_t until;

	patience_spend(&p, SECOND, PATIENCE_BURST_US + 1000);
	until = patience_until(&p, SECOND);
	CU_ASSERT_EQUAL(until, SECOND + 1001 * PATIENCE_SHARE);
	CU_ASSERT(patience_until(&p, until - 2 * PATIENCE_SHARE) >= until - PATIENCE_SHARE);
	CU_ASSERT_EQUAL(patience_until(&p, until), 0);
}

/* Whatever strangers do, and however often the node looks, they get no more than their share. */
static void strangers_get_their_share(void)
{
	struct patience p = { 0 };
	uint64_t had = 0, now = SECOND;

	for (; now < 101ull * SECOND; now += 7)
		if (!patience_until(&p, now)) {
			patience_spend(&p, now, 150);
			had += 150;
		}
	CU_ASSERT(had >= 100ull * SECOND / PATIENCE_SHARE);
	CU_ASSERT(had <= 100ull * SECOND / PATIENCE_SHARE + PATIENCE_BURST_US + 150);
}

static void who_proves_himself_gets_it_back(void)
{
	struct patience p = { 0 };

	patience_spend(&p, SECOND, 2 * PATIENCE_BURST_US);
	CU_ASSERT(patience_until(&p, SECOND) > 0);
	patience_give_back(&p, PATIENCE_BURST_US + 1);
	CU_ASSERT_EQUAL(patience_until(&p, SECOND), 0);
	patience_give_back(&p, UINT64_MAX); /* more than is owed by now */
	CU_ASSERT_EQUAL(p.owed_us, 0);
}

/* A clock that goes back forgives nothing, and breaks nothing. */
static void the_clock_goes_back(void)
{
	struct patience p = { 0 };

	patience_spend(&p, 9 * SECOND, 2 * PATIENCE_BURST_US);
	CU_ASSERT(patience_until(&p, SECOND) > 0);
	CU_ASSERT_EQUAL(p.owed_us, 2 * PATIENCE_BURST_US);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(a_burst_is_free),
		UNIT_TEST(time_is_forgiven),
		UNIT_TEST(strangers_get_their_share),
		UNIT_TEST(who_proves_himself_gets_it_back),
		UNIT_TEST(the_clock_goes_back),
		UNIT_END
	};

	return UNIT_RUN("phnx_patience", tests);
}
