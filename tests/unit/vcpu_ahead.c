/* vcpu_ahead.c - which pages are fetched before they are asked for (vcpu/ahead.h). */
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vcpu/ahead.h"
#include "vcpu/shadow.h"

enum { N_PAGES = 1000 };

static struct ahead ahead;

static struct ahead_pages miss(int64_t page)
{
	return ahead_on_miss(&ahead, page * PAGE_BYTES, N_PAGES * PAGE_BYTES);
}

static void begin(void)
{
	ahead = (struct ahead){ 0 };
}

/* A miss asks for `count` pages from `first` on. */
static bool asks(gfn_t gfn, gfn_t first, int step, uint32_t count)
{
	struct ahead_pages pages = miss(gfn);

	if (pages.count == count && (!count || (pages.first == (int64_t)first * PAGE_BYTES &&
						pages.step == (int64_t)step * PAGE_BYTES)))
		return true;
	fprintf(stderr, "a miss of %u asks for %u pages from %llx on\n", gfn, pages.count,
		(long long)pages.first);
	return false;
}

static bool asks_nothing(gfn_t gfn)
{
	return asks(gfn, 0, 0, 0);
}

/* Two misses before the third, which makes the run. */
static void begin_run(gfn_t gfn, int step)
{
	begin();
	CU_ASSERT(asks_nothing(gfn));
	CU_ASSERT(asks_nothing(gfn + (gfn_t)step));
}

/* Misses of the pages `first`, first + step, ..., `count` of them, that ask for nothing. */
static void misses(gfn_t first, int step, int count)
{
	for (int i = 0; i < count; i++)
		CU_ASSERT(asks_nothing(first + (gfn_t)(i * step)));
}

/* As many misses as there are runs, which make none: no four squares are at equal distances. */
static void others(gfn_t first)
{
	for (gfn_t other = 0; other < AHEAD_RUNS; other++)
		CU_ASSERT(asks_nothing(first + other * (other + 10)));
}

static void three_in_a_row_make_a_run(void)
{
	begin_run(100, 1);
	CU_ASSERT(asks(102, 103, 1, AHEAD_FIRST));
	begin_run(100, 1);
	CU_ASSERT(asks_nothing(103));
	CU_ASSERT(asks_nothing(100));
	CU_ASSERT(asks_nothing(200));
	begin_run(100, 2);
	CU_ASSERT(asks_nothing(104));
}

static void four_at_equal_distances_make_a_run(void)
{
	begin();
	misses(100, 40, 3);
	CU_ASSERT(asks(220, 260, 40, AHEAD_FIRST));
	CU_ASSERT(asks(420, 460, 40, 8)); /* all had arrived in time */
	begin();
	misses(500, -40, 3);
	CU_ASSERT(asks(380, 340, -40, AHEAD_FIRST));
	CU_ASSERT(asks_nothing(339));
	CU_ASSERT(asks(260, 180, -40, 5)); /* three have arrived; these are the last */
	begin();
	misses(100, 40, 3);
	CU_ASSERT(asks_nothing(221));
	CU_ASSERT(asks(220, 260, 40, AHEAD_FIRST)); /* with another miss between */
}

/* The lines of an array need not begin where pages do: here they are 12 pages and 2,688 bytes
 * apart. */
static void strides_are_in_bytes(void)
{
	enum { LINE = 51840, FIRST = 100 * PAGE_BYTES + 500 };
	struct ahead_pages pages;

	begin();
	for (int64_t line = 0; line < AHEAD_STRIDE_MISSES - 1; line++)
		CU_ASSERT_EQUAL(ahead_on_miss(&ahead, FIRST + line * LINE, 1 << 30).count, 0);
	pages = ahead_on_miss(&ahead, FIRST + 3 * LINE, 1 << 30);
	CU_ASSERT_EQUAL(pages.count, AHEAD_FIRST);
	CU_ASSERT_EQUAL(pages.first, FIRST + 4 * LINE);
	CU_ASSERT_EQUAL(pages.step, LINE);
	/* the run goes on wherever its pages are touched */
	pages = ahead_on_miss(&ahead, (FIRST + 8 * LINE) & ~PAGE_MASK, 1 << 30);
	CU_ASSERT_EQUAL(pages.first, FIRST + 9 * LINE);
	CU_ASSERT_EQUAL(ahead_on_miss(&ahead, FIRST + 20 * LINE - PAGE_BYTES, 1 << 30).count, 0);
	/* it is remembered so, and the pages that were fetched in vain shorten it */
	ahead_vain(&ahead, (FIRST + 6 * LINE) >> PAGE_BITS);
	others(500);
	pages = ahead_on_miss(&ahead, FIRST & ~PAGE_MASK, 1 << 30);
	CU_ASSERT_EQUAL(pages.first, FIRST + LINE);
	CU_ASSERT_EQUAL(pages.count, 5);
}

