/* quorum.c - which of a machine's owner and its standby goes on (vmm/cli/run/quorum.def): each cell
 * for up to five hosts, and that both never do, whoever gets which votes.
 */
#include "base/limits.h"
#include "tests/unit/unit.h"
#include "vmm/cli/run/quorum.h"

enum { NEITHER, OWNER, STANDBY, BOTH };

static int who(uint32_t with_owner, uint32_t with_standby, uint32_t all)
{
	return (quorum_owner(true, with_owner, false, all, true) ? OWNER : NEITHER) |
	       (quorum_standby(with_standby, false, all) ? STANDBY : NEITHER);
}

/* Each row: of so many hosts, so many have given their vote to the owner, and so many to its
 * standby; the others to neither. */
static void each_cell(void)
{
	static const struct { uint32_t all, owner, standby; int who; } cells[] = {
		{ 2, 1, 1, BOTH }, /* neither can know that the other one is alive */
		{ 3, 1, 1, NEITHER }, { 3, 1, 2, STANDBY }, { 3, 2, 1, OWNER },
		{ 4, 1, 1, NEITHER }, { 4, 1, 2, NEITHER }, { 4, 2, 1, OWNER },
		{ 4, 1, 3, STANDBY }, { 4, 3, 1, OWNER },   { 4, 2, 2, OWNER },
		{ 5, 2, 2, NEITHER }, { 5, 2, 3, STANDBY }, { 5, 3, 2, OWNER },
		{ 5, 1, 4, STANDBY }, { 5, 4, 1, OWNER },   { 5, 1, 1, NEITHER },
	};

	for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
		CU_ASSERT_EQUAL(who(cells[i].owner, cells[i].standby, cells[i].all), cells[i].who);
}

static void never_both(void)
{
	for (uint32_t all = 3; all <= MAX_NODES; all++)
		for (uint32_t owner = 1; owner < all; owner++)
			for (uint32_t standby = 1; owner + standby <= all; standby++)
				CU_ASSERT_NOT_EQUAL(who(owner, standby, all), BOTH);
}

/* An owner counts votes if it doubts that its standby is dead, or if that holds a vote. */
static void who_counts(void)
{
	CU_ASSERT(quorum_owner(false, 1, false, 5, true));
	CU_ASSERT_FALSE(quorum_owner(true, 1, false, 5, true));
	CU_ASSERT_FALSE(quorum_owner(false, 1, true, 5, true));
	CU_ASSERT(quorum_owner(false, 3, true, 5, true));
	CU_ASSERT_FALSE(quorum_standby(1, false, 5));
	CU_ASSERT_FALSE(quorum_standby(1, true, 5));
	CU_ASSERT(quorum_standby(3, true, 5));
	/* of four, half is enough for the owner, and not for the standby */
	CU_ASSERT(quorum_owner(false, 2, true, 4, true));
	CU_ASSERT_FALSE(quorum_standby(2, true, 4));
}

/* Two computers, each of which has its own vote.  One that hears of the other ends. */
static void of_two(void)
{
	for (int doubt = 0; doubt < 2; doubt++) {
		CU_ASSERT(quorum_owner(doubt, 1, false, 2, true));
		CU_ASSERT_FALSE(quorum_owner(doubt, 1, true, 2, true));
		CU_ASSERT(quorum_standby(1, false, 2));
		CU_ASSERT_FALSE(quorum_standby(1, true, 2));
	}
}

/* The machine has `all` hosts; its standby still counts one less, or one that has left.  Unless
 * only two hosts are counted, both never go on. */
static void not_agreed(void)
{
	for (uint32_t all = 3; all < MAX_NODES; all++)
		for (uint32_t owner = 1; owner < all; owner++) {
			bool goes_on = quorum_owner(true, owner, false, all, false);

			/* one has come, or one has gone and is with the standby */
			CU_ASSERT_FALSE(goes_on && all > 3 &&
					quorum_standby(all - owner, false, all - 1));
			CU_ASSERT_FALSE(goes_on &&
					quorum_standby(all + 1 - owner, false, all + 1));
		}
	CU_ASSERT(quorum_owner(true, 2, false, 4, true));
	CU_ASSERT_FALSE(quorum_owner(true, 2, false, 4, false));
	CU_ASSERT(quorum_owner(true, 3, false, 4, false));
}

/* A network that is cut in two ends no machine, and neither does the loss of one host. */
static void one_goes_on(void)
{
	for (uint32_t all = 2; all <= MAX_NODES; all++) {
		for (uint32_t owner = 1; owner < all; owner++)
			CU_ASSERT_NOT_EQUAL(who(owner, all - owner, all), NEITHER);
		CU_ASSERT(quorum_owner(true, all - 1, false, all, true));
		CU_ASSERT(quorum_standby(all - 1, false, all));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_cell),
		UNIT_TEST(never_both),
		UNIT_TEST(who_counts),
		UNIT_TEST(of_two),
		UNIT_TEST(not_agreed),
		UNIT_TEST(one_goes_on),
		UNIT_END
	};

	return UNIT_RUN("which side of a cut goes on", tests);
}
