/* npb.c - see npb.h. */
#include "npb.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char classes[] = "SWA";

static _Noreturn void usage(const char *name)
{
	fprintf(stderr, "usage: %s [S|W|A] [--threads 1..%d]\n", name, NPB_MAX_THREADS);
	exit(2);
}

int npb_parse(int argc, char **argv, const char *name)
{
	int class = 0;
	const char *found;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--threads") && i + 1 < argc)
			omp_set_num_threads(atoi(argv[++i]) > 0 ? atoi(argv[i]) :
								  NPB_MAX_THREADS + 1);
		else if (strlen(argv[i]) == 1 && (found = strchr(classes, argv[i][0] & ~0x20)))
			class = (int)(found - classes);
		else
			usage(name);
	}
	if (omp_get_max_threads() > NPB_MAX_THREADS)
		usage(name);
	omp_set_dynamic(0);
	return class;
}

int npb_report(const char *name, int class, double seconds, double mops, bool verified)
{
	printf("%s class %c: %d threads\n", name, classes[class], omp_get_max_threads());
	printf("time            %.3f s\n", seconds);
	printf("rate            %.2f Mop/s\n", mops / seconds);
	printf("verification    %s\n", verified ? "SUCCESSFUL" : "FAILED");
	return verified ? 0 : 1;
}

bool npb_compare(const char *what, double got, double published, double tolerance)
{
	bool good = fabs((got - published) / published) <= tolerance; /* false for NaN */

	printf("%-15s %.13e  published %.13e%s\n", what, got, published, good ? "" : "  DIFFERS");
	return good;
}

void *npb_allocate(size_t elements, size_t size)
{
	void *memory = mmap(NULL, elements * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		fprintf(stderr, "no memory for %zu elements of %zu bytes\n", elements, size);
		exit(1);
	}
	return memory;
}

/* The products wrap at 2^64, a multiple of the modulus. */
uint64_t npb_power(uint64_t a, uint64_t n)
{
	uint64_t result = 1;

	for (; n; n >>= 1, a = a * a & npb_modulus_mask)
		if (n & 1)
			result = result * a & npb_modulus_mask;
	return result;
}

uint64_t npb_skip(uint64_t seed, uint64_t n)
{
	return seed * npb_power(npb_multiplier, n) & npb_modulus_mask;
}

struct npb_tile npb_tile(int first, int end)
{
	int64_t total = end - first, thread = omp_get_thread_num(), threads = omp_get_num_threads();

	return (struct npb_tile){ first + (int)(total * thread / threads),
				  first + (int)(total * (thread + 1) / threads) };
}

struct npb_tile npb_with_boundary(struct npb_tile tile, int n)
{
	if (omp_get_thread_num() == 0)
		tile.first = 0;
	if (omp_get_thread_num() == omp_get_num_threads() - 1)
		tile.end = n;
	return tile;
}

/* A thread's contribution to the present sum and to the one before: a slow thread may still be
 * reading that. */
static struct {
	_Alignas(64) double value[2];
	unsigned turn;
} contributions[NPB_MAX_THREADS];

double npb_sum(double mine)
{
	int thread = omp_get_thread_num();
	unsigned turn = contributions[thread].turn++ % 2;
	double sum = 0;

	contributions[thread].value[turn] = mine;
#pragma omp barrier
	for (int i = 0; i < omp_get_num_threads(); i++)
		sum += contributions[i].value[turn];
	return sum;
}

void npb_wait_for(atomic_int *counter, int value)
{
	for (int turn = 0; atomic_load(counter) < value; turn++) {
		if (turn < 10000)
			__builtin_ia32_pause();
		else
			sched_yield(); /* there are fewer processors than threads */
	}
}
