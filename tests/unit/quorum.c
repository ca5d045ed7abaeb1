/* quorum.c - which side of a cut network goes on with the machine (vmm/cli/run/quorum.def): each
 * cell for up to five hosts, and that both sides never go on, however the hosts are cut.
 */
#include "base/limits.h"
#include "tests/unit/unit.h"
#include "vmm/cli/run/quorum.h"

enum { NEITHER, OWNER, STANDBY, BOTH };

static int who(uint32_t with_owner, uint32_t with_standby, uint32_t all)
{
	return (quorum_owner(with_owner, all, true) ? OWNER : NEITHER) |
	       (quorum_standby(with_standby, all) ? STANDBY : NEITHER);
}

/* Each row: of so many hosts, so many are on the owner's side, and so many on its standby's; the
 * others are on neither. */
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

/* The machine has `all` hosts; its standby still counts one less, or one that has left.  Unless
 * only two hosts are counted, both never go on. */
static void not_agreed(void)
{
	for (uint32_t all = 3; all < MAX_NODES; all++)
		for (uint32_t owner = 1; owner < all; owner++) {
			bool goes_on = quorum_owner(owner, all, false);

			/* one has come, or one has gone and is with the standby */
			CU_ASSERT_FALSE(goes_on && all > 3 &&
					quorum_standby(all - owner, all - 1));
			CU_ASSERT_FALSE(goes_on && quorum_standby(all + 1 - owner, all + 1));
		}
	CU_ASSERT(quorum_owner(2, 4, true));
	CU_ASSERT_FALSE(quorum_owner(2, 4, false));
	CU_ASSERT(quorum_owner(3, 4, false));
}

/* A network that is cut in two ends no machine, and neither does the loss of one host. */
static void one_goes_on(void)
{
	for (uint32_t all = 2; all <= MAX_NODES; all++) {
		for (uint32_t owner = 1; owner < all; owner++)
			CU_ASSERT_NOT_EQUAL(who(owner, all - owner, all), NEITHER);
		CU_ASSERT(quorum_owner(all - 1, all, true));
		CU_ASSERT(quorum_standby(all - 1, all));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_cell),
		UNIT_TEST(never_both),
		UNIT_TEST(not_agreed),
		UNIT_TEST(one_goes_on),
		UNIT_END
	};

	return UNIT_RUN("which side of a cut goes on", tests);
}
