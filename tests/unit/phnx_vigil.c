/* phnx_vigil.c - tests of phoenix/net/vigil.h. */
#include "phoenix/net/vigil.h"
#include "tests/unit/unit.h"

/* Returns how many waits sleep at once before the next one polls. */
static unsigned asleep(struct vigil *v)
{
	unsigned n = 0;

	while (!vigil_begins(v))
		n++;
	return n;
}

static void the_first_wait_polls(void)
{
	struct vigil v = { 0 };

	CU_ASSERT(vigil_begins(&v));
	CU_ASSERT(vigil_begins(&v));	/* another thread has ended the first one */
}

static void vigils_in_vain_become_rare(void)
{
	struct vigil v = { 0 };
	unsigned before = 0, n = 0;

	for (int i = 0; i < 20; i++) {
		vigil_ends(&v, true);
		n = asleep(&v);
		CU_ASSERT(n == 2 * before + 1 || n == VIGIL_MOST_ASLEEP);
		before = n;
	}
	CU_ASSERT_EQUAL(n, VIGIL_MOST_ASLEEP);
	vigil_ends(&v, false);		/* one answer in time, and each wait polls again */
	CU_ASSERT_EQUAL(asleep(&v), 0);
	vigil_ends(&v, true);
	CU_ASSERT_EQUAL(asleep(&v), 1);
}

/* The processor is offered after some polls in vain and, while a peer needs it, from the first
 * poll on. */
static void a_peer_that_shares_the_processor_gets_it(void)
{
	struct vigil v = { 0 };

	CU_ASSERT(!vigil_offers(&v, 0));
	CU_ASSERT(!vigil_offers(&v, VIGIL_ALONE));
	CU_ASSERT(vigil_offers(&v, VIGIL_ALONE + 1));
	vigil_answered(&v, true);
	CU_ASSERT(vigil_offers(&v, 0));
	vigil_answered(&v, false);
	CU_ASSERT(!vigil_offers(&v, 0));
}

static void sixteen_answers_make_a_peer_prompt(void)
{
	struct vigil v = { 0 };

	for (int i = 0; i < VIGIL_PROMPT; i++) {
		CU_ASSERT(!vigil_is_prompt(&v));
		vigil_answered(&v, false);
		vigil_ends(&v, false);
	}
	CU_ASSERT(vigil_is_prompt(&v));
	vigil_sleeps(&v);
	CU_ASSERT(!vigil_is_prompt(&v));
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(the_first_wait_polls),
		UNIT_TEST(vigils_in_vain_become_rare),
		UNIT_TEST(a_peer_that_shares_the_processor_gets_it),
		UNIT_TEST(sixteen_answers_make_a_peer_prompt),
		UNIT_END
	};

	return UNIT_RUN("phnx_vigil", tests);
}
