/* fresh.c - two threads on two processors look at fresh memory, page by page.
 *
 *   fresh once [MIB]       each page is written to when it has been read: one fault; default 4
 *   fresh looked [MIB]     pages are only read, also more of them than the machine has memory
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "tests/guest/check.h"

enum { PAGE = 4096, WORDS = PAGE / 4, THREADS = 2, FEW = 100 };

static volatile uint32_t *area;
static uint32_t pages;
static bool writes, zeros[THREADS], kept[THREADS];
static pthread_barrier_t both;

static uint32_t stamp(uint32_t page)
{
	return page * 2654435761u + 1;
}

static bool holds(uint32_t first, uint32_t end)
{
	for (uint32_t page = first; page < end; page++)
		if (area[(size_t)page * WORDS + page % WORDS] != stamp(page))
			return false;
	return true;
}

static void *work(void *number)
{
	uint32_t me = (uint32_t)(uintptr_t)number, first = pages / THREADS * me;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	sched_setaffinity(0, sizeof set, &set);
	zeros[me] = true;
	pthread_barrier_wait(&both);
	for (uint32_t page = first; page < first + pages / THREADS; page++) {
		volatile uint32_t *word = area + (size_t)page * WORDS + page % WORDS;

		zeros[me] &= !*word;
		if (writes)
			*word = stamp(page);
	}
	kept[me] = !writes || holds(first, first + pages / THREADS);
	return NULL;
}

static long faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? -1 : usage.ru_minflt;
}

int main(int argc, char **argv)
{
	pthread_t other;
	long before;

	writes = argc > 1 && !strcmp(argv[1], "once");
	pages = (argc > 2 ? (uint32_t)atoi(argv[2]) : 4) * 256;
	area = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_barrier_init(&both, NULL, THREADS);
	before = faults();
	if (!expect("an area", area != MAP_FAILED) ||
	    !expect("a second thread", !pthread_create(&other, NULL, work, (void *)1)))
		return check_result();
	work((void *)0);
	pthread_join(other, NULL);
	expect("fresh memory holds zeros", zeros[0] && zeros[1]);
	if (writes) {
		expect("no page faults twice", faults() - before < (long)pages + FEW);
		expect("each page holds what was written", kept[0] && kept[1]);
	}
	return check_result();
}
