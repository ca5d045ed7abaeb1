/* node_starts.c - which pages are named to a host whose CPU starts. */
#include "tests/unit/unit.h"
#include "vmm/node/pages/starts.h"

enum { PAGES = 600 };

/* Page n: the hosts with copies of it. */
static uint32_t with_copy[PAGES];
static struct starts starts;
static gfn_t named[STARTS_MOST];

static uint32_t copies(const void *ctx, gfn_t gfn)
{
	(void)ctx;
	return with_copy[gfn];
}

static uint32_t start_on(unsigned host)
{
	return starts_choose(&starts, host, copies, NULL, named);
}

static void give(unsigned host, gfn_t gfn)
{
	with_copy[gfn] |= 1u << host;
	starts_note(&starts, host, gfn);
}

static void what_the_last_one_still_has_is_named(void)
{
	starts = (struct starts){ 0 };
	give(1, 10); /* nothing was started yet */
	CU_ASSERT_EQUAL(start_on(1), 0);
	give(1, 11);
	give(2, 12);
	give(1, 9);
	give(1, 13);
	give(1, 14);
	give(2, 14);
	with_copy[9] = 1u << 3; /* host 1 has lost it */
	CU_ASSERT_EQUAL(start_on(2), 2);
	CU_ASSERT_EQUAL(named[0], 11);
	CU_ASSERT_EQUAL(named[1], 13);
	give(2, 11);
	give(1, 15);
	CU_ASSERT_EQUAL(start_on(0), 1);
	CU_ASSERT_EQUAL(named[0], 11);
	CU_ASSERT_EQUAL(start_on(3), 0);
}

static void a_second_cpu_of_a_host_needs_none(void)
{
	starts = (struct starts){ 0 };
	start_on(1);
	give(1, 20);
	CU_ASSERT_EQUAL(start_on(1), 0);
	give(1, 21);
	CU_ASSERT_EQUAL(start_on(2), 2);
}

static void there_is_an_end_to_them(void)
{
	starts = (struct starts){ 0 };
	start_on(1);
	for (gfn_t gfn = 0; gfn < PAGES; gfn++)
		give(1, gfn);
	for (gfn_t gfn = 0; gfn < PAGES; gfn++)
		with_copy[gfn] = 1u << 1;
	CU_ASSERT_EQUAL(start_on(2), STARTS_MOST);
	CU_ASSERT_EQUAL(named[STARTS_MOST - 1], STARTS_MOST - 1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(what_the_last_one_still_has_is_named),
		UNIT_TEST(a_second_cpu_of_a_host_needs_none),
		UNIT_TEST(there_is_an_end_to_them),
		UNIT_END
	};

	return UNIT_RUN("node_starts", tests);
}
