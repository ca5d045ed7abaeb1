/* ep.c - the NAS Parallel Benchmarks' EP ("embarrassingly parallel"), written from its published
 * specification.
 *
 *   ep [S|W|A|B]        OMP_NUM_THREADS says how many threads (default: every processor)
 *
 * Pairs of uniform deviates from x(k+1) = 5^13 x(k) mod 2^46 are turned into pairs of Gaussian ones
 * by Marsaglia's polar method; their sums and how many fall into each square annulus are the
 * result.  The stream is cut into batches of 2^16 pairs, and each batch finds its own seed by
 * repeated squaring: nothing is shared but the loop's counter, so this shows what a machine's
 * processors give when they leave each other alone.  Exit status 1 if the sums are not the
 * published ones.
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BITS = 16, BATCH_PAIRS = 1 << BATCH_BITS, ANNULI = 10 };

static const uint64_t multiplier = 1220703125; /* 5^13 */
static const uint64_t first_seed = 271828183;
static const uint64_t modulus_mask = (1ULL << 46) - 1;

static const struct class {
	char name;
	int bits; /* 2^bits pairs */
	double sum_x, sum_y;
} classes[] = {
	{ 'S', 24, -3.247834652034740e+3, -6.958407078382297e+3 },
	{ 'W', 25, -2.863319731645753e+3, -6.320053679109499e+3 },
	{ 'A', 28, -4.295875165629892e+3, -1.580732573678431e+4 },
	{ 'B', 30, 4.033815542441498e+4, -2.660669192809235e+4 },
};

struct sums {
	double x, y;
	double count[ANNULI];
};

/* a^n mod 2^46; the products wrap at 2^64, a multiple of the modulus */
static uint64_t power(uint64_t a, uint64_t n)
{
	uint64_t result = 1;

	for (; n; n >>= 1, a = a * a & modulus_mask)
		if (n & 1)
			result = result * a & modulus_mask;
	return result;
}

static double next_uniform(uint64_t *seed)
{
	*seed = *seed * multiplier & modulus_mask;
	return (double)(int64_t)*seed * 0x1p-46;
}

static void run_batch(uint64_t number, struct sums *s)
{
	uint64_t seed = first_seed * power(multiplier, 2 * number * BATCH_PAIRS) & modulus_mask;

	for (int i = 0; i < BATCH_PAIRS; i++) {
		double x = 2 * next_uniform(&seed) - 1;
		double y = 2 * next_uniform(&seed) - 1;
		double t = x * x + y * y;

		if (t <= 1) {
			double f = sqrt(-2 * log(t) / t);
			double gx = x * f, gy = y * f;

			s->count[(int)fmax(fabs(gx), fabs(gy))]++;
			s->x += gx;
			s->y += gy;
		}
	}
}

static struct sums run(uint64_t batches)
{
	struct sums total = { 0 };

#pragma omp parallel
	{
		struct sums mine = { 0 };

#pragma omp for schedule(static) nowait
		for (uint64_t i = 0; i < batches; i++)
			run_batch(i, &mine);
#pragma omp critical
		{
			total.x += mine.x;
			total.y += mine.y;
			for (int i = 0; i < ANNULI; i++)
				total.count[i] += mine.count[i];
		}
	}
	return total;
}

static int is_close(double got, double published)
{
	return fabs((got - published) / published) <= 1e-8;
}

static int report(const struct class *c, const struct sums *s, double seconds)
{
	int good = is_close(s->x, c->sum_x) && is_close(s->y, c->sum_y);
	double pairs = 0;

	for (int i = 0; i < ANNULI; i++)
		pairs += s->count[i];
	printf("EP class %c: 2^%d pairs, %d threads\n", c->name, c->bits, omp_get_max_threads());
	printf("Gaussian pairs  %.0f\n", pairs);
	printf("sums            %.15e %.15e\n", s->x, s->y);
	for (int i = 0; i < ANNULI; i++)
		printf("  [%d,%d)  %.0f\n", i, i + 1, s->count[i]);
	printf("time            %.2f s\n", seconds);
	printf("rate            %.2f Mop/s\n", ldexp(1, c->bits + 1) / seconds / 1e6);
	printf("verification    %s\n", good ? "SUCCESSFUL" : "FAILED");
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct class *c = NULL;
	const char *name = argc > 1 ? argv[1] : "S";
	struct sums s;
	double start;

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (strlen(name) == 1 && (name[0] & ~0x20) == classes[i].name)
			c = &classes[i];
	if (argc > 2 || !c) {
		fprintf(stderr, "usage: ep [S|W|A|B]\n");
		return 2;
	}
	start = omp_get_wtime();
	s = run(1ULL << (c->bits - BATCH_BITS));
	return report(c, &s, omp_get_wtime() - start);
}
