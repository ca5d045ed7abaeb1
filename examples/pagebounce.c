/* pagebounce.c - threads take turns at one page: the price of handing a page from one processor to
 * another.
 *
 *   pagebounce [THREADS [HANDOVERS]]
 *
 * Each thread is bound to a processor of its own as far as there are some.  A word in the page says
 * whose turn it is; the one whose turn it is writes a stamp into the page, checks the one of its
 * predecessor, and passes the turn on.  On one host a handover moves a cache line; between hosts it
 * moves a page, and this is what one remote fault costs.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 32, PAGE = 4096, SPINS_BEFORE_YIELD = 200 };

static struct {
	_Alignas(PAGE) _Atomic uint32_t
		turn; /* counts handovers; the thread number turn % threads may go on */
	uint32_t stamp;
	char rest[PAGE - 8];
} page;

static unsigned threads = 2;
static uint32_t handovers = 1000;
static _Atomic unsigned errors;

/* Also yields, so that threads that share a processor make progress. */
static void wait_for_turn(uint32_t turn)
{
	for (unsigned spins = 0; page.turn != turn; spins++)
		if (spins % SPINS_BEFORE_YIELD == SPINS_BEFORE_YIELD - 1)
			sched_yield();
		else
			__builtin_ia32_pause();
}

static void *take_turns(void *number)
{
	unsigned me = (unsigned)(uintptr_t)number;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me % (unsigned)cpus, &set);
	sched_setaffinity(0, sizeof set, &set);
	for (uint32_t turn = me; turn < handovers; turn += threads) {
		wait_for_turn(turn);
		if (page.stamp != turn * 2654435761u)
			errors++;
		page.stamp = (turn + 1) * 2654435761u;
		page.turn = turn + 1;
	}
	return NULL;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	pthread_t id[MAX_THREADS];
	double start;

	if (argc > 1)
		threads = (unsigned)atoi(argv[1]);
	if (argc > 2)
		handovers = (uint32_t)atoi(argv[2]);
	if (argc > 3 || threads < 1 || threads > MAX_THREADS || handovers < 1) {
		fprintf(stderr, "usage: pagebounce [THREADS [HANDOVERS]]    THREADS up to %d\n",
			MAX_THREADS);
		return 2;
	}
	start = now_ns();
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&id[i], NULL, take_turns, (void *)(uintptr_t)i)) {
			fprintf(stderr, "pagebounce: cannot create a thread\n");
			return 1;
		}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	printf("%u threads, %u handovers, %u errors\n", threads, handovers, errors);
	printf("%.0f ns per handover\n", (now_ns() - start) / handovers);
	return errors ? 1 : 0;
}
