/* pages_both.c - which pages a host requests to write to although a CPU only reads them. */
#include "tests/unit/unit.h"
#include "vmm/node/pages/both.h"

enum { GFN = 7, US = 1000, FETCH_US = 40, SUM_OLD = 1, SUM_NEW = 2 };
static const uint64_t START = 1000000000;

/* The page comes as a copy, is written to, and goes. */
static void read_then_write(struct both *both)
{
	CU_ASSERT_EQUAL(both_missed(both, GFN, PAGE_READ), PAGE_READ);
	CU_ASSERT_EQUAL(both_missed(both, GFN, PAGE_WRITE), PAGE_WRITE);
	both_left(both, GFN, PAGE_NONE, 0, START);
}

static struct both turned_on(void)
{
	struct both both = { 0 };

	for (unsigned i = 0; i < BOTH_PAIRS; i++)
		read_then_write(&both);
	return both;
}

/* A CPU reads the page when it has been away for so long.  The request takes `took_us`, the page
 * comes with `came`, and leaves with `left`.  Returns the time at which it leaves. */
static uint64_t fetch(struct both *both, uint64_t now_ns, uint32_t took_us, uint32_t came,
		      uint32_t left)
{
	CU_ASSERT_EQUAL(both_missed(both, GFN, PAGE_READ), PAGE_WRITE);
	CU_ASSERT_TRUE(both_expects(both, GFN));
	now_ns = both_leaves_ns(both, now_ns);
	both_sent(both, now_ns);
	now_ns += took_us * US;
	both_came(both, came, now_ns);
	both_left(both, GFN, PAGE_NONE, left, now_ns);
	return now_ns;
}

static void test_turns_on(void)
{
	struct both both = { 0 };

	CU_ASSERT_FALSE(both_is_on(&both, GFN)); /* nothing is known */
	for (unsigned i = 0; i < BOTH_PAIRS; i++) {
		CU_ASSERT_FALSE(both_is_on(&both, GFN));
		read_then_write(&both);
	}
	CU_ASSERT_TRUE(both_is_on(&both, GFN));
	CU_ASSERT_FALSE(both_is_on(&both, GFN + 1));
	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_WRITE), PAGE_WRITE);
	CU_ASSERT_FALSE(both_expects(&both, GFN)); /* a CPU writes */
	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_READ), PAGE_WRITE);
	CU_ASSERT_TRUE(both_expects(&both, GFN));
	CU_ASSERT_TRUE(both_compares(&both, GFN));
	/* another page in the same place */
	CU_ASSERT_EQUAL(both_missed(&both, GFN + 1, PAGE_READ), PAGE_READ);
	CU_ASSERT_FALSE(both_is_on(&both, GFN));
	CU_ASSERT_FALSE(both_is_on(&both, GFN + 1));
}

/* The page comes ahead with the right `wanted`, is written to or not, and goes. */
static void ahead(struct both *both, enum page_right wanted, bool is_written)
{
	if (wanted == PAGE_READ && is_written)
		CU_ASSERT_EQUAL(both_missed(both, GFN, PAGE_WRITE), PAGE_WRITE);
	if (both_expects(both, GFN))
		both_came(both, SUM_OLD, START);
	both_left(both, GFN, PAGE_NONE, is_written ? SUM_NEW : SUM_OLD, START);
}

