/* npb.h - what the NAS Parallel Benchmarks in this folder share: options, random numbers, tiles,
 * sums, the report.
 *
 * Each program is one parallel region: a thread keeps one tile of the outermost dimension from
 * initialisation to the end, touches its memory first, and meets the others at explicit barriers.
 * The programs in ../sharing use the options, the random numbers, the memory and the report alone.
 */
#ifndef EXAMPLES_NPB_H
#define EXAMPLES_NPB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPB_MAX_THREADS = 256 };

static const uint64_t npb_multiplier = 1220703125; /* 5^13 */
static const uint64_t npb_first_seed = 314159265;
static const uint64_t npb_modulus_mask = (1ULL << 46) - 1;

/* Parse `[S|W|A] [--threads N]` and set the number of threads; end the program with status 2 if
 * that is wrong. Returns the class's index in "SWA".
 */
int npb_parse(int argc, char **argv, const char *name);

/* Print the report; returns the exit status: 0, or 1 if the result is not the published one. */
int npb_report(const char *name, int class, double seconds, double mops, bool verified);

/* Print one result beside its published value; returns whether the relative difference is within
 * the tolerance. */
bool npb_compare(const char *what, double got, double published, double tolerance);

/* Zeroed memory that nobody has touched; it is never freed. Ends the program if there is none. */
void *npb_allocate(size_t elements, size_t size);

/* a^n mod 2^46 */
uint64_t npb_power(uint64_t a, uint64_t n);

/* The state of the random number generator n numbers after the seed. */
uint64_t npb_skip(uint64_t seed, uint64_t n);

/* The next number of x(k+1) = 5^13 x(k) mod 2^46, scaled to (0, 1). */
static inline double randlc(uint64_t *x)
{
	*x = *x * npb_multiplier & npb_modulus_mask;
	return (double)(int64_t)*x * 0x1p-46;
}

/* The next n numbers. */
static inline void vranlc(int n, uint64_t *x, double *out)
{
	for (int i = 0; i < n; i++)
		out[i] = randlc(x);
}

struct npb_tile {
	int first, end; /* end is exclusive */
};

/* The calling thread's share of first <= i < end; thread 0 has the lowest. */
struct npb_tile npb_tile(int first, int end);

/* Extend a tile of 1 <= i < n - 1 so that the first and the last thread own also the boundaries 0
 * and n - 1. */
struct npb_tile npb_with_boundary(struct npb_tile tile, int n);

/* The sum of all threads' numbers; every thread calls it, and it is a barrier. The order of the
 * additions depends only on the number of threads.
 */
double npb_sum(double mine);

/* Wait until another thread has raised the counter to the value, and see what that thread wrote
 * before. */
void npb_wait_for(atomic_int *counter, int value);

#endif
