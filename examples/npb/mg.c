/* mg.c - the NAS Parallel Benchmarks' MG (multigrid), written from its published specification.
 *
 *   mg [S|W|A] [--threads N]
 *
 * Four V-cycles of a multigrid method approximate the solution of a Poisson equation on a cubic
 * grid with periodic boundaries; the right side is +1 in ten random points and -1 in ten others. A
 * thread owns a tile of planes (of the outermost dimension) of each grid and writes those alone; it
 * reads one plane of each neighbour. Grids of up to 16^3 points are worked on by one thread. There
 * is a barrier after each operation on a grid: about 4 for each of the larger grids in a V-cycle.
 */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "npb.h"

enum { CYCLES = 4, CHARGES = 10, MAX_LEVELS = 8, SERIAL_POINTS = 16 };

static const struct class {
	int levels; /* the finest grid has 2^levels points in each dimension, the coarsest has 2 */
	double norm; /* published: of the residual after the last cycle */
} classes[] = {
	{ 5, 0.5307707005734e-04 },
	{ 7, 0.6467329375339e-05 },
	{ 8, 0.2433365309069e-05 },
};

/* n planes of n + 2 rows of n + 2 points: rows and points 0 and n + 1 are copies of n and 1. Planes
 * count from 1, too; their neighbours are found by wrapping around, so that no plane is copied.
 */
struct grid {
	int n;
	double *value;
};

static int levels;
/* approximations and residuals, by level; the right side */
static struct grid u[MAX_LEVELS + 1], r[MAX_LEVELS + 1], v;

static inline double *row_of(const struct grid *g, int plane, int row)
{
	int width = g->n + 2;

	plane = plane < 1 ? g->n : plane > g->n ? 1 : plane;
	return g->value + ((size_t)(plane - 1) * width + row) * width;
}

/* The planes of the calling thread; all of them for thread 0 if the grid is small. */
static struct npb_tile planes_of(const struct grid *g)
{
	if (g->n > SERIAL_POINTS)
		return npb_tile(1, g->n + 1);
	return omp_get_thread_num() == 0 ? (struct npb_tile){ 1, g->n + 1 } :
					   (struct npb_tile){ 1, 1 };
}

/* After an operation on a grid of several threads: each is going to read its neighbours' planes. */
static void finish(const struct grid *g)
{
	if (g->n > SERIAL_POINTS) {
#pragma omp barrier
	}
}

/* Make the edges of a plane copies of the opposite ones. */
static void wrap_plane(const struct grid *g, int plane)
{
	int n = g->n;

	for (int j = 1; j <= n; j++) {
		double *row = row_of(g, plane, j);

		row[0] = row[n];
		row[n + 1] = row[1];
	}
	memcpy(row_of(g, plane, 0), row_of(g, plane, n), (n + 2) * sizeof(double));
	memcpy(row_of(g, plane, n + 1), row_of(g, plane, 1), (n + 2) * sizeof(double));
}

static void clear(const struct grid *g)
{
	struct npb_tile tile = planes_of(g);

	for (int k = tile.first; k < tile.end; k++)
		memset(row_of(g, k, 0), 0, (size_t)(g->n + 2) * (g->n + 2) * sizeof(double));
}

/* The nine rows around row j of plane k, summed up: `near` the four next to it, `far` the four
 * diagonal ones. */
static void sum_rows(const struct grid *g, int k, int j, double *near, double *far)
{
	const double *a = row_of(g, k, j - 1), *b = row_of(g, k, j + 1), *c = row_of(g, k - 1, j),
		     *d = row_of(g, k + 1, j);
	const double *e = row_of(g, k - 1, j - 1), *f = row_of(g, k - 1, j + 1);
	const double *h = row_of(g, k + 1, j - 1), *l = row_of(g, k + 1, j + 1);

	for (int i = 0; i < g->n + 2; i++) {
		near[i] = a[i] + b[i] + c[i] + d[i];
		far[i] = e[i] + f[i] + h[i] + l[i];
	}
}

/* residual = right - A u; A's coefficients are -8/3 for a point, 0 for its neighbours at distance
 * 1, then 1/6 and 1/12. */
