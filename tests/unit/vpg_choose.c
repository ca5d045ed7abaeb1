/* Which computers become hosts: vpg/peer/choose.c.  And what is lent: vpg/peer/lending.c. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/peer/choose.h"
#include "vpg/peer/lending.h"

/* ---- the choice ---- */

/* A computer is NICK, round trip, free processors; A is the one that asks. */
static const struct candidate four[] = {
	{ "D", false, 900, 8, 100, false, 0 }, { "B", false, 100, 2, 100, false, 0 },
	{ "A", true, 0, 2, 100, false, 0 }, { "C", false, 500, 4, 100, false, 0 },
};
/* B has nothing; C and D are equally far; A has no processor of its own left. */
static const struct candidate some[] = {
	{ "D", false, 500, 1, 100, false, 0 }, { "C", false, 500, 2, 100, false, 0 },
	{ "B", false, 100, 0, 100, false, 0 }, { "A", true, 0, 0, 100, false, 0 },
};
static const struct candidate alone[] = { { "A", true, 0, 4, 100, false, 0 } };

/* D is four times as fast as C, about as far; B is slower than both; E is the fastest, and far. */
static const struct candidate fast[] = {
	{ "B", false, 200, 4, 90, false, 0 }, { "C", false, 100, 4, 100, false, 0 },
	{ "D", false, 900, 4, 400, false, 0 }, { "A", true, 0, 1, 50, false, 0 },
	{ "E", false, 1100, 4, 800, false, 0 },
};
static const struct {
	const struct candidate *of;
	size_t n;
	enum choose_how how;
	uint32_t others, processors;
	const char *is;		/* each chosen one and its processors */
	bool enough;
} choices[] = {
	{ four, 4, CHOOSE_NEAR, 1, 2, "A1 B1", true },
	{ four, 4, CHOOSE_NEAR, 2, 3, "A1 B1 C1", true },
	{ four, 4, CHOOSE_NEAR, 2, 5, "A2 B2 C1", true },
	{ four, 4, CHOOSE_NEAR, 3, 9, "A2 B2 C4 D1", true },
	{ four, 4, CHOOSE_NEAR, 3, 16, "A2 B2 C4 D8", true },
	{ four, 4, CHOOSE_NEAR, 3, 17, "A2 B2 C4 D8", false },
	{ four, 4, CHOOSE_NEAR, 4, 8, "A2 B2 C3 D1", false },
	{ four, 4, CHOOSE_NEAR, 3, 3, "A1 B1 C1", false },
	{ four, 4, CHOOSE_SPREAD, 3, 4, "A1 B1 C1 D1", true },
	{ four, 4, CHOOSE_SPREAD, 3, 6, "A2 B2 C1 D1", true },
	{ four, 4, CHOOSE_SPREAD, 3, 11, "A2 B2 C4 D3", true },
	{ four, 4, CHOOSE_SPREAD, 2, 9, "A2 B2 C4", false },
	{ four, 4, CHOOSE_CONCENTRATE, 3, 2, "A2", true },
	{ four, 4, CHOOSE_CONCENTRATE, 3, 5, "A2 B2 C1", true },
	{ four, 4, CHOOSE_CONCENTRATE, 2, 9, "A2 B2 C4", false },
	{ some, 4, CHOOSE_NEAR, 1, 1, "A0 C1", true },
	{ some, 4, CHOOSE_NEAR, 2, 3, "A0 C2 D1", true },
	{ some, 4, CHOOSE_SPREAD, 2, 2, "A0 C1 D1", true },
	{ some, 4, CHOOSE_CONCENTRATE, 3, 3, "A0 C2 D1", true },
	{ some, 4, CHOOSE_NEAR, 3, 3, "A0 C2 D1", false },
	{ fast, 5, CHOOSE_NEAR, 1, 2, "A1 D1", true },
	{ fast, 5, CHOOSE_NEAR, 2, 3, "A1 D1 C1", true },
	{ fast, 5, CHOOSE_SPREAD, 4, 5, "A1 D1 C1 B1 E1", true },
	{ fast, 5, CHOOSE_CONCENTRATE, 4, 10, "A1 D4 C4 B1", true },
	{ alone, 1, CHOOSE_NEAR, 1, 2, "A2", false },
	{ alone, 1, CHOOSE_CONCENTRATE, 1, 2, "A2", true },
};