/* Each line of a column lies on two pages. */
static void columns_of_pairs_make_two_runs(void)
{
	begin();
	for (gfn_t page = 100; page < 220; page += 40)
		misses(page, 1, 2);
	CU_ASSERT(asks(220, 260, 40, AHEAD_FIRST));
	CU_ASSERT(asks(221, 261, 40, AHEAD_FIRST));
	CU_ASSERT(asks_nothing(260)); /* on its way already */
}

static void strides_end_with_the_memory(void)
{
	begin();
	misses(N_PAGES - 150, 40, 3);
	CU_ASSERT(asks_nothing(N_PAGES - 30));
	begin();
	misses(N_PAGES - 200, 40, 3);
	CU_ASSERT(asks(N_PAGES - 80, N_PAGES - 40, 40, 1));
	begin();
	misses(161, -40, 3);
	CU_ASSERT(asks(41, 1, -40, 1));
}

/* A column is remembered by the page that was missed first, and without what came for nothing. */
static void a_column_is_remembered(void)
{
	begin();
	misses(100, 40, 3);
	CU_ASSERT(asks(220, 260, 40, AHEAD_FIRST));
	others(600);
	CU_ASSERT(asks(100, 140, 40, 7));
	ahead_vain(&ahead, 260);
	ahead_vain(&ahead, 225); /* not of the column */
	others(700);
	CU_ASSERT(asks(100, 140, 40, 3));
}

/* The column beside a known one is requested whole; so is one that misses its second page first,
 * since the first was here. */
static void the_next_column_is_known(void)
{
	const uint32_t one_by_one = 1u << MECHANISM_COLUMNS;

	begin();
	ahead.without = one_by_one;
	misses(100, 40, 3);
	CU_ASSERT(asks(220, 260, 40, AHEAD_FIRST));
	CU_ASSERT(asks(101, 141, 40, 7));
	CU_ASSERT(asks(142, 182, 40, 7));
	CU_ASSERT(asks_nothing(227)); /* beside the middle of one */
	CU_ASSERT(asks_nothing(110)); /* not beside one */
	ahead.without = one_by_one | 1u << MECHANISM_RECALL;
	CU_ASSERT(asks_nothing(103));
	begin();
	misses(100, 8, 3); /* columns that are as near to each other as their pages: none */
	CU_ASSERT(asks(124, 132, 8, AHEAD_FIRST));
	CU_ASSERT(asks_nothing(101));
}

static bool asks_columns(gfn_t gfn, uint32_t count, uint32_t wide)
{
	struct ahead_pages pages = miss(gfn);

	if (pages.first == (int64_t)gfn * PAGE_BYTES && pages.count == count && pages.wide == wide)
		return true;
	fprintf(stderr, "a miss of %u asks for %u times %u pages\n", gfn, pages.count, pages.wide);
	return false;
}

/* The columns of an array are requested whole, and more of them together each time. */
static void columns_are_requested_together(void)
{
	begin();
	misses(100, 64, 3);
	CU_ASSERT(asks(292, 356, 64, AHEAD_FIRST));
	CU_ASSERT(asks_columns(101, 8, 2));
	CU_ASSERT(asks_columns(103, 8, 4));
	/* all of these are on their way: at the first place, and below it */
	CU_ASSERT(asks_nothing(104));
	CU_ASSERT(asks_nothing(106));
	CU_ASSERT(asks_nothing(104 + 64));
	CU_ASSERT(asks_nothing(103 + 2 * 64));
	CU_ASSERT(asks_columns(107, 8, 8));
	CU_ASSERT(asks_columns(115, 8, AHEAD_WIDE_MOST));
	CU_ASSERT(asks_columns(123, 8, AHEAD_WIDE_MOST));

	/* that is remembered, too; what came in vain makes it narrower, or shorter */
	others(700);
	CU_ASSERT(asks_columns(107, 8, 8));
	ahead_vain(&ahead, 112 + 3 * 64);
	others(820);
	CU_ASSERT(asks_columns(107, 8, 5));
	ahead_vain(&ahead, 107 + 3 * 64);
	others(940);
	CU_ASSERT(asks_columns(107, 3, 5));
}

