/* pagestream.c - one thread fills a large area, a thread on another processor reads it: what a page
 * costs that is read in a run.
 *
 *   pagestream [MIB [ROUNDS [up|down|mixed]]]
 *
 * The first thread writes a stamp at both ends of each page, the second checks both, in this order
 * or another.  Between two hosts every page that is read is fetched, and every page that is written
 * again is taken back.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 4, MOST_MIB = 512, STRIDE = 1000003 };

static uint32_t *area;
static uint32_t pages = 16 * 256, rounds = 3;
static enum { UP, DOWN, MIXED } order;
static pthread_barrier_t turn;
static uint32_t errors;
static double written_ns, read_ns;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bind_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void write_all(uint32_t round)
{
	for (uint32_t i = 0; i < pages; i++)
		area[i * WORDS] = area[i * WORDS + WORDS - 1] = i + round;
}

/* `mixed` visits each page once, far from the last one: the stride is a prime beyond any number of
 * pages. */
static uint32_t visited(uint32_t step)
{
	switch (order) {
	case DOWN:
		return pages - 1 - step;
	case MIXED:
		return (uint32_t)((uint64_t)step * STRIDE % pages);
	default:
		return step;
	}
}

static void read_all(uint32_t round)
{
	for (uint32_t step = 0; step < pages; step++) {
		uint32_t i = visited(step);

		if (area[i * WORDS] != i + round || area[i * WORDS + WORDS - 1] != i + round)
			errors++;
	}
}

static void *read_rounds(void *unused)
{
	(void)unused;
	bind_to(1);
	for (uint32_t round = 0; round < rounds; round++) {
		double start;

		pthread_barrier_wait(&turn);
		start = now_ns();
		read_all(round);
		read_ns += now_ns() - start;
		pthread_barrier_wait(&turn);
	}
	return NULL;
}

static void write_rounds(void)
{
	bind_to(0);
	for (uint32_t round = 0; round < rounds; round++) {
		double start = now_ns();

		write_all(round);
		written_ns += now_ns() - start;
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "up", "down", "mixed" };
	uint32_t mib = argc > 1 ? (uint32_t)atoi(argv[1]) : 16;
	pthread_t reader;

	if (argc > 2)
		rounds = (uint32_t)atoi(argv[2]);
	if (argc > 3)
		while (order <= MIXED && strcmp(argv[3], names[order]))
			order++;
	if (argc > 4 || mib < 1 || mib > MOST_MIB || rounds < 1 || order > MIXED) {
		fprintf(stderr,
			"usage: pagestream [MIB [ROUNDS [up|down|mixed]]]    MIB up to %d\n",
			MOST_MIB);
		return 2;
	}
	pages = mib * 256;
	area = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (area == MAP_FAILED || pthread_barrier_init(&turn, NULL, 2) ||
	    pthread_create(&reader, NULL, read_rounds, NULL)) {
		fprintf(stderr, "pagestream: no memory, or no thread\n");
		return 1;
	}
	write_rounds();
	pthread_join(reader, NULL);
	printf("%u pages, %u rounds %s, %u errors\n", pages, rounds, names[order], errors);
	printf("%.0f ns per page written, %.0f ns per page read\n", written_ns / rounds / pages,
	       read_ns / rounds / pages);
	return errors ? 1 : 0;
}
