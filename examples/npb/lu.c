/* lu.c - the NAS Parallel Benchmarks' LU (lower and upper triangles), written from its published
 * specification.
 *
 *   lu [S|W|A] [--threads N]
 *
 * A flow on a cubic grid (flow.h) is advanced by symmetric successive over-relaxation: a sweep in
 * which each point needs its three neighbours before it, then one in which it needs the three after
 * it. A thread owns a tile of planes k and works through it row by row (all its planes for one j);
 * the next tile's thread follows one row behind. So a thread passes one row of points to the next
 * for each j and sweep, by a counter; besides there are two barriers in each step.
 */
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

#include "flow.h"

static const struct class {
	struct flow_class flow;
	double integral; /* published: of the pressure over a surface */
} classes[] = {
	{ { 12, 50, 0.5,
	    { 1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
	      1.5029584435994323e-03, 3.4264073155896461e-02 },
	    { 6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
	      5.8474222595157350e-05, 1.3103347914111294e-03 } },
	  7.8418928865937083 },
	{ { 33, 300, 1.5e-3,
	    { 0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01,
	      0.2326187750252e+01, 0.2826799444189e+02 },
	    { 0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01,
	      0.8570126542733e-01, 0.1084277417792e+01 } },
	  11.61399311023 },
	{ { 64, 250, 2.0,
	    { 7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
	      1.7845301160418537e+02, 1.8384760349464247e+03 },
	    { 2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00,
	      6.7139225687777051e+00, 7.0715315688392578e+01 } },
	  26.030925604886277 },
};

static const double relaxation = 1.2; /* the specification's omega */

/* How many rows each thread has finished since the program began; a thread waits for its
 * neighbour's.
 */
static struct {
	_Alignas(64) atomic_int rows;
} finished[NPB_MAX_THREADS];

/* ---- A sweep ---- */

/* Solve block x = r by elimination without exchanges of rows; r becomes x. */
static void solve_block(flow_block block, double *r)
{
	for (int p = 0; p < FLOW_VARIABLES; p++) {
		for (int row = p + 1; row < FLOW_VARIABLES; row++) {
			double factor = block[row][p] / block[p][p];

			for (int c = p + 1; c < FLOW_VARIABLES; c++)
				block[row][c] -= factor * block[p][c];
			r[row] -= factor * r[p];
		}
	}
	for (int row = FLOW_VARIABLES - 1; row >= 0; row--) {
		for (int c = row + 1; c < FLOW_VARIABLES; c++)
			r[row] -= block[row][c] * r[c];
		r[row] /= block[row][row];
	}
}

/* Relax the point at index `at` against its neighbours on one side, -1 before and 1 after it. With
 * D its own block and s what the neighbours contribute, rhs becomes D^-1 (rhs - s) in the sweep up,
 * and rhs - D^-1 s in the sweep down.
 */
static void relax(size_t at, int side)
{
	flow_block own = { { 0 } };
	flow_vector sum = { 0 };
	double *rhs = flow.rhs[at];

	for (int d = 0; d < 3; d++) {
		size_t other = at + side * (ptrdiff_t)flow_step(d);
		flow_block block;

		flow_add_own_block(flow.u[at], d, own);
		flow_neighbour_block(flow.u[other], d, side, block);
		for (int r = 0; r < FLOW_VARIABLES; r++)
			for (int c = 0; c < FLOW_VARIABLES; c++)
				sum[r] += block[r][c] * flow.rhs[other][c];
	}
	for (int m = 0; m < FLOW_VARIABLES; m++) {
		own[m][m] += 1;
		sum[m] = (side < 0 ? rhs[m] : 0) - relaxation * sum[m];
	}
	solve_block(own, sum);
	for (int m = 0; m < FLOW_VARIABLES; m++)
		rhs[m] = side < 0 ? sum[m] : rhs[m] + sum[m];
}