static void test_ahead(void)
{
	struct both both = { 0 };

	/* reads ahead that writes follow turn it on, but not requests to write, nor reads alone */
	for (unsigned i = 0; i < 2 * BOTH_PAIRS; i++) {
		CU_ASSERT_EQUAL(both_ahead(&both, GFN, PAGE_WRITE), PAGE_WRITE);
		ahead(&both, PAGE_WRITE, true);
		CU_ASSERT_EQUAL(both_ahead(&both, GFN, PAGE_READ), PAGE_READ);
		ahead(&both, PAGE_READ, false);
	}
	for (unsigned i = 0; i < BOTH_PAIRS; i++) {
		CU_ASSERT_EQUAL(both_ahead(&both, GFN, PAGE_READ), PAGE_READ);
		CU_ASSERT_FALSE(both_expects(&both, GFN));
		ahead(&both, PAGE_READ, true);
	}
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(both_ahead(&both, GFN, PAGE_READ), PAGE_WRITE);
		CU_ASSERT_TRUE(both_compares(&both, GFN));
		ahead(&both, PAGE_WRITE, true);
	}
	/* that it comes as it left teaches nothing about when to request it */
	CU_ASSERT_EQUAL(both.away_us, BOTH_AWAY_US);
	/* and turns it off if it leaves as it came, too */
	for (unsigned i = 0; i <= BOTH_SPARE_PAIRS; i++) {
		CU_ASSERT_EQUAL(both_ahead(&both, GFN, PAGE_READ), PAGE_WRITE);
		ahead(&both, PAGE_WRITE, false);
	}
	CU_ASSERT_EQUAL(both_ahead(&both, GFN, PAGE_READ), PAGE_READ);
	/* another page in the same place */
	both = turned_on();
	CU_ASSERT_EQUAL(both_ahead(&both, GFN + 1, PAGE_READ), PAGE_READ);
}

static void test_stays_off(void)
{
	struct both both = { 0 };

	/* pages that are only read, or only written to */
	for (unsigned i = 0; i < 2 * BOTH_PAIRS; i++) {
		CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_READ), PAGE_READ);
		both_left(&both, GFN, PAGE_NONE, 0, START);
		CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_WRITE), PAGE_WRITE);
		both_left(&both, GFN, PAGE_NONE, 0, START);
	}
	CU_ASSERT_FALSE(both_is_on(&both, GFN));
	/* a write counts for one read */
	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_READ), PAGE_READ);
	for (unsigned i = 0; i < BOTH_PAIRS; i++)
		both_missed(&both, GFN, PAGE_WRITE);
	CU_ASSERT_FALSE(both_is_on(&both, GFN));
	/* one that is read only in between takes a pair away */
	both = turned_on();
	both.pairs--;
	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_READ), PAGE_READ);
	both_left(&both, GFN, PAGE_NONE, 0, START);
	CU_ASSERT_EQUAL(both.pairs, BOTH_PAIRS - 2);
}

static void test_when_it_leaves(void)
{
	struct both both = turned_on();

	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_READ), PAGE_WRITE);
	CU_ASSERT_EQUAL(both_leaves_ns(&both, START), START + BOTH_AWAY_US * US);
	CU_ASSERT_EQUAL(both_leaves_ns(&both, START + 5 * US), START + BOTH_AWAY_US * US);
	CU_ASSERT_EQUAL(both_leaves_ns(&both, START + BOTH_AWAY_US * US),
			START + BOTH_AWAY_US * US);
	CU_ASSERT_EQUAL(both_leaves_ns(&both, START + 1000 * US), START + 1000 * US);
	/* a CPU that writes does not wait, nor does one for a page that has never been here */
	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_WRITE), PAGE_WRITE);
	CU_ASSERT_EQUAL(both_leaves_ns(&both, START + 1), START + 1);
	both.left_ns = 0;
	both.at_once = true;
	CU_ASSERT_EQUAL(both_leaves_ns(&both, 1), 1);
}

