/* dsm_ahead.c - which pages are fetched before they are asked for (dsm/ahead.h). */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include "dsm/ahead.h"

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
	fprintf(stderr, "a miss of %u asks for %u pages from %u on\n", gfn, pages.count, pages.first);
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

/* Every page is in time, so that the next miss is the first that was not asked for. */
static void a_run_in_time_doubles(void)
{
	gfn_t miss = 102;

	begin_run(100, 1);
	for (uint32_t window = AHEAD_FIRST; window < AHEAD_MOST; window *= 2) {
		CU_ASSERT(asks(miss, miss + 1, 1, window));
		miss += window + 1;
	}
	for (int i = 0; i < 3; i++, miss += AHEAD_MOST + 1)
		CU_ASSERT(asks(miss, miss + 1, 1, AHEAD_MOST));
}

/* The pages come late, so that the CPU waits for each: some stay ahead of it, and none is asked for twice. */
static void a_run_that_waits_stays_ahead(void)
{
	gfn_t next = 103;

	begin_run(100, 1);
	for (gfn_t miss = 102; miss < 400; miss++) {
		struct ahead_pages pages = ahead_on_miss(&ahead, miss, N_PAGES);

		CU_ASSERT(!pages.count || (pages.first == next && pages.step == 1));
		next += pages.count;
		CU_ASSERT(next > miss + 1 && next - (miss + 1) <= AHEAD_MOST);
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

int main(void)
{
	CU_pSuite suite;

	CU_initialize_registry();
	suite = CU_add_suite("fetching ahead", NULL, NULL);
	CU_ADD_TEST(suite, three_in_a_row_make_a_run);
	CU_ADD_TEST(suite, a_run_in_time_doubles);
	CU_ADD_TEST(suite, a_run_that_waits_stays_ahead);
	CU_ADD_TEST(suite, runs_go_down_too_and_end_with_the_memory);
	CU_ADD_TEST(suite, a_few_runs_go_on_beside_each_other);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	return CU_get_number_of_failures() || CU_get_error();
}
