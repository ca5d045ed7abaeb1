/* How many pages get memory together: vcpu/fresh.h. */
#include "tests/unit/unit.h"
#include "vcpu/fresh.h"

static void test_in_order(void)
{
	static const unsigned wanted[] = { 1, 2, 4, 8, 16, 16, 16 };
	struct fresh fresh = { 0 };
	gfn_t gfn = 1000;

	for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		CU_ASSERT_EQUAL(fresh_run(&fresh, gfn, 16), wanted[i]);
		gfn += wanted[i];
	}
	CU_ASSERT_EQUAL(fresh_run(&fresh, gfn + 1, 16), 1); /* not just behind them */
	CU_ASSERT_EQUAL(fresh_run(&fresh, gfn + 2, 16), 2);
	CU_ASSERT_EQUAL(fresh_run(&fresh, gfn + 2, 16), 1); /* the same once more */
	CU_ASSERT_EQUAL(fresh_run(&fresh, gfn + 1, 16), 1); /* backwards */
}

/* Where less may be taken, the next run grows from what was taken. */
static void test_bounded(void)
{
	struct fresh fresh = { 0 };

	CU_ASSERT_EQUAL(fresh_run(&fresh, 0, 16), 1); /* nothing is known of frame 0 */
	CU_ASSERT_EQUAL(fresh_run(&fresh, 1, 1), 1);
	CU_ASSERT_EQUAL(fresh_run(&fresh, 2, 16), 2);
	CU_ASSERT_EQUAL(fresh_run(&fresh, 4, 3), 3);
	CU_ASSERT_EQUAL(fresh_run(&fresh, 7, 16), 6);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(test_in_order),
		UNIT_TEST(test_bounded),
		UNIT_END
	};

	return UNIT_RUN("fresh", tests);
}