static void test_learns(void)
{
	static const struct {
		uint32_t took_us, came, left; /* the second request; the page left with SUM_OLD */
		int away;		      /* what is added to its time */
		int pairs;
	} rows[] = {
		{ FETCH_US, SUM_NEW, SUM_NEW + 1, -1, 1 },
		{ FETCH_US, SUM_OLD, SUM_NEW, BOTH_EARLY_US, 1 },  /* as it left: too early */
		{ FETCH_US, SUM_NEW, SUM_NEW, -1, -1 },		   /* nobody here wrote to it */
		{ FETCH_US + BOTH_HELD_US + 1, SUM_NEW, SUM_NEW + 1, -1, 1 },
		/* held by the other host: too early, too */
		{ FETCH_US + BOTH_HELD_US + 2, SUM_NEW, SUM_NEW + 1, BOTH_EARLY_US, 1 },
		{ FETCH_US, SUM_NEW, 0, -1, 1 }, /* not compared */
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct both both = turned_on();
		uint64_t now = fetch(&both, START, FETCH_US, SUM_NEW, SUM_OLD);

		CU_ASSERT_EQUAL(both.away_us, BOTH_AWAY_US); /* the first one is not compared */
		CU_ASSERT_EQUAL(both.pairs, BOTH_PAIRS + 1);
		now = fetch(&both, now, rows[i].took_us, rows[i].came, rows[i].left);
		CU_ASSERT_EQUAL(both.away_us, BOTH_AWAY_US + rows[i].away);
		CU_ASSERT_EQUAL(both.pairs, BOTH_PAIRS + 1 + rows[i].pairs);
		CU_ASSERT_EQUAL(both.left_ns, now);
	}
}

static void test_limits(void)
{
	struct both both = turned_on();
	uint64_t now = START;
	unsigned needs = BOTH_PAIRS;

	/* it does not grow without limit, nor does the time shrink to nothing */
	for (uint32_t sum = 1; sum < 200; sum++)
		now = fetch(&both, now, FETCH_US, 2 * sum, 2 * sum + 1);
	CU_ASSERT_EQUAL(both.pairs, BOTH_PAIRS + BOTH_SPARE_PAIRS);
	CU_ASSERT_EQUAL(both.away_us, BOTH_AWAY_MIN_US);
	/* too early again and again: it is off, and needs four times as many pairs */
	while (needs < BOTH_MOST_PAIRS) {
		uint32_t sum = 1;

		while (both_is_on(&both, GFN)) {
			now = fetch(&both, now, FETCH_US, sum, sum + 1);
			sum++;
		}
		needs = needs * 4 < BOTH_MOST_PAIRS ? needs * 4 : BOTH_MOST_PAIRS;
		CU_ASSERT_EQUAL(both.needs, needs);
		CU_ASSERT_EQUAL(both.pairs, 0);
		CU_ASSERT_EQUAL(both.away_us, BOTH_AWAY_US);
		for (unsigned i = 0; i < needs; i++)
			read_then_write(&both);
		CU_ASSERT_TRUE(both_is_on(&both, GFN));
	}
}

/* Another host reads the page: this one keeps a copy. */
static void test_lowered(void)
{
	struct both both = turned_on();

	CU_ASSERT_EQUAL(both_missed(&both, GFN, PAGE_READ), PAGE_WRITE);
	both_sent(&both, START);
	both_came(&both, SUM_OLD, START + FETCH_US * US);
	both_left(&both, GFN, PAGE_READ, SUM_OLD, START + 100 * US); /* in vain */
	CU_ASSERT_EQUAL(both.pairs, BOTH_PAIRS - 1);
	CU_ASSERT_EQUAL(both.left_ns, START); /* a copy is still here */
	both_left(&both, GFN, PAGE_NONE, 0, START + 200 * US);
	CU_ASSERT_EQUAL(both.pairs, BOTH_PAIRS - 1);
	CU_ASSERT_EQUAL(both.left_ns, START + 200 * US);
	both_left(&both, GFN + 1, PAGE_NONE, SUM_NEW, START + 300 * US); /* another page */
	CU_ASSERT_EQUAL(both.left_ns, START + 200 * US);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "reads that a write follows", test_turns_on },
		{ "pages that are only read, or only written to", test_stays_off },
		{ "a page that is requested ahead", test_ahead },
		{ "when the request leaves", test_when_it_leaves },
		{ "what one fetch teaches", test_learns },
		{ "limits of what is learned", test_limits },
		{ "a page of which a copy stays", test_lowered },
		UNIT_END
	};

	return UNIT_RUN("pages that are requested with both rights", tests);
}
