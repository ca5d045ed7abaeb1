/* hearing.c - for how long a standby has not heard its owner (vmm/cli/run/hearing.c): the time in
 * which it did not run itself is left out.  Times are in ms.
 */
#include "tests/unit/unit.h"
#include "vmm/cli/run/hearing.h"

enum { EVERY = 500 };

static struct hearing h;
static uint64_t now;

static void begin(void)
{
	now = 100000;
	hearing_begin(&h, EVERY, now);
}

/* The process runs on time for so many ticks. */
static void runs(int ticks)
{
	while (ticks--)
		hearing_ticks(&h, now += EVERY);
}

static void stands_still(uint64_t ms)
{
	hearing_ticks(&h, now += EVERY + ms);
}

static void on_time(void)
{
	begin();
	runs(9);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), 4500);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now + 400), 4900);
	hearing_hears(&h, now + 400);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now + 400), 0);
	runs(2);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), 600);
}

/* Once for long, or often for a little. */
static void own_time_is_left_out(void)
{
	begin();
	runs(2);
	stands_still(4500);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), 3 * EVERY);
	begin();
	for (int i = 0; i < 6; i++)
		stands_still(300);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), 6 * EVERY);
}

/* The timer for the silence may be looked at before the other timer was. */
static void late_now(void)
{
	begin();
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now + 5100), EVERY);
	stands_still(4600);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), EVERY);
}

/* What was heard in between ends the time that is left out, too. */
static void heard_meanwhile(void)
{
	begin();
	now += 2500; /* 2,000 late */
	hearing_hears(&h, now);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), 0);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now + 100), 0); /* the tick is still late */
	hearing_ticks(&h, now += 100);
	runs(4);
	CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), 2000);
}

/* A standby that hardly runs at all takes over in the end. */
static void not_for_ever(void)
{
	begin();
	for (int ticks = 1; ticks <= 20; ticks++) {
		stands_still(9500);
		CU_ASSERT_EQUAL(hearing_silent_ns(&h, now), (uint64_t)ticks * EVERY);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(on_time),
		UNIT_TEST(own_time_is_left_out),
		UNIT_TEST(late_now),
		UNIT_TEST(heard_meanwhile),
		UNIT_TEST(not_for_ever),
		UNIT_END
	};

	return UNIT_RUN("hearing", tests);
}
