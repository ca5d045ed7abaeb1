/* halves.c - two threads on two processors each fill half of a large area, and then read all of it;
 * twice, with the halves exchanged.
 *
 *   halves [MIB]      default 64
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include "tests/guest/check.h"

enum { PAGE = 4096, WORDS = PAGE / 4, ROUNDS = 2 };

static uint32_t *area, pages;
static pthread_barrier_t all;
static bool right[2][ROUNDS];

static uint32_t stamp(uint32_t page, unsigned round)
{
	return page * 2654435761u + round;
}

static void *work(void *number)
{
	unsigned me = (unsigned)(uintptr_t)number;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof set, &set);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t first = me == round % 2 ? 0 : pages / 2;

		for (uint32_t page = first; page < first + pages / 2; page++)
			area[page * WORDS + page % WORDS] = stamp(page, round);
		pthread_barrier_wait(&all);
		right[me][round] = true;
		for (uint32_t page = 0; page < pages; page++)
			if (area[page * WORDS + page % WORDS] != stamp(page, round))
				right[me][round] = false;
		pthread_barrier_wait(&all);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;

	pages = (argc > 1 ? (uint32_t)atoi(argv[1]) : 64) * 256;
	area = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	pthread_barrier_init(&all, NULL, 2);
	if (!expect("a large area", area != MAP_FAILED) ||
	    !expect("a second thread", !pthread_create(&other, NULL, work, (void *)1)))
		return check_result();
	work((void *)0);
	pthread_join(other, NULL);
	expect("each half is what its writer wrote, for both", right[0][0] && right[1][0]);
	expect("and after the halves were changed", right[0][1] && right[1][1]);
	return check_result();
}