static void sweep_up(struct npb_tile tile)
{
	int me = omp_get_thread_num(), rows = atomic_load(&finished[me].rows);

	for (int j = 1; j < flow.n - 1; j++) {
		if (me > 0)
			npb_wait_for(&finished[me - 1].rows, ++rows);
		for (int k = tile.first; k < tile.end; k++)
			for (int i = 1; i < flow.n - 1; i++)
				relax(flow_at(k, j, i), -1);
		atomic_fetch_add(&finished[me].rows, 1);
	}
}

static void sweep_down(struct npb_tile tile)
{
	int me = omp_get_thread_num(), rows = atomic_load(&finished[me].rows);

	for (int j = flow.n - 2; j > 0; j--) {
		if (me < omp_get_num_threads() - 1)
			npb_wait_for(&finished[me + 1].rows, ++rows);
		for (int k = tile.end - 1; k >= tile.first; k--)
			for (int i = flow.n - 2; i > 0; i--)
				relax(flow_at(k, j, i), 1);
		atomic_fetch_add(&finished[me].rows, 1);
	}
}

/* rhs or u of the thread's tile: to = scale to + add rhs */
static void combine(struct npb_tile tile, flow_vector *to, double scale, double add)
{
	for (size_t at = flow_at(tile.first, 0, 0); at < flow_at(tile.end, 0, 0); at++)
		for (int m = 0; m < FLOW_VARIABLES; m++)
			to[at][m] = scale * to[at][m] + add * flow.rhs[at][m];
}

/* One step, and the residual after it. */
static void advance(struct npb_tile tile)
{
	combine(tile, flow.rhs, flow.dt, 0);
	sweep_up(tile);
	sweep_down(tile);
#pragma omp barrier
	combine(tile, flow.u, 1, 1 / (relaxation * (2 - relaxation)));
#pragma omp barrier
	flow_find_residual();
}

/* ---- The integral ---- */

static double pressure(const int *place)
{
	const double *u = flow.u[flow_at(place[FLOW_Z], place[FLOW_Y], place[FLOW_X])];

	return flow_c2 * (u[4] - 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0]);
}

/* The pressure's integral over the surface of a block of points, by the trapezoidal rule. One
 * thread computes it.
 */
static double find_integral(void)
{
	int n = flow.n, first[] = { 1, 1, 2 }, last[] = { n - 2, n - 3, n - 2 };
	double sum = 0;

	for (int normal = 0; normal < 3; normal++) {
		int a = (normal + 1) % 3, b = (normal + 2) % 3, place[3];

		for (int corner = 0; corner < 8; corner++) {
			place[normal] = corner & 4 ? last[normal] : first[normal];
			for (int i = first[a]; i < last[a]; i++)
				for (int j = first[b]; j < last[b]; j++) {
					place[a] = i + (corner & 1);
					place[b] = j + (corner >> 1 & 1);
					sum += pressure(place);
				}
		}
	}
	return 0.25 * sum / ((double)(n - 1) * (n - 1));
}

/* ---- The program ---- */

static bool run(const struct class *class, double *seconds)
{
	bool good = false;

#pragma omp parallel
	{
		struct npb_tile tile = flow_tile();
		double start;
		bool well;

		flow_set_forcing();
		/* As specified, a first step is not timed: it has touched all memory. */
		for (int untimed = 1; untimed >= 0; untimed--) {
			flow_set_initial();
#pragma omp barrier
			flow_find_residual();
			start = omp_get_wtime();
			for (int step = 0; step < (untimed ? 1 : class->flow.steps); step++)
				advance(tile);
#pragma omp barrier
		}
#pragma omp master
		*seconds = omp_get_wtime() - start;
		well = flow_verify(&class->flow);
#pragma omp master
		good = well && npb_compare("integral", find_integral(), class->integral, 1e-8);
	}
	return good;
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "lu");
	double n = classes[c].flow.n, seconds = 0;
	bool good;

	flow_allocate(&classes[c].flow);
	good = run(&classes[c], &seconds);
	return npb_report("LU", c, seconds,
		1e-6 * classes[c].flow.steps *
			(1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010), good);
}
