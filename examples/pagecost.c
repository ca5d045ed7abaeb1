/* pagecost.c - what a page costs a program whose threads run on two processors, measured from
 * inside: bench/pages runs it on two hosts.
 *
 *   pagecost fetch computing|halted|fetching [PAGES]
 *   pagecost bulk read|write|upgrade [PAGES [ROUNDS]]
 *   pagecost barrier [ROUNDS]
 *
 * fetch    Thread 0 reads pages that thread 1 has written, in an order that makes no runs, while
 *          thread 1 computes, sleeps, or reads pages of thread 0 in the same way.
 * bulk     Thread 0 reads, writes, or reads and then writes all pages in order; only the last
 *          step is timed.
 * barrier  Two threads meet at an OpenMP barrier.
 *
 * It prints one line: "NS ns median, NS ns 99th" for a fetch, "NS ns each" for the others.
 */
#include <omp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 4, MOST_PAGES = 1 << 15 };

enum other { COMPUTING, HALTED, FETCHING, OTHERS };
static const char *const other_names[] = { "computing", "halted", "fetching" };
enum bulk { READ, WRITE, UPGRADE, BULKS };
static const char *const bulk_names[] = { "read", "write", "upgrade" };

struct options { enum other other; enum bulk bulk; uint32_t pages, rounds; };

/* On a page of its own: thread 1 reads it while thread 0 measures. */
static struct { _Alignas(PAGE) _Atomic uint32_t value; } stop;
static volatile uint32_t sink;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void bind_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof set, &set);
}

static uint32_t *pages_new(uint32_t pages)
{
	void *area = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED) {
		fprintf(stderr, "pagecost: no memory for %u pages\n", pages);
		exit(1);
	}
	return area;
}

static void write_all(uint32_t *area, uint32_t pages)
{
	for (uint32_t i = 0; i < pages; i++)
		area[i * WORDS]++;
}

static void read_all(const uint32_t *area, uint32_t pages)
{
	for (uint32_t i = 0; i < pages; i++)
		sink += area[i * WORDS];
}

/* Returns the numbers below `pages` in an order without equal distances, which would be fetched
 * ahead. */
static uint32_t *order_new(uint32_t pages)
{
	uint32_t *order = calloc(pages, sizeof *order), random = 1;

	if (!order)
		exit(1);
	for (uint32_t i = 0; i < pages; i++) {
		uint32_t at;

		random = random * 1664525 + 1013904223;
		at = (random >> 8) % (i + 1);
		order[i] = order[at];
		order[at] = i;
	}
	return order;
}

/* Reads each page once. */
static void fetch_all(const uint32_t *area, uint32_t pages, const uint32_t *order, double *ns)
{
	for (uint32_t i = 0; i < pages; i++) {
		const uint32_t *word = area + order[i] * WORDS;
		double start = now_ns();

		sink += *word;
		ns[i] = now_ns() - start;
	}
}

static void be_other(const struct options *o, const uint32_t *area, const uint32_t *order,
		     double *ns, int wake)
{
	char byte;

	if (o->other == FETCHING)
		fetch_all(area, o->pages, order, ns);
	else if (o->other == HALTED)
		sink += (uint32_t)read(wake, &byte, 1);
	else
		while (!stop.value)
			sink++;
}

static void fetch(const struct options *o)
{
	uint32_t *area[2] = { pages_new(o->pages), pages_new(o->pages) };
	double *ns[2] = { calloc(o->pages, sizeof(double)), calloc(o->pages, sizeof(double)) };
	int wake[2];

	if (!ns[0] || !ns[1] || pipe(wake))
		exit(1);
#pragma omp parallel num_threads(2)
	{
		int me = omp_get_thread_num();
		uint32_t *order;

		bind_to((unsigned)me);
		order = order_new(o->pages); /* each has its own */
		memset(ns[me], 0, o->pages * sizeof(double)); /* not during the measurement */
		write_all(area[!me], o->pages);
#pragma omp barrier
		if (me) {
			be_other(o, area[1], order, ns[1], wake[0]);
		} else {
			if (o->other == HALTED)
				usleep(20000);
			fetch_all(area[0], o->pages, order, ns[0]);
			stop.value = 1;
			sink += (uint32_t)write(wake[1], "", 1);
		}
	}
	qsort(ns[0], o->pages, sizeof(double), by_size);
	printf("%.0f ns median, %.0f ns 99th\n", ns[0][o->pages / 2],
	       ns[0][o->pages - 1 - o->pages / 100]);
}