static void find_residual(const struct grid *u, const struct grid *right,
			  const struct grid *residual)
{
	struct npb_tile tile = planes_of(u);
	double near[u->n + 2], far[u->n + 2];

	for (int k = tile.first; k < tile.end; k++) {
		for (int j = 1; j <= u->n; j++) {
			const double *in = row_of(u, k, j), *b = row_of(right, k, j);
			double *out = row_of(residual, k, j);

			sum_rows(u, k, j, near, far);
			for (int i = 1; i <= u->n; i++)
				out[i] = b[i] + 8.0 / 3 * in[i] -
					 1.0 / 6 * (far[i] + near[i - 1] + near[i + 1]) -
					 1.0 / 12 * (far[i - 1] + far[i + 1]);
		}
		wrap_plane(residual, k);
	}
	finish(u);
}

/* u += S r, the smoother; its coefficients by distance are -3/8, 1/32, -1/64 and 0. */
static void smooth(const struct grid *r, const struct grid *u)
{
	struct npb_tile tile = planes_of(u);
	double near[u->n + 2], far[u->n + 2];

	for (int k = tile.first; k < tile.end; k++) {
		for (int j = 1; j <= u->n; j++) {
			const double *in = row_of(r, k, j);
			double *out = row_of(u, k, j);

			sum_rows(r, k, j, near, far);
			for (int i = 1; i <= u->n; i++)
				out[i] += -3.0 / 8 * in[i] +
					  1.0 / 32 * (in[i - 1] + in[i + 1] + near[i]) -
					  1.0 / 64 * (far[i] + near[i - 1] + near[i + 1]);
		}
		wrap_plane(u, k);
	}
	finish(u);
}

/* The coarse grid becomes the fine one's weighted means: point c is where the fine grid's point 2c
 * is. */
static void restrict_grid(const struct grid *fine, const struct grid *coarse)
{
	struct npb_tile tile = planes_of(coarse);
	double near[fine->n + 2], far[fine->n + 2];

	for (int k = tile.first; k < tile.end; k++) {
		for (int j = 1; j <= coarse->n; j++) {
			const double *in = row_of(fine, 2 * k, 2 * j);
			double *out = row_of(coarse, k, j);

			sum_rows(fine, 2 * k, 2 * j, near, far);
			for (int i = 1; i <= coarse->n; i++) {
				int f = 2 * i;

				out[i] = 0.5 * in[f] + 0.25 * (in[f - 1] + in[f + 1] + near[f]) +
					 0.125 * (near[f - 1] + near[f + 1] + far[f]) +
					 0.0625 * (far[f - 1] + far[f + 1]);
			}
		}
		wrap_plane(coarse, k);
	}
	finish(coarse);
}

/* The fine grid becomes, or with `add` gains, what lies between the coarse one's points by linear
 * interpolation. */
static void interpolate(const struct grid *coarse, const struct grid *fine, bool add)
{
	struct npb_tile tile = planes_of(fine);
	double line[coarse->n + 2];

	if (coarse->n == SERIAL_POINTS) { /* thread 0 has written it, all are going to read it */
#pragma omp barrier
	}
	for (int k = tile.first; k < tile.end; k++) {
		for (int j = 0; j < fine->n + 2; j++) {
			const double *a = row_of(coarse, k / 2, j / 2),
				     *b = row_of(coarse, k / 2, (j + 1) / 2);
			const double *c = row_of(coarse, (k + 1) / 2, j / 2),
				     *d = row_of(coarse, (k + 1) / 2, (j + 1) / 2);
			double *out = row_of(fine, k, j);

			for (int i = 0; i < coarse->n + 2; i++)
				line[i] = 0.25 * (a[i] + b[i] + c[i] + d[i]);
			for (int i = 0; i < fine->n + 2; i++)
				out[i] = (add ? out[i] : 0) +
					 0.5 * (line[i / 2] + line[(i + 1) / 2]);
		}
	}
	finish(fine);
}

/* One V-cycle: u approximates the solution better. */
static void cycle(void)
{
	for (int l = levels; l > 1; l--)
		restrict_grid(&r[l], &r[l - 1]);
	clear(&u[1]);
	smooth(&r[1], &u[1]);
	for (int l = 2; l < levels; l++) {
		interpolate(&u[l - 1], &u[l], false);
		find_residual(&u[l], &r[l], &r[l]);
		smooth(&r[l], &u[l]);
	}
	interpolate(&u[levels - 1], &u[levels], true);
	find_residual(&u[levels], &v, &r[levels]);
	smooth(&r[levels], &u[levels]);
}

