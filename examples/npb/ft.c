/* ft.c - the NAS Parallel Benchmarks' FT (Fourier transform), written from its published
 * specification.
 *
 *   ft [S|W|A] [--threads N]
 *
 * A diffusion equation on a periodic grid is solved spectrally: random values are transformed once
 * by a three-dimensional FFT, multiplied by a factor that depends on the time, and transformed back
 * for each of six times; a checksum of each result is compared with the published one. Lines in x
 * and y lie in one plane z, and a thread owns a tile of these planes; for lines in z it owns a tile
 * of rows y. The spectrum belongs to the owners of the rows. So all values cross between the
 * threads once for each FFT, with three barriers, two of which belong to the checksum's sums.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "npb.h"

enum { TIMES = 6, MAX_POINTS = 256, BLOCK = 16, CHECKED = 1024 };

struct complex {
	double re, im;
};

static const struct class {
	int x, y, z;                   /* points in each dimension, powers of 2 */
	struct complex checksum[TIMES]; /* published */
} classes[] = {
	{ 64, 64, 64,
	  { { 5.546087004964e+02, 4.845363331978e+02 },
	    { 5.546385409189e+02, 4.865304269511e+02 },
	    { 5.546148406171e+02, 4.883910722336e+02 },
	    { 5.545423607415e+02, 4.901273169046e+02 },
	    { 5.544255039624e+02, 4.917475857993e+02 },
	    { 5.542683411902e+02, 4.932597244941e+02 } } },
	{ 128, 128, 32,
	  { { 5.673612178944e+02, 5.293246849175e+02 },
	    { 5.631436885271e+02, 5.282149986629e+02 },
	    { 5.594024089970e+02, 5.270996558037e+02 },
	    { 5.560698047020e+02, 5.260027904925e+02 },
	    { 5.530898991250e+02, 5.249400845633e+02 },
	    { 5.504159734538e+02, 5.239212247086e+02 } } },
	{ 256, 256, 128,
	  { { 5.046735008193e+02, 5.114047905510e+02 },
	    { 5.059412319734e+02, 5.098809666433e+02 },
	    { 5.069376896287e+02, 5.098144042213e+02 },
	    { 5.077892868474e+02, 5.101336130759e+02 },
	    { 5.085233095391e+02, 5.104914655194e+02 },
	    { 5.091487099959e+02, 5.107917842803e+02 } } },
};

static const double diffusivity = 1e-6; /* the specification's alpha */

static const struct class *class;
static struct complex *spectrum, *values; /* z planes of y rows of x points */
static struct complex roots[MAX_POINTS];  /* exp(2 pi i k / MAX_POINTS) */
static double *decay[3]; /* by dimension and wave number: the factor from one time to the next */
static struct complex checksum[TIMES];

static struct complex *row_of(struct complex *grid, int z, int y)
{
	return grid + ((size_t)z * class->y + y) * class->x;
}

/* ---- One dimension ---- */

/* BLOCK lines, transformed together: the innermost loops are then long and over neighbouring
 * values.
 */
typedef struct complex block[BLOCK];

/* One pass of a transform of n points whose parts of length 2 half are combined; `stride` such
 * parts are interleaved.
 */
static void butterflies(int half, int stride, int sign, const block *in, block *out)
{
	for (int p = 0; p < half; p++) {
		struct complex w = roots[p * (MAX_POINTS / 2 / half)];

		w.im *= sign;
		for (int q = 0; q < stride; q++) {
			const struct complex *a = in[p * stride + q];
			const struct complex *b = in[(p + half) * stride + q];
			struct complex *sum = out[2 * p * stride + q];
			struct complex *difference = out[(2 * p + 1) * stride + q];

			for (int l = 0; l < BLOCK; l++) {
				double re = a[l].re - b[l].re, im = a[l].im - b[l].im;

				sum[l].re = a[l].re + b[l].re;
				sum[l].im = a[l].im + b[l].im;
				difference[l].re = re * w.re - im * w.im;
				difference[l].im = re * w.im + im * w.re;
			}
		}
	}
}

/* Transform lines of n points with exp(sign 2 pi i / n) (Stockham's order of the passes, which
 * needs no reordering). Returns which of both memories has the result; the other is used up.
 */
static block *transform(int n, int sign, block *line, block *scratch)
{
	for (int half = n / 2, stride = 1; half > 0; half /= 2, stride *= 2) {
		block *result = scratch;

		butterflies(half, stride, sign, line, result);
		scratch = line;
		line = result;
	}
	return line;
}

/* ---- Three dimensions ---- */

/* A thread's memory for a block of lines, on pages of its own. */
struct work {
	block *line, *scratch;
};

static struct work new_work(void)
{
	return (struct work){ npb_allocate(MAX_POINTS, sizeof(block)),
			      npb_allocate(MAX_POINTS, sizeof(block)) };
}

/* Lines in x of one plane. */
static void transform_x(struct complex *grid, int z, int sign, struct work w)
{
	for (int y = 0; y < class->y; y += BLOCK) {
		block *result;

		for (int l = 0; l < BLOCK; l++)
			for (int x = 0; x < class->x; x++)
				w.line[x][l] = row_of(grid, z, y + l)[x];
		result = transform(class->x, sign, w.line, w.scratch);
		for (int l = 0; l < BLOCK; l++)
			for (int x = 0; x < class->x; x++)
				row_of(grid, z, y + l)[x] = result[x][l];
	}
}

