/* vcpu_ahead.c - which pages are fetched before they are asked for (vcpu/ahead.h). */
#include <string.h>

#include "tests/unit/unit.h"
#include "vcpu/ahead.h"

enum { N_PAGES = 1000 };

static struct ahead ahead;

static void begin(void)
{
	ahead = (struct ahead){ 0 };
}

/* A miss asks for `count` pages from `first` on. */
static bool asks(gfn_t gfn, gfn_t first, int step, uint32_t count)
{
	struct ahead_pages pages = ahead_on_miss(&ahead, gfn, N_PAGES);

	if (pages.count == count && (!count || (pages.first == first && pages.step == step)))
		return true;
	fprintf(stderr, "a miss of %u asks for %u pages from %u on\n", gfn, pages.count,
		pages.first);
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
	for (gfn_t gfn = 500; gfn < 500 + 16 * AHEAD_RUNS; gfn += 16)
		CU_ASSERT(asks_nothing(gfn)); /* the run gives its place to others */
	CU_ASSERT(asks_nothing(100));
	ahead.without = 0;
	for (gfn_t gfn = 700; gfn < 700 + 16 * AHEAD_RUNS; gfn += 16)
		CU_ASSERT(asks_nothing(gfn));
	CU_ASSERT(asks(100, 101, 1, 2 + AHEAD_FIRST));
}

/* Every page arrives in time, so that the next miss is the first page that was not requested. */
static void a_run_in_time_doubles(void)
{
	gfn_t miss = 102;

	begin_run(100, 1);
	for (uint32_t window = AHEAD_FIRST; window < MAX_AHEAD; window *= 2) {
		CU_ASSERT(asks(miss, miss + 1, 1, window));
		miss += window + 1;
	}
	for (int i = 0; i < 3; i++, miss += MAX_AHEAD + 1)
		CU_ASSERT(asks(miss, miss + 1, 1, MAX_AHEAD));
}

/* The pages arrive late, so that the CPU waits for each: some stay ahead of it, and none is
 * requested twice. */
static void a_run_that_waits_stays_ahead(void)
{
	gfn_t next = 103;

	begin_run(100, 1);
	for (gfn_t miss = 102; miss < 400; miss++) {
		struct ahead_pages pages = ahead_on_miss(&ahead, miss, N_PAGES);

		CU_ASSERT(!pages.count || (pages.first == next && pages.step == 1));
		next += pages.count;
		CU_ASSERT(next > miss + 1 && next - (miss + 1) <= MAX_AHEAD);
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

static void a_few_runs_go_on_beside_each_other(void)
{
	begin();
	for (gfn_t page = 0; page < 2; page++)
		for (gfn_t run = 0; run < AHEAD_RUNS; run++)
			CU_ASSERT(asks_nothing(run * 100 + page));
	for (gfn_t run = 0; run < AHEAD_RUNS; run++)
		CU_ASSERT(asks(run * 100 + 2, run * 100 + 3, 1, AHEAD_FIRST));
	CU_ASSERT(asks_nothing(950)); /* the oldest makes room */
	CU_ASSERT(asks_nothing(7));
	CU_ASSERT(asks(207, 208, 1, 2 * AHEAD_FIRST));
}

/* A run up to page 106 is requested at once when page 100 is missed again. */
static void a_run_is_remembered_by_its_first_page(void)
{
	begin_run(100, 1);
	CU_ASSERT(asks(102, 103, 1, AHEAD_FIRST));
	for (gfn_t other = 0; other < AHEAD_RUNS; other++)
		CU_ASSERT(asks_nothing(200 + 10 * other));
	CU_ASSERT(asks(100, 101, 1, 6));
	for (gfn_t other = 0; other < AHEAD_RUNS; other++)
		CU_ASSERT(asks_nothing(500 + 10 * other));
	CU_ASSERT(asks_nothing(101));
}

static void what_came_for_nothing_is_asked_for_no_more(void)
{
	begin_run(11, -1);
	CU_ASSERT(asks(9, 8, -1, AHEAD_FIRST));
	ahead_vain(&ahead, 6);
	ahead_vain(&ahead, 40);
	for (gfn_t other = 0; other < AHEAD_RUNS; other++)
		CU_ASSERT(asks_nothing(200 + 10 * other));
	CU_ASSERT(asks(11, 10, -1, 4)); /* down to 7 */
	ahead_vain(&ahead, 10);
	for (gfn_t other = 0; other < AHEAD_RUNS; other++)
		CU_ASSERT(asks_nothing(500 + 10 * other));
	CU_ASSERT(asks_nothing(11));
}

static void more_than_the_most_is_remembered_but_asked_for_in_parts(void)
{
	gfn_t miss = 102;

	begin_run(100, 1);
	for (uint32_t window = AHEAD_FIRST; window < MAX_AHEAD; window *= 2) {
		CU_ASSERT(asks(miss, miss + 1, 1, window));
		miss += window + 1;
	}
	CU_ASSERT(asks(miss, miss + 1, 1, MAX_AHEAD));
	for (gfn_t other = 0; other < AHEAD_RUNS; other++)
		CU_ASSERT(asks_nothing(500 + 10 * other));
	CU_ASSERT(asks(100, 101, 1, MAX_AHEAD));
	CU_ASSERT(asks(101 + MAX_AHEAD, 102 + MAX_AHEAD, 1, MAX_AHEAD));
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
	for (uint32_t window = AHEAD_FIRST; window <= MAX_AHEAD; window *= 2) {
		CU_ASSERT_EQUAL(name(miss, 1, true), 1 + window);
		CU_ASSERT(are(1 + window, miss));
		miss += window + 1;
	}
	rights[miss + 1] = 2;
	CU_ASSERT_EQUAL(name(miss, 1, true), MAX_AHEAD);
	CU_ASSERT_EQUAL(frames[1], miss + 2);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(three_in_a_row_make_a_run),
		UNIT_TEST(what_is_off_requests_nothing),
		UNIT_TEST(a_run_in_time_doubles),
		UNIT_TEST(a_run_that_waits_stays_ahead),
		UNIT_TEST(runs_go_down_too_and_end_with_the_memory),
		UNIT_TEST(a_few_runs_go_on_beside_each_other),
		UNIT_TEST(a_run_is_remembered_by_its_first_page),
		UNIT_TEST(what_came_for_nothing_is_asked_for_no_more),
		UNIT_TEST(more_than_the_most_is_remembered_but_asked_for_in_parts),
		UNIT_TEST(named_frames_that_are_not_here_are_requested),
		UNIT_TEST(what_is_named_has_bounds),
		UNIT_TEST(frames_make_runs),
		UNIT_END
	};

	return UNIT_RUN("fetching ahead", tests);
}
