/* discards.c - two threads of a process that discard long ranges at once, each looked at by the
 * other: what was discarded is zero on both processors
 * (guest-patches/10-tlb-and-apic.patch flushes ranges, however long, and one after the other).
 *
 *   discards ROUNDS
 *
 * Each thread fills its area and discards it, in turns.  `round` is odd meanwhile; when it is even
 * the area is zero.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include "tests/guest/check.h"

enum { PAGES = 300, PAGE = 4096, WORDS = PAGE / sizeof(uint32_t) };

static struct area {
	_Alignas(PAGE) _Atomic uint32_t round;
	_Atomic bool done;
	volatile uint32_t *words;
	unsigned stale, seen;
} area[2];
static uint32_t rounds;

/* Reads a third of the other thread's pages, also while they are filled, so that they are mapped
 * here. */
static void look(struct area *me, const struct area *other)
{
	for (uint32_t page = 0; page < PAGES; page += 3) {
		uint32_t before = atomic_load(&other->round), word = other->words[page * WORDS];

		if (before % 2 || atomic_load(&other->round) != before)
			continue;
		me->seen++;
		me->stale += word != 0;
	}
}

static void *work(void *arg)
{
	struct area *me = arg, *other = &area[me == area];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me - area, &set);
	sched_setaffinity(0, sizeof set, &set);
	for (uint32_t i = 1; i <= rounds; i++) {
		atomic_fetch_add(&me->round, 1);
		for (uint32_t page = 0; page < PAGES; page++)
			me->words[page * WORDS] = i;
		look(me, other);
		madvise((void *)me->words, PAGES * PAGE, MADV_DONTNEED);
		atomic_fetch_add(&me->round, 1);
		for (uint32_t page = 0; page < PAGES; page += 7)
			me->stale += me->words[page * WORDS] != 0;
		look(me, other);
	}
	/* In all looks so far the other thread may have been filling its area. */
	atomic_store(&me->done, true);
	while (!atomic_load(&other->done))
		usleep(1000);
	look(me, other);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];

	rounds = argc == 2 ? (uint32_t)atoi(argv[1]) : 0;
	for (int i = 0; i < 2; i++) {
		area[i].words = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (area[i].words == MAP_FAILED)
			return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, &area[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	expect("what was discarded is zero on both processors", !area[0].stale && !area[1].stale);
	expect("the areas were looked at", area[0].seen && area[1].seen);
	return check_result();
}