/* Not more than a quarter of a row, not beyond the memory, and not more than MAX_AHEAD pages. */
static void columns_have_bounds(void)
{
	begin();
	misses(100, 12, 3);
	CU_ASSERT(asks(136, 148, 12, AHEAD_FIRST));
	CU_ASSERT(asks_columns(101, 8, 2));
	CU_ASSERT(asks_columns(103, 8, 2));
	begin();
	misses(N_PAGES - 260, 64, 3);
	CU_ASSERT(asks(N_PAGES - 68, N_PAGES - 4, 64, 1));
	CU_ASSERT(asks_columns(N_PAGES - 259, 5, 2));
	CU_ASSERT(asks_columns(N_PAGES - 257, 5, 1));
	begin();
	ahead.without = 1u << MECHANISM_COLUMNS;
	misses(100, 64, 3);
	CU_ASSERT(asks(292, 356, 64, AHEAD_FIRST));
	CU_ASSERT(asks(101, 165, 64, 7));

	begin();
	for (int64_t place = 0; place < 1000; place++)
		ahead_on_miss(&ahead, place * 64 * PAGE_BYTES, INT64_MAX);
	for (gfn_t column = 1; column < 64; column++) {
		struct ahead_pages pages = ahead_on_miss(&ahead, column * PAGE_BYTES, INT64_MAX);

		CU_ASSERT(pages.count * pages.wide <= MAX_AHEAD);
	}
}