static void test_choices(void)
{
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		struct candidate c[8];
		char is[100] = "";
		int at = 0;

		memcpy(c, choices[i].of, choices[i].n * sizeof *c);
		struct choice found = choose(c, choices[i].n, choices[i].how, choices[i].others,
					     choices[i].processors);
		for (size_t k = 0; k < choices[i].n; k++)
			if (c[k].chosen)
				at += snprintf(is + at, sizeof is - (size_t)at, "%s%s%u",
					       at ? " " : "", c[k].nick, c[k].gives);
		bool good = !strcmp(is, choices[i].is) &&
			    choose_suffices(&found, choices[i].how, choices[i].others,
					    choices[i].processors) == choices[i].enough;
		if (!good)
			printf("row %zu: %s\n", i, is);
		CU_ASSERT(good);
	}
	CU_ASSERT_EQUAL(choose_worth(400, 4, 0), 400);
	CU_ASSERT_EQUAL(choose_worth(400, 4, 300), 400);
	CU_ASSERT_EQUAL(choose_worth(400, 4, 700), 200);
	CU_ASSERT_EQUAL(choose_worth(400, 1, 100), 200);
	CU_ASSERT_EQUAL(choose_worth(UINT32_MAX, UINT64_MAX, UINT64_MAX), UINT32_MAX);
	CU_ASSERT_EQUAL(choose_worth(400, 0, 0), 0);
	CU_ASSERT_EQUAL(choose_by_word("near"), CHOOSE_NEAR);
	CU_ASSERT_EQUAL(choose_by_word("concentrate"), CHOOSE_CONCENTRATE);
	CU_ASSERT_EQUAL(choose_by_word("far"), CHOOSE_KINDS);
}

/* ---- loans ---- */

static struct loans loans;
static const struct limits four_of = { 4, 1000, 2 };
static const char one, other, own;

static enum lend_answer ask(const void *who, uint64_t id, uint32_t processors, uint32_t mib,
			    int64_t now)
{
	struct loan l = { .borrower = who, .id = id, .processors = processors, .memory_mib = mib };

	return lend_ask(&loans, &four_of, &l, who == &own, now);
}

/* What kind of offer stands in the way decides whether it is worth asking again. */
static void test_limits(void)
{
	memset(&loans, 0, sizeof loans);
	CU_ASSERT_EQUAL(lend_free(&loans, &four_of, 0), 4);
	CU_ASSERT_EQUAL(ask(&one, 1, 0, 10, 0), LEND_BAD);
	CU_ASSERT_EQUAL(ask(&one, 1, LOAN_PROCESSORS_MAX + 1, 10, 0), LEND_BAD);
	CU_ASSERT_EQUAL(ask(&one, 1, 5, 10, 0), LEND_NO_PROCESSORS);
	CU_ASSERT_EQUAL(ask(&one, 1, 1, 1001, 0), LEND_NO_MEMORY);
	CU_ASSERT_EQUAL(ask(&one, 1, 3, 600, 0), LEND_YES);
	CU_ASSERT_EQUAL(lend_free(&loans, &four_of, 0), 1);
	CU_ASSERT_EQUAL(ask(&other, 1, 2, 10, 0), LEND_BUSY);
	CU_ASSERT_EQUAL(ask(&other, 1, 1, 500, 0), LEND_BUSY);
	CU_ASSERT_EQUAL(lend_keep(&loans, &one, 1, 1), LEND_YES);
	CU_ASSERT_EQUAL(ask(&other, 1, 2, 10, 1), LEND_NO_PROCESSORS);
	CU_ASSERT_EQUAL(ask(&other, 1, 1, 500, 1), LEND_NO_MEMORY);
	CU_ASSERT_EQUAL(ask(&other, 1, 1, 400, 1), LEND_YES);
	CU_ASSERT_EQUAL(lend_free(&loans, &four_of, 1), 0);
	lend_return(&loans, &one, 1);
	CU_ASSERT_EQUAL(lend_free(&loans, &four_of, 1), 3);
	CU_ASSERT_EQUAL(ask(&one, 2, 1, 1, 1), LEND_YES);
	CU_ASSERT_EQUAL(lend_keep(&loans, &one, 2, 1), LEND_YES);
	CU_ASSERT_EQUAL(lend_keep(&loans, &other, 1, 1), LEND_YES);
	CU_ASSERT_EQUAL(ask(&one, 3, 1, 1, 1), LEND_NO_MACHINES);
	CU_ASSERT_EQUAL(ask(&own, 1, 1, 5000, 1), LEND_YES);	/* the owner's own */
	CU_ASSERT_EQUAL(ask(&own, 2, 2, 1, 1), LEND_BUSY);
}

