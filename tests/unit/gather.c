/* gather.c - when an owner stops waiting for the hosts that it prepares anew
 * (vmm/cli/run/gather.def): each cell.
 */
#include "tests/unit/unit.h"
#include "vmm/cli/run/gather.h"

enum { FACTS = 6 };

static struct gather_facts facts_of(unsigned bits)
{
	return (struct gather_facts){ .is_taken = bits & 1,
				      .is_undecided = bits & 2,
				      .comes = bits & 4,
				      .silent_comes = bits & 8,
				      .is_enough = bits & 16,
				      .is_late = bits & 32 };
}

/* What the table means, in other words. */
static bool is_right(const struct gather_facts *f)
{
	if (f->is_taken)
		return true;
	if (f->is_undecided || f->comes)
		return false;
	return !f->silent_comes || (f->is_enough && f->is_late);
}

static void each_cell(void)
{
	for (unsigned bits = 0; bits < 1u << FACTS; bits++) {
		struct gather_facts f = facts_of(bits);

		CU_ASSERT_EQUAL(gather_decides(&f), is_right(&f));
	}
}

/* Of four hosts two are cut off.  One of them is not prepared, since it is lost; the other one had
 * been silent, and its ssh hangs.  The third has to log in first. */
static void even_cut(void)
{
	struct gather_facts f = { .comes = true, .silent_comes = true };

	CU_ASSERT_FALSE(gather_decides(&f));
	f.comes = false;
	f.is_undecided = true; /* what it had started there has not ended */
	CU_ASSERT_FALSE(gather_decides(&f));
	f.is_undecided = false;
	f.is_enough = true; /* half of them */
	CU_ASSERT_FALSE(gather_decides(&f));
	f.is_late = true;
	CU_ASSERT(gather_decides(&f));
}

/* A host that was not silent is waited for, however slow it is, and though there are enough. */
static void slow_host(void)
{
	struct gather_facts f = { .comes = true, .is_enough = true, .is_late = true };

	CU_ASSERT_FALSE(gather_decides(&f));
	f.silent_comes = true;
	CU_ASSERT_FALSE(gather_decides(&f));
}

/* With too few hosts the owner would have to end: it waits for those that were silent, too. */
static void too_few(void)
{
	struct gather_facts f = { .silent_comes = true, .is_late = true };

	CU_ASSERT_FALSE(gather_decides(&f));
	f.silent_comes = false; /* they have failed */
	CU_ASSERT(gather_decides(&f));
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_cell),
		UNIT_TEST(even_cut),
		UNIT_TEST(slow_host),
		UNIT_TEST(too_few),
		UNIT_END
	};

	return UNIT_RUN("when an owner stops waiting for hosts", tests);
}
