/* remaps.c - long ranges that are mapped anew by two threads at once, each looked at by the other:
 * what a processor reads after the call is what is mapped now
 * (guest-patches/10-tlb-and-apic.patch flushes ranges, however long, and one after the other).
 *
 *   remaps ROUNDS
 *
 * Each thread maps its area to one half of a file, and to the other, in turns.  The first word of a
 * page is the page's number in the file.  `round` is odd while the owner maps.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include "tests/guest/check.h"

enum { PAGES = 300, PAGE = 4096, WORDS = PAGE / sizeof(uint32_t), LOOKS = 16 };

static struct area {
	_Alignas(PAGE) _Atomic uint32_t round;
	volatile uint32_t *words;
	unsigned wrong, seen;
} area[2];
static int file;
static uint32_t rounds;

static void map(struct area *of, uint32_t half)
{
	void *at = mmap((void *)of->words, PAGES * PAGE, PROT_READ, MAP_SHARED |
			(of->words ? MAP_FIXED : 0), file, (off_t)half * PAGES * PAGE);

	if (at == MAP_FAILED)
		expect("an area can be mapped", at != MAP_FAILED);
	of->words = at;
}

static bool is_right(const struct area *of, uint32_t page, uint32_t round)
{
	return of->words[page * WORDS] == page + round / 2 % 2 * PAGES;
}

/* Looks at some pages of the other thread's area, unless that is being mapped meanwhile. */
static void look(struct area *me, const struct area *other, uint32_t from)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint32_t page = (from + i * 19) % PAGES, before = atomic_load(&other->round);
		bool right = is_right(other, page, before);

		if (before % 2 || atomic_load(&other->round) != before)
			continue;
		me->seen++;
		me->wrong += !right;
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
		map(me, i % 2);
		atomic_fetch_add(&me->round, 1);
		for (uint32_t page = 0; page < PAGES; page += 7)
			me->wrong += !is_right(me, page, 2 * i);
		look(me, other, i);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	uint32_t page[WORDS] = { 0 };

	rounds = argc == 2 ? (uint32_t)atoi(argv[1]) : 0;
	file = open("/tmp/remaps", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (uint32_t i = 0; i < 2 * PAGES; i++) {
		page[0] = i;
		if (write(file, page, PAGE) != PAGE)
			return 1;
	}
	map(&area[0], 0);
	map(&area[1], 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, &area[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	expect("a thread sees its own area as it has mapped it, and the other's",
	       !area[0].wrong && !area[1].wrong);
	expect("the areas were looked at", area[0].seen && area[1].seen);
	return check_result();
}