static void bulk(const struct options *o)
{
	uint32_t *area = pages_new(o->pages);
	double ns = 0;

#pragma omp parallel num_threads(2)
	{
		int me = omp_get_thread_num();

		bind_to((unsigned)me);
		for (uint32_t round = 0; round < o->rounds; round++) {
			if (me)
				write_all(area, o->pages);
#pragma omp barrier
			if (!me) {
				double start;

				if (o->bulk == UPGRADE)
					read_all(area, o->pages);
				start = now_ns();
				if (o->bulk == READ)
					read_all(area, o->pages);
				else
					write_all(area, o->pages);
				ns += now_ns() - start;
			}
#pragma omp barrier
		}
	}
	printf("%.0f ns each\n", ns / o->rounds / o->pages);
}

/* libgomp allocates its barrier next, and this sees to it that it begins near the start of a page.
 * Elsewhere, in one of 64 places, the barrier's two cache lines are on two pages, and it takes
 * three times as long. */
static void begin_page(void)
{
	char *here = malloc(2 * PAGE); /* more than any free block: what follows it is free */

	if (!here || !malloc(PAGE - (uintptr_t)here % PAGE))
		exit(1);
}

static void barrier(const struct options *o)
{
	double start = 0, end = 0;
	uint32_t rounds = o->rounds;

	begin_page();

	/* Each thread has its own copy: `o` is on the stack of thread 0, which each call writes to,
	 * and between hosts that page would cost as much as the barrier. */
#pragma omp parallel num_threads(2) firstprivate(rounds)
	{
		bind_to((unsigned)omp_get_thread_num());
#pragma omp barrier
		if (!omp_get_thread_num())
			start = now_ns();
		for (uint32_t round = 0; round < rounds; round++) {
#pragma omp barrier
		}
		if (!omp_get_thread_num())
			end = now_ns();
	}
	printf("%.0f ns each\n", (end - start) / o->rounds);
}

static unsigned number_of(const char *word, const char *const *names, unsigned n)
{
	unsigned i = 0;

	while (i < n && (!word || strcmp(word, names[i])))
		i++;
	return i;
}

static uint32_t count_of(const char *word, uint32_t most, uint32_t otherwise)
{
	long value = word ? atol(word) : (long)otherwise;

	return value < 1 || value > (long)most ? 0 : (uint32_t)value;
}

static int usage(void)
{
	fprintf(stderr, "usage: pagecost fetch computing|halted|fetching [PAGES]\n"
		"       pagecost bulk read|write|upgrade [PAGES [ROUNDS]]\n"
		"       pagecost barrier [ROUNDS]    PAGES from 1 to %d\n", MOST_PAGES);
	return 2;
}

int main(int argc, char **argv)
{
	const char *word[4] = { NULL };
	struct options o;

	for (int i = 1; i < argc && i <= 4; i++)
		word[i - 1] = argv[i];
	if (argc < 2 || argc > 5)
		return usage();
	o.other = number_of(word[1], other_names, OTHERS);
	o.bulk = number_of(word[1], bulk_names, BULKS);
	o.pages = count_of(word[2], MOST_PAGES, 1000);
	o.rounds = count_of(word[3], 1000, 4);
	if (!strcmp(word[0], "fetch") && o.other < OTHERS && o.pages && argc < 5)
		fetch(&o);
	else if (!strcmp(word[0], "bulk") && o.bulk < BULKS && o.pages && o.rounds)
		bulk(&o);
	else if (!strcmp(word[0], "barrier") && argc < 4 &&
		 (o.rounds = count_of(word[1], 1000000, 1000)))
		barrier(&o);
	else
		return usage();
	return 0;
}
