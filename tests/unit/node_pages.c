/* node_pages.c - which pages a host keeps: for how long against requests, and how many. */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include "vmm/node/pages/hold.h"
#include "vmm/node/pages/share.h"

/* --- how long a page stays ------------------------------------------------------------------------------------------- */

enum { HOLD_GFN = 7, US = 1000 };
static const uint64_t HOLD_START = 1000000000;

/* The page goes `away_us` before it comes back. */
static void come_back(struct page_hold *hold, uint64_t *now, uint64_t away_us)
{
	hold_went(hold, HOLD_GFN, *now);
	*now += away_us * US;
	hold_arrived(hold, HOLD_GFN, *now);
}

static void test_hold_between_writers(void)
{
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, true, now), 0); /* nothing is known of it */
	hold_arrived(&hold, HOLD_GFN, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now), HOLD_MIN_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now + 30 * US), HOLD_MIN_US - 30);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now + HOLD_MIN_US * US), 0);
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold.writer_us, 2 * HOLD_MIN_US);
	/* It comes in two steps, to read and then to write: it has come back once. */
	come_back(&hold, &now, 500);
	hold_arrived(&hold, HOLD_GFN, now + 50 * US);
	CU_ASSERT_EQUAL(hold.writer_us, 4 * HOLD_MIN_US);
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold.writer_us, HOLD_MAX_US);
	come_back(&hold, &now, PING_PONG_US + 1);
	CU_ASSERT_EQUAL(hold.writer_us, HOLD_MIN_US);
	come_back(&hold, &now, 500);
	hold_arrived(&hold, HOLD_GFN, now + 50 * US);
	CU_ASSERT_EQUAL(hold.writer_us, 2 * HOLD_MIN_US);
	hold_went(&hold, HOLD_GFN + 1, now); /* another page */
	CU_ASSERT_EQUAL(hold.went_ns, 0);
	hold_arrived(&hold, HOLD_GFN + 1, now);
	CU_ASSERT_EQUAL(hold.writer_us, HOLD_MIN_US);
}

/* Threads that take turns at a page: the next one spins on it, asks when it has lost its copy, and must not wait for a timer. */
static void test_hold_in_turns(void)
{
	enum { NEXT_REQUEST_US = 36 }; /* measured: from the right to write here until the next host's request is here */
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	for (int turn = 0; turn < 5; turn++) {
		come_back(&hold, &now, 250);		       /* the copy, */
		hold_arrived(&hold, HOLD_GFN, now += 60 * US); /* the right to write to it */
		now += NEXT_REQUEST_US * US;
		CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now), 0);
	}
}

static gfn_t next_to_go(struct share *share)
{
	gfn_t gfn;

	return share_excess(share, &gfn) ? gfn : 0;
}

static void test_share(void)
{
	enum { PAGES = 2000, LIMIT = 1000 };
	struct share *share = share_new(PAGES, LIMIT);

	share_came(share, LIMIT - 300);
	for (gfn_t gfn = 1; gfn <= 300; gfn++)
		share_came_copy(share, gfn);
	CU_ASSERT_EQUAL(next_to_go(share), 0);
	share_came_copy(share, 301);
	CU_ASSERT_EQUAL(next_to_go(share), 1); /* fetched longest ago */
	share_went(share, 1);
	CU_ASSERT_EQUAL(next_to_go(share), 0);
	share_came_copy(share, 1); /* fetched again: the newest */
	CU_ASSERT_EQUAL(next_to_go(share), 2);
	share_owned(share, 2);
	share_owned(share, 2);
	CU_ASSERT_EQUAL(next_to_go(share), 3);
	share_went(share, 150);
	share_came(share, 1);
	CU_ASSERT_EQUAL(next_to_go(share), 3);
	for (gfn_t gfn = 3; next_to_go(share); gfn++) {
		CU_ASSERT_EQUAL(next_to_go(share), gfn);
		share_went(share, gfn);
	}
	/* What is owned may be more than the share; then only the newest copies stay. */
	share_came(share, LIMIT);
	for (gfn_t gfn = next_to_go(share); gfn; gfn = next_to_go(share))
		share_went(share, gfn);
	share_went(share, 301);
	share_came_copy(share, 301);
	CU_ASSERT_EQUAL(next_to_go(share), 0);
	share_came_copy(share, 500);
	CU_ASSERT_EQUAL(next_to_go(share), 301 - (SHARE_NEWEST - 1)); /* 150 is not among them */
	share_free(share);
}

static void test_hold_until_run(void)
{
	struct page_hold hold = { 0 };
	const uint64_t now = HOLD_START, late = now + HOLD_RUN_MAX_US * US;

	hold_arrived(&hold, HOLD_GFN, now);
	/* Awaited: asked again and again, but not for ever. */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, now + 500 * US), HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, late - US), HOLD_POLL_US);
	/* The CPU runs now: time for an instruction, or a critical section, from the moment that this is seen. */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, late), HOLD_INSN_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, late + HOLD_INSN_US * US), 0);
	hold_arrived(&hold, HOLD_GFN, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, true, now + 10 * US), HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now + 60 * US), HOLD_SECTION_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now + (60 + HOLD_SECTION_US) * US), 0);
}

int main(void)
{
	CU_pSuite suite;
	unsigned failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return EXIT_FAILURE;
	suite = CU_add_suite("pages that a host keeps", NULL, NULL);
	CU_add_test(suite, "a page between writers", test_hold_between_writers);
	CU_add_test(suite, "a page that is taken in turns does not wait", test_hold_in_turns);
	CU_add_test(suite, "a host keeps to its share", test_share);
	CU_add_test(suite, "a page stays until it is used", test_hold_until_run);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