/* The root of the mean of the squares of the finest grid's residual. */
static double residual_norm(void)
{
	const struct grid *g = &r[levels];
	struct npb_tile tile = planes_of(g);
	double sum = 0;

	for (int k = tile.first; k < tile.end; k++)
		for (int j = 1; j <= g->n; j++)
			for (int i = 1; i <= g->n; i++)
				sum += row_of(g, k, j)[i] * row_of(g, k, j)[i];
	return sqrt(npb_sum(sum) / ((double)g->n * g->n * g->n));
}

/* ---- The right side ---- */

struct charge {
	double random; /* times the sign */
	int k, j, i;
};

/* The points of the ten largest random numbers, and of the ten smallest; sorted, the outermost
 * first. */
static struct charge charges[2][CHARGES];

static void insert_charge(struct charge *list, struct charge new)
{
	int i = CHARGES - 1;

	if (new.random <= list[i].random)
		return;
	for (; i > 0 && list[i - 1].random < new.random; i--)
		list[i] = list[i - 1];
	list[i] = new;
}

static void find_charges(struct npb_tile tile)
{
	struct charge mine[2][CHARGES];
	double random[v.n];

	for (int i = 0; i < CHARGES; i++)
		mine[0][i].random = mine[1][i].random = -DBL_MAX;
	for (int k = tile.first; k < tile.end; k++) {
		uint64_t seed = npb_skip(npb_first_seed, (uint64_t)(k - 1) * v.n * v.n);

		for (int j = 1; j <= v.n; j++) {
			vranlc(v.n, &seed, random);
			for (int i = 1; i <= v.n; i++) {
				insert_charge(mine[0], (struct charge){ random[i - 1], k, j, i });
				insert_charge(mine[1], (struct charge){ -random[i - 1], k, j, i });
			}
		}
	}
#pragma omp critical
	for (int i = 0; i < 2 * CHARGES; i++)
		insert_charge(charges[i / CHARGES], mine[i / CHARGES][i % CHARGES]);
}

static void make_right_side(void)
{
	struct npb_tile tile = planes_of(&v);

#pragma omp master
	for (int i = 0; i < 2 * CHARGES; i++)
		charges[i / CHARGES][i % CHARGES].random = -DBL_MAX;
#pragma omp barrier
	clear(&v);
	find_charges(tile);
#pragma omp barrier
	for (int i = 0; i < 2 * CHARGES; i++) {
		struct charge c = charges[i / CHARGES][i % CHARGES];

		if (c.k >= tile.first && c.k < tile.end)
			row_of(&v, c.k, c.j)[c.i] = i < CHARGES ? 1 : -1;
	}
	for (int k = tile.first; k < tile.end; k++)
		wrap_plane(&v, k);
}

/* ---- The program ---- */

static struct grid new_grid(int level)
{
	size_t n = 1 << level;

	return (struct grid){ (int)n, npb_allocate(n * (n + 2) * (n + 2), sizeof(double)) };
}

static void run(double *norm, double *seconds)
{
#pragma omp parallel
	{
		double start, last;

		make_right_side();
		clear(&u[levels]);
#pragma omp barrier
		find_residual(&u[levels], &v, &r[levels]);
		cycle(); /* as specified: untimed, so that all memory has been touched */
		clear(&u[levels]);
#pragma omp barrier
		start = omp_get_wtime();
		find_residual(&u[levels], &v, &r[levels]);
		for (int i = 0; i < CYCLES; i++) {
			cycle();
			find_residual(&u[levels], &v, &r[levels]);
		}
		last = residual_norm();
#pragma omp master
		{
			*seconds = omp_get_wtime() - start;
			*norm = last;
		}
	}
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "mg");
	double norm = 0, seconds = 0;
	bool good;

	levels = classes[c].levels;
	v = new_grid(levels);
	for (int l = 1; l <= levels; l++) {
		u[l] = new_grid(l);
		r[l] = new_grid(l);
	}
	run(&norm, &seconds);
	good = npb_compare("residual", norm, classes[c].norm, 1e-8);
	return npb_report("MG", c, seconds, 58e-6 * CYCLES * (1LL << 3 * levels), good);
}
