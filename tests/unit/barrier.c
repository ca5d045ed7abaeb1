/* barrier.c - the counts of barriers over hosts (base/barrier.h). */
#include "base/barrier.h"

#include "base/hostshm.h"
#include "tests/unit/unit.h"

static const struct barrier_key one = { 5, 0x123456789abcdefull };
static const struct barrier_key two = { 5, 0x123456789abcdeeull };
static const struct barrier_key three = { 6, 0x123456789abcdefull };

/* What is not told is not there, and counts never go back. */
static void sums(void)
{
	struct barrier_table table = { 0 };

	CU_ASSERT(!barrier_reached(&table, &one, 1));
	barrier_note(&table, &one, 0, 4);
	CU_ASSERT(barrier_reached(&table, &one, 4) && !barrier_reached(&table, &one, 5));
	barrier_note(&table, &one, BARRIER_PLACES - 1, 3);
	CU_ASSERT(barrier_reached(&table, &one, 7) && !barrier_reached(&table, &one, 8));
	barrier_note(&table, &one, 0, 2);
	CU_ASSERT(barrier_reached(&table, &one, 7));
	for (unsigned i = 0; i < BARRIER_PLACES; i++)
		barrier_note(&table, &one, i, BARRIER_MOST);
	CU_ASSERT(barrier_reached(&table, &one, BARRIER_MOST));
}

static void nothing_is_reached(void)
{
	struct barrier_table table = { 0 };

	CU_ASSERT(barrier_reached(&table, &one, 0));
}

/* Barriers of one directory, and of one name, have nothing in common. */
static void keys(void)
{
	struct barrier_table table = { 0 };

	barrier_note(&table, &one, 1, 9);
	CU_ASSERT(!barrier_reached(&table, &two, 1) && !barrier_reached(&table, &three, 1));
	barrier_note(&table, &two, 1, 3);
	barrier_note(&table, &three, 1, 5);
	CU_ASSERT(barrier_reached(&table, &one, 9) && !barrier_reached(&table, &one, 10));
	CU_ASSERT(barrier_reached(&table, &two, 3) && !barrier_reached(&table, &two, 4));
	CU_ASSERT(barrier_reached(&table, &three, 5) && !barrier_reached(&table, &three, 6));
}

/* A slot passes to another barrier with nothing of the last one in it. */
static void least_recent_goes(void)
{
	struct barrier_table table = { 0 };
	struct barrier_key key = { 1, 0 };

	for (key.serial = 0; key.serial < BARRIER_SLOTS; key.serial++)
		barrier_note(&table, &key, 2, 7);
	key.serial = 0;
	barrier_note(&table, &key, 3, 1);
	barrier_note(&table, &one, 4, 1);
	CU_ASSERT(barrier_reached(&table, &one, 1) && !barrier_reached(&table, &one, 2));
	CU_ASSERT(barrier_reached(&table, &key, 8));
	key.serial = 1;
	CU_ASSERT(!barrier_reached(&table, &key, 1));
	for (key.serial = 2; key.serial < BARRIER_SLOTS; key.serial++)
		CU_ASSERT(barrier_reached(&table, &key, 7));
}

static void passing_slot_is_not_read(void)
{
	struct barrier_table table = { 0 };

	barrier_note(&table, &one, 0, 4);
	for (unsigned i = 0; i < BARRIER_SLOTS; i++)
		atomic_fetch_add(&table.slot[i].version, 1);
	CU_ASSERT(!barrier_reached(&table, &one, 4));
}

static void bounds(void)
{
	static const struct { struct barrier_call call; bool sound; } cases[] = {
		{ { .place = 0 }, true },
		{ { .place = BARRIER_PLACES - 1 }, true },
		{ { .place = BARRIER_PLACES }, false },
		{ { .place = UINT32_MAX }, false },
		{ { .count = BARRIER_MOST, .sum = BARRIER_MOST }, true },
		{ { .count = BARRIER_MOST + 1u }, false },
		{ { .sum = BARRIER_MOST + 1u }, false },
		{ { .count = UINT32_MAX, .sum = UINT32_MAX }, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_EQUAL(barrier_call_is_sound(&cases[i].call), cases[i].sound);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(sums),
		UNIT_TEST(nothing_is_reached),
		UNIT_TEST(keys),
		UNIT_TEST(least_recent_goes),
		UNIT_TEST(passing_slot_is_not_read),
		UNIT_TEST(bounds),
		UNIT_END
	};

	return UNIT_RUN("barrier", tests);
}