/* What is farther apart than AHEAD_STRIDE_MOST, or was missed too long ago, makes no run. */
static void strides_have_bounds(void)
{
	const int64_t far = AHEAD_STRIDE_MOST + PAGE_BYTES;

	begin();
	for (int64_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(ahead_on_miss(&ahead, i * far, INT64_MAX).count, 0);
	begin();
	for (int64_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(ahead_on_miss(&ahead, i * (far - PAGE_BYTES), INT64_MAX).count,
				i == 3 ? AHEAD_FIRST : 0);
	begin();
	misses(100, 40, 3);
	for (gfn_t other = 0; other < AHEAD_RECENT; other++)
		CU_ASSERT(asks_nothing(400 + other * (other + 1)));
	CU_ASSERT(asks_nothing(220));
	begin();
	ahead.without = 1u << MECHANISM_STRIDES;
	misses(100, 40, 5);
}

/* MECHANISM_RUNS is off: no page is requested ahead.  MECHANISM_RECALL is off: a run that is known
 * begins anew. */
static void what_is_off_requests_nothing(void)
{
	begin();
	ahead.without = 1u << MECHANISM_RUNS;
	for (gfn_t gfn = 100; gfn < 120; gfn++)
		CU_ASSERT(asks_nothing(gfn));
	begin_run(100, 1);
	CU_ASSERT(asks(102, 103, 1, AHEAD_FIRST));
	ahead.without = 1u << MECHANISM_RECALL;
	others(500); /* the run gives its place to them */
	CU_ASSERT(asks_nothing(100));
	ahead.without = 0;
	others(700);
	CU_ASSERT(asks(100, 101, 1, 2 + AHEAD_FIRST));
}

/* Every page arrives in time, so that the next miss is the first page that was not requested. */
static void a_run_in_time_doubles(void)
{
	gfn_t miss = 102;

	begin_run(100, 1);
	for (uint32_t window = AHEAD_FIRST; window < AHEAD_WINDOW; window *= 2) {
		CU_ASSERT(asks(miss, miss + 1, 1, window));
		miss += window + 1;
	}
	for (int i = 0; i < 3; i++, miss += AHEAD_WINDOW + 1)
		CU_ASSERT(asks(miss, miss + 1, 1, AHEAD_WINDOW));
}

/* The pages arrive late, so that the CPU waits for each: some stay ahead of it, and none is
 * requested twice. */
static void a_run_that_waits_stays_ahead(void)
{
	gfn_t next = 103;

	begin_run(100, 1);
	for (gfn_t missed = 102; missed < 400; missed++) {
		struct ahead_pages pages = miss(missed);

		CU_ASSERT(!pages.count || (pages.first == (int64_t)next * PAGE_BYTES &&
					   pages.step == PAGE_BYTES));
		next += pages.count;
		CU_ASSERT(next > missed + 1 && next - (missed + 1) <= AHEAD_WINDOW);
	}
}

static void runs_go_down_too_and_end_with_the_memory(void)
{
	begin_run(11, -1);
	CU_ASSERT(asks(9, 8, -1, 4));
	CU_ASSERT(asks(4, 3, -1, 4));
	CU_ASSERT(asks_nothing(3));
	CU_ASSERT(asks_nothing(0));
	begin_run(N_PAGES - 5, 1);
	CU_ASSERT(asks(N_PAGES - 3, N_PAGES - 2, 1, 2));
	CU_ASSERT(asks_nothing(N_PAGES - 1));
	begin_run(0, 1);
	CU_ASSERT(asks(2, 3, 1, AHEAD_FIRST));
	begin_run(2, -1);
	CU_ASSERT(asks_nothing(0));
}

static gfn_t first_of(gfn_t run)
{
	return run * 20 + run * run * 10;
}

static void a_few_runs_go_on_beside_each_other(void)
{
	begin();
	for (gfn_t page = 0; page < 2; page++)
		for (gfn_t run = 0; run < AHEAD_RUNS; run++)
			CU_ASSERT(asks_nothing(first_of(run) + page));
	for (gfn_t run = 0; run < AHEAD_RUNS; run++)
		CU_ASSERT(asks(first_of(run) + 2, first_of(run) + 3, 1, AHEAD_FIRST));
	CU_ASSERT(asks_nothing(950)); /* the oldest makes room */
	CU_ASSERT(asks_nothing(first_of(0) + 7));
	CU_ASSERT(asks(first_of(2) + 7, first_of(2) + 8, 1, 2 * AHEAD_FIRST));
}

/* A run up to page 106 is requested at once when page 100 is missed again. */
static void a_run_is_remembered_by_its_first_page(void)
{
	begin_run(100, 1);
	CU_ASSERT(asks(102, 103, 1, AHEAD_FIRST));
	others(200);
	CU_ASSERT(asks(100, 101, 1, 6));
	others(500);
	CU_ASSERT(asks_nothing(101));
}

static void what_came_for_nothing_is_asked_for_no_more(void)
{
	begin_run(11, -1);
	CU_ASSERT(asks(9, 8, -1, AHEAD_FIRST));
	ahead_vain(&ahead, 6);
	ahead_vain(&ahead, 40);
	others(200);
	CU_ASSERT(asks(11, 10, -1, 4)); /* down to 7 */
	ahead_vain(&ahead, 10);
	others(500);
	CU_ASSERT(asks_nothing(11));
}

static void more_than_the_most_is_remembered_but_asked_for_in_parts(void)
{
	gfn_t miss = 102;

	begin_run(100, 1);
	for (uint32_t window = AHEAD_FIRST; window < AHEAD_WINDOW; window *= 2) {
		CU_ASSERT(asks(miss, miss + 1, 1, window));
		miss += window + 1;
	}
	CU_ASSERT(asks(miss, miss + 1, 1, AHEAD_WINDOW));
	others(500);
	CU_ASSERT(asks(100, 101, 1, AHEAD_WINDOW));
	CU_ASSERT(asks(101 + AHEAD_WINDOW, 102 + AHEAD_WINDOW, 1, AHEAD_WINDOW));
}

/* A page that was requested ahead and not used is left out until it has been missed often enough.
 * One that is used pays. */
static void what_was_not_used_is_left_out(void)
{
	static struct miss_history history;
	struct ahead *reads = &history.by_right[PAGE_READ];

	CU_ASSERT(ahead_asks(reads, 77, 5));
	ahead_used(&history, 77);
	ahead_used(&history, 77 + AHEAD_ASKED); /* another frame */
	CU_ASSERT(ahead_asks(reads, 77, 5));
	reads->misses += AHEAD_ON_ITS_WAY;
	CU_ASSERT(!ahead_asks(reads, 77, 5)); /* it may be on its way */
	ahead_used(&history, 77);
	CU_ASSERT(ahead_asks(reads, 77, 5));
	reads->misses += AHEAD_ON_ITS_WAY + 1;
	CU_ASSERT(!ahead_asks(reads, 77, 5));
	ahead_used(&history, 77); /* too late: it had been missed, or this would not be */
	for (int i = 0; i < AHEAD_VAIN_MISSES; i++) {
		CU_ASSERT(!ahead_asks(reads, 77, 5));
		ahead_missed(reads, 77, 5);
	}
	CU_ASSERT(ahead_asks(reads, 77, 5));
	CU_ASSERT(ahead_asks(reads, 77 + AHEAD_ASKED, 5)); /* takes its place */
	CU_ASSERT(ahead_asks(reads, 77, 5));
	ahead_missed(reads, 77, 5); /* it is on its way still */
	CU_ASSERT(ahead_asks(reads, 77, 5));
	CU_ASSERT(ahead_asks(&history.by_right[PAGE_WRITE], 77, 5));
}

/* Frames that are used without an address: `count` from `first` on are named. */
static _Atomic uint8_t rights[N_PAGES];
static gfn_t frames[AHEAD_NAMED_MOST];

static unsigned name(gfn_t first, unsigned count, bool write)
{
	return ahead_named(&ahead, first, count, write, rights, N_PAGES, frames);
}

static bool are(unsigned n, gfn_t first)
{
	for (unsigned i = 0; i < n; i++)
		if (frames[i] != first + i)
			return false;
	return true;
}

static void named_frames_that_are_not_here_are_requested(void)
{
	begin();
	memset((void *)rights, 0, sizeof rights);
	rights[101] = 1;
	rights[102] = 2;
	CU_ASSERT_EQUAL(name(100, 5, true), 4);
	CU_ASSERT(frames[0] == 100 && frames[1] == 101 && frames[2] == 103 && frames[3] == 104);
	CU_ASSERT_EQUAL(name(100, 5, false), 3);
	CU_ASSERT(frames[0] == 100 && frames[1] == 103 && frames[2] == 104);
	CU_ASSERT_EQUAL(name(101, 2, false), 0);
	CU_ASSERT_EQUAL(name(102, 1, true), 0);
	ahead.without = 1u << MECHANISM_RUNS;
	CU_ASSERT_EQUAL(name(100, 5, true), 1);
	CU_ASSERT_EQUAL(frames[0], 100);
	CU_ASSERT_EQUAL(name(102, 1, true), 0);
}

/* What is named beyond the memory, or beyond what one request can hold, is left out. */
static void what_is_named_has_bounds(void)
{
	begin();
	memset((void *)rights, 0, sizeof rights);
	CU_ASSERT_EQUAL(name(N_PAGES - 2, 5, true), 2);
	CU_ASSERT(are(2, N_PAGES - 2));
	CU_ASSERT_EQUAL(name(N_PAGES, 1, true), 0);
	CU_ASSERT_EQUAL(name(UINT32_MAX, 2, true), 0);
	CU_ASSERT_EQUAL(name(0, UINT32_MAX, true), MAX_AHEAD);
	CU_ASSERT(are(MAX_AHEAD, 0));
}

/* Frames that are named one by one make runs as linear pages do. */
static void frames_make_runs(void)
{
	gfn_t miss = 102;

	begin();
	memset((void *)rights, 0, sizeof rights);
	CU_ASSERT_EQUAL(name(100, 1, true), 1);
	CU_ASSERT_EQUAL(name(101, 1, true), 1);
	for (uint32_t window = AHEAD_FIRST; window <= AHEAD_WINDOW; window *= 2) {
		CU_ASSERT_EQUAL(name(miss, 1, true), 1 + window);
		CU_ASSERT(are(1 + window, miss));
		miss += window + 1;
	}
	rights[miss + 1] = 2;
	CU_ASSERT_EQUAL(name(miss, 1, true), AHEAD_WINDOW);
	CU_ASSERT_EQUAL(frames[1], miss + 2);
}

/* Pages 1021 to 1024 of a run: the last one has another page table, or is in a large page. */
static void runs_cross_page_tables(void)
{
	enum { NEXT_TABLE = 0x6000, USED = P | W | U | A | D, IN_TABLE = 1024 };
	static const struct { uint32_t pde, pte; unsigned n; gfn_t last; } rows[] = {
		{ NEXT_TABLE | USED, 77 * PAGE_BYTES | USED, 4, 77 },
		{ NEXT_TABLE | USED, 77 * PAGE_BYTES | P | W | U, 3, 0 }, /* not used yet */
		{ NEXT_TABLE | USED, 0, 3, 0 },
		{ 0, 0, 3, 0 },
		{ USED | PS, 0, 4, 0 },
		{ P | W | U | PS, 0, 3, 0 },
	};
	static uint32_t entries[LINEAR_PAGES];
	static struct miss_history history;
	static _Atomic uint8_t none[RAM_BYTES / PAGE_BYTES];
	struct shadow shadow = { .entry = entries, .ram_pages = RAM_BYTES / PAGE_BYTES };
	enum page_right right = PAGE_READ;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		gfn_t asked[MAX_AHEAD];
		unsigned n = 0;

		fake_reset();
		for (gfn_t page = IN_TABLE - 6; page < IN_TABLE; page++)
			set_pte(page * PAGE_BYTES, page * PAGE_BYTES | USED);
		set32(PAGE_DIR, PAGE_TABLE | USED);
		set32(PAGE_DIR + 4, rows[i].pde);
		set32(NEXT_TABLE, rows[i].pte);
		history = (struct miss_history){ 0 };
		for (gfn_t page = IN_TABLE - 6; page < IN_TABLE - 3; page++)
			n = ahead_frames(&history, &shadow, &fake.v, page * PAGE_BYTES, &right,
					 none, asked);
		CU_ASSERT_EQUAL(n, rows[i].n);
		for (gfn_t k = 0; k < 3; k++)
			CU_ASSERT_EQUAL(asked[k], IN_TABLE - 3 + k);
		CU_ASSERT(n < 4 || asked[3] == rows[i].last);
	}
}

/* Who misses a page of instructions gets those around it; who reads data, does not. */
static void text_comes_in_blocks(void)
{
	static const struct { gva_t gva, eip; uint32_t without, count; int64_t first; } rows[] = {
		{ 0x8048123, 0x8048123, 0, AHEAD_TEXT, 0x8040000 },
		{ 0x804ffff, 0x804ffff, 0, AHEAD_TEXT, 0x8040000 },
		{ 0x8050000, 0x804fffa, 0, AHEAD_TEXT, 0x8050000 }, /* its second part */
		{ 0x8050000, 0x804fff2, 0, AHEAD_TEXT, 0x8050000 }, /* the longest one */
		{ 0x8050000, 0x804fff1, 0, 0, 0 },
		{ 0x8048123, 0x8048124, 0, 0, 0 },
		{ 0xffffffff, 0xffffffff, 0, AHEAD_TEXT, 0xffff0000 },
		{ 0, 0, 0, AHEAD_TEXT, 0 },
		{ 0, 0xfffffffa, 0, AHEAD_TEXT, 0 },
		{ 0x8048123, 0x8048123, 1u << MECHANISM_TEXT, 0, 0 },
		{ 0x8048123, 0x8048123, 1u << MECHANISM_RUNS, 0, 0 },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ahead_pages pages = ahead_text(rows[i].gva, rows[i].eip, rows[i].without);

		CU_ASSERT_EQUAL(pages.count, rows[i].count);
		CU_ASSERT(!pages.count || (pages.first == rows[i].first &&
					   pages.step == PAGE_BYTES && pages.wide == 1));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(three_in_a_row_make_a_run),
		UNIT_TEST(four_at_equal_distances_make_a_run),
		UNIT_TEST(strides_are_in_bytes),
		UNIT_TEST(columns_of_pairs_make_two_runs),
		UNIT_TEST(strides_end_with_the_memory),
		UNIT_TEST(a_column_is_remembered),
		UNIT_TEST(the_next_column_is_known),
		UNIT_TEST(columns_are_requested_together),
		UNIT_TEST(columns_have_bounds),
		UNIT_TEST(strides_have_bounds),
		UNIT_TEST(what_is_off_requests_nothing),
		UNIT_TEST(a_run_in_time_doubles),
		UNIT_TEST(a_run_that_waits_stays_ahead),
		UNIT_TEST(runs_go_down_too_and_end_with_the_memory),
		UNIT_TEST(a_few_runs_go_on_beside_each_other),
		UNIT_TEST(a_run_is_remembered_by_its_first_page),
		UNIT_TEST(what_came_for_nothing_is_asked_for_no_more),
		UNIT_TEST(more_than_the_most_is_remembered_but_asked_for_in_parts),
		UNIT_TEST(what_was_not_used_is_left_out),
		UNIT_TEST(named_frames_that_are_not_here_are_requested),
		UNIT_TEST(what_is_named_has_bounds),
		UNIT_TEST(frames_make_runs),
		UNIT_TEST(runs_cross_page_tables),
		UNIT_TEST(text_comes_in_blocks),
		UNIT_END
	};

	return UNIT_RUN("fetching ahead", tests);
}