static void test_life(void)
{
	memset(&loans, 0, sizeof loans);
	CU_ASSERT_EQUAL(ask(&one, 1, 4, 10, 0), LEND_YES);
	CU_ASSERT_EQUAL(ask(&other, 1, 4, 10, OFFER_US - 1), LEND_BUSY);
	CU_ASSERT_EQUAL(ask(&other, 1, 4, 10, OFFER_US), LEND_YES);	/* one came too late */
	CU_ASSERT_EQUAL(lend_keep(&loans, &one, 1, OFFER_US), LEND_LATE);
	CU_ASSERT_EQUAL(lend_keep(&loans, &other, 1, OFFER_US), LEND_YES);
	CU_ASSERT_EQUAL(lend_lent(&loans, OFFER_US * 100LL).processors, 4);
	CU_ASSERT_EQUAL(lend_keep(&loans, &other, 2, OFFER_US), LEND_LATE);
	lend_return(&loans, &one, 1);	/* it has none: nothing happens */
	CU_ASSERT_EQUAL(lend_lent(&loans, 0).machines, 1);
	CU_ASSERT_EQUAL(ask(&other, 1, 2, 10, 0), LEND_YES);	/* the same one, smaller */
	CU_ASSERT_EQUAL(lend_lent(&loans, 0).processors, 2);
	CU_ASSERT_EQUAL(ask(&other, 2, 2, 10, 0), LEND_YES);
	lend_forget(&loans, &other);
	CU_ASSERT_EQUAL(lend_lent(&loans, 0).machines, 0);
	for (int i = 0; i < LEND_ANSWERS; i++)
		CU_ASSERT(i == LEND_YES ? !*lend_why(LEND_YES) : *lend_why((enum lend_answer)i));
}

static void test_many(void)
{
	const struct limits many = { LOAN_PROCESSORS_MAX, 1 << 30, LOANS_MAX * 2 };

	memset(&loans, 0, sizeof loans);
	for (unsigned i = 0; i < LOANS_MAX + 1; i++) {
		struct loan l = { .borrower = &one, .id = i, .processors = 1 };

		CU_ASSERT_EQUAL(lend_ask(&loans, &many, &l, false, 0),
				i < LOANS_MAX ? LEND_YES : LEND_NO_MACHINES);
	}
}

static void test_file(void)
{
	struct limits l = { 4, 1000, 2 }, back = { 0, 0, 0 };
	char text[LIMITS_TEXT];

	lend_print_limits(&l, text);
	CU_ASSERT_EQUAL(lend_read_limits(&back, text), 0);
	CU_ASSERT_EQUAL(memcmp(&l, &back, sizeof l), 0);
	CU_ASSERT_NOT_EQUAL(lend_read_limits(&back, ""), 0);
	CU_ASSERT_NOT_EQUAL(lend_read_limits(&back, "processors 1\nmemory 2\n"), 0);
	CU_ASSERT_NOT_EQUAL(lend_read_limits(&back, "processors 1 memory 2 machines 3 more"), 0);
	CU_ASSERT_NOT_EQUAL(lend_read_limits(&back, "processors x memory 2 machines 3"), 0);
	CU_ASSERT_EQUAL(back.processors, 4);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "which computers become hosts", test_choices },
		{ "nothing is lent twice", test_limits },
		{ "offers end, kept loans last", test_life },
		{ "as many as there is room for", test_many },
		{ "the file of limits", test_file },
		UNIT_END
	};

	return UNIT_RUN("vpg_choose", tests);
}