static void transform_y(struct complex *grid, int z, int sign, struct work w)
{
	for (int x = 0; x < class->x; x += BLOCK) {
		block *result;

		for (int y = 0; y < class->y; y++)
			memcpy(w.line[y], row_of(grid, z, y) + x, sizeof(block));
		result = transform(class->y, sign, w.line, w.scratch);
		for (int y = 0; y < class->y; y++)
			memcpy(row_of(grid, z, y) + x, result[y], sizeof(block));
	}
}

/* Lines in z of one row, from one grid to another. */
static void transform_z(struct complex *from, struct complex *to, int y, int sign, struct work w)
{
	for (int x = 0; x < class->x; x += BLOCK) {
		block *result;

		for (int z = 0; z < class->z; z++)
			memcpy(w.line[z], row_of(from, z, y) + x, sizeof(block));
		result = transform(class->z, sign, w.line, w.scratch);
		for (int z = 0; z < class->z; z++)
			memcpy(row_of(to, z, y) + x, result[z], sizeof(block));
	}
}

/* The spectrum of `values`, which are used up. */
static void transform_forward(struct npb_tile planes, struct npb_tile rows, struct work w)
{
	for (int z = planes.first; z < planes.end; z++) {
		transform_x(values, z, -1, w);
		transform_y(values, z, -1, w);
	}
#pragma omp barrier
	for (int y = rows.first; y < rows.end; y++)
		transform_z(values, spectrum, y, -1, w);
}

/* Let a row of the spectrum decay until the next time. */
static void decay_row(int y)
{
	for (int z = 0; z < class->z; z++) {
		struct complex *row = row_of(spectrum, z, y);

		for (int x = 0; x < class->x; x++) {
			double factor = decay[0][x] * decay[1][y] * decay[2][z];

			row[x].re *= factor;
			row[x].im *= factor;
		}
	}
}

/* `values` at the next time, but for the factor 1 / points, which the checksum takes into account.
 */
static void advance(struct npb_tile planes, struct npb_tile rows, struct work w)
{
	for (int y = rows.first; y < rows.end; y++) {
		decay_row(y);
		transform_z(spectrum, values, y, 1, w);
	}
#pragma omp barrier
	for (int z = planes.first; z < planes.end; z++) {
		transform_y(values, z, 1, w);
		transform_x(values, z, 1, w);
	}
}

/* ---- The program ---- */

static void make_values(struct npb_tile planes)
{
	for (int z = planes.first; z < planes.end; z++) {
		uint64_t seed = npb_skip(npb_first_seed, 2 * (uint64_t)z * class->y * class->x);
		struct complex *plane = row_of(values, z, 0);

		for (int i = 0; i < class->y * class->x; i++) {
			plane[i].re = randlc(&seed);
			plane[i].im = randlc(&seed);
		}
	}
}

/* exp(-4 pi^2 diffusivity k^2) of a dimension's wave numbers, the upper half of which are negative.
 */
static double *make_decay(int points)
{
	double *factors = calloc(points, sizeof *factors);

	for (int i = 0; i < points; i++) {
		double wave = i < points / 2 ? i : i - points;

		factors[i] = exp(-4 * M_PI * M_PI * diffusivity * wave * wave);
	}
	return factors;
}

static void make_tables(void)
{
	for (int k = 0; k < MAX_POINTS; k++) {
		roots[k].re = cos(2 * M_PI * k / MAX_POINTS);
		roots[k].im = sin(2 * M_PI * k / MAX_POINTS);
	}
	decay[0] = make_decay(class->x);
	decay[1] = make_decay(class->y);
	decay[2] = make_decay(class->z);
}

/* The mean of 1,024 of the values; every thread calls it. */
static struct complex find_checksum(struct npb_tile planes)
{
	double points = (double)class->x * class->y * class->z;
	struct complex sum = { 0 };

	for (int i = 1; i <= CHECKED; i++) {
		int z = 5 * i % class->z;

		if (z >= planes.first && z < planes.end) {
			struct complex value = row_of(values, z, 3 * i % class->y)[i % class->x];

			sum.re += value.re;
			sum.im += value.im;
		}
	}
	sum.re = npb_sum(sum.re) / points;
	sum.im = npb_sum(sum.im) / points;
	return sum;
}

static void run(double *seconds)
{
#pragma omp parallel
	{
		struct npb_tile planes = npb_tile(0, class->z), rows = npb_tile(0, class->y);
		struct work w = new_work();
		double start;

		/* As specified, a first transform is not timed: it has touched all memory. */
		make_values(planes);
		transform_forward(planes, rows, w);
#pragma omp barrier
		start = omp_get_wtime();
		make_values(planes);
		transform_forward(planes, rows, w); /* it has read the rows that advance() writes */
		for (int t = 0; t < TIMES; t++) {
			struct complex sum;

			advance(planes, rows, w);
			sum = find_checksum(planes);
#pragma omp master
			checksum[t] = sum;
		}
#pragma omp master
		*seconds = omp_get_wtime() - start;
	}
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "ft");
	double seconds = 0, points;
	bool good = true;

	class = &classes[c];
	points = (double)class->x * class->y * class->z;
	spectrum = npb_allocate((size_t)points, sizeof *spectrum);
	values = npb_allocate((size_t)points, sizeof *values);
	make_tables();
	run(&seconds);
	for (int t = 0; t < TIMES; t++) {
		good &= npb_compare("real part", checksum[t].re, class->checksum[t].re, 1e-10);
		good &= npb_compare("imaginary part", checksum[t].im, class->checksum[t].im, 1e-10);
	}
	return npb_report("FT", c, seconds,
		1e-6 * points *
			(14.8157 + 5.23518 * TIMES + (7.19641 + 7.21113 * TIMES) * log(points)),
		good);
}
