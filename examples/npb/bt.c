/* bt.c - the NAS Parallel Benchmarks' BT (block tridiagonal), written from its published
 * specification.
 *
 *   bt [S|W|A] [--threads N]
 *
 * A flow on a cubic grid (flow.h) is advanced by an implicit step that is factored by direction:
 * for each line of points in x, then in y, then in z, a tridiagonal system of blocks of 5 x 5 is
 * solved. Lines in x and y lie in one plane k, and a thread owns a tile of these planes; lines in z
 * cross all of them, and for these a thread owns a tile of rows j. So the right side crosses
 * between the threads once in each step, and so does u; there are two barriers in each step.
 */
#include <omp.h>
#include <string.h>

#include "flow.h"

static const struct flow_class classes[] = {
	{ 12, 60, 0.010,
	  { 1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
	    2.6436421275166801e-02, 1.9211784131744430e-01 },
	  { 4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
	    7.3821238632439731e-05, 8.9269630987491446e-04 } },
	{ 24, 200, 0.0008,
	  { 0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02,
	    0.2469174937669e+02, 0.2638427874317e+03 },
	  { 0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01,
	    0.9235878729944e+00, 0.1018045837718e+02 } },
	{ 64, 200, 0.0008,
	  { 1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01,
	    2.3665622544678910e+01, 2.5278963211748344e+02 },
	  { 4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01,
	    8.8302063039765474e-01, 9.7379901770829278e+00 } },
};

/* A row of blocks while it is eliminated: the point's own block, its right side, the next point's
 * block. The twelfth column is zero; with it the loops are of a length that suits vector
 * instructions.
 */
enum { COLUMNS = 12, RIGHT = 5, NEXT = 6, KEPT = 6 };

/* What back substitution needs of a point after elimination: the next point's block, then the right
 * side.
 */
typedef double kept_block[FLOW_VARIABLES][KEPT];

/* own, right -= before * (what is kept of the point before) */
static void subtract_product(flow_block before, kept_block kept, double row[][COLUMNS])
{
	for (int r = 0; r < FLOW_VARIABLES; r++)
		for (int m = 0; m < FLOW_VARIABLES; m++)
			for (int c = 0; c < KEPT; c++)
				row[r][c] -= before[r][m] * kept[m][c];
}

/* Turn the own block into the identity by elimination without exchanges of rows. */
static void eliminate(double row[][COLUMNS])
{
	for (int p = 0; p < FLOW_VARIABLES; p++) {
		double factor = 1 / row[p][p];

		for (int c = 0; c < COLUMNS; c++)
			row[p][c] *= factor;
		for (int r = 0; r < FLOW_VARIABLES; r++) {
			if (r == p)
				continue;
			factor = row[r][p];
			for (int c = 0; c < COLUMNS; c++)
				row[r][c] -= factor * row[p][c];
		}
	}
}

/* The row of the point at index `at`, from its own values and those of the next point in the
 * direction.
 */
static void make_row(size_t at, int direction, double row[][COLUMNS])
{
	flow_block own = { { 0 } }, next;

	flow_add_own_block(flow.u[at], direction, own);
	flow_neighbour_block(flow.u[at + flow_step(direction)], direction, 1, next);
	for (int r = 0; r < FLOW_VARIABLES; r++) {
		own[r][r] += 1;
		memcpy(row[r], own[r], sizeof own[r]);
		row[r][RIGHT] = flow.rhs[at][r];
		memcpy(row[r] + NEXT, next[r], sizeof next[r]);
		row[r][COLUMNS - 1] = 0;
	}
}

/* Solve the system of the line that begins at index `first`; rhs becomes the solution. The ends of
 * the line are on the boundary and do not change, so they are no part of the system. `kept` is
 * memory for the line.
 */
static void solve_line(size_t first, int direction, kept_block *kept)
{
	size_t step = flow_step(direction), at = first + step;

	for (int i = 1; i < flow.n - 1; i++, at += step) {
		double row[FLOW_VARIABLES][COLUMNS];

		make_row(at, direction, row);
		if (i > 1) {
			flow_block before;

			flow_neighbour_block(flow.u[at - step], direction, -1, before);
			subtract_product(before, kept[i - 1], row);
		}
		eliminate(row);
		for (int r = 0; r < FLOW_VARIABLES; r++) {
			memcpy(kept[i][r], row[r] + NEXT, sizeof(flow_vector));
			flow.rhs[at][r] = kept[i][r][RIGHT] = row[r][RIGHT];
		}
	}
	at = first + (flow.n - 3) * step;
	for (int i = flow.n - 3; i > 0; i--, at -= step)
		for (int r = 0; r < FLOW_VARIABLES; r++)
			for (int m = 0; m < FLOW_VARIABLES; m++)
				flow.rhs[at][r] -= kept[i][r][m] * flow.rhs[at + step][m];
}

/* One step, without the residual before it. */
static void advance(struct npb_tile tile, kept_block *kept)
{
	int n = flow.n;

	for (int k = tile.first; k < tile.end; k++) {
		for (size_t at = flow_at(k, 0, 0); at < flow_at(k + 1, 0, 0); at++)
			for (int m = 0; m < FLOW_VARIABLES; m++)
				flow.rhs[at][m] *= flow.dt;
		for (int j = 1; j < n - 1; j++)
			solve_line(flow_at(k, j, 0), FLOW_X, kept);
		for (int i = 1; i < n - 1; i++)
			solve_line(flow_at(k, 0, i), FLOW_Y, kept);
	}
#pragma omp barrier
	for (int j = tile.first; j < tile.end; j++) {
		for (int i = 1; i < n - 1; i++)
			solve_line(flow_at(0, j, i), FLOW_Z, kept);
		for (int k = 1; k < n - 1; k++)
			for (size_t at = flow_at(k, j, 1); at < flow_at(k, j, n - 1); at++)
				for (int m = 0; m < FLOW_VARIABLES; m++)
					flow.u[at][m] += flow.rhs[at][m];
	}
#pragma omp barrier
}

static bool run(const struct flow_class *class, double *seconds)
{
	bool good = false;

#pragma omp parallel
	{
		struct npb_tile tile = flow_tile();
		kept_block *kept = npb_allocate(class->n, sizeof *kept);
		double start;
		bool well;

		flow_set_forcing();
		/* As specified, a first step is not timed: it has touched all memory. */
		for (int untimed = 1; untimed >= 0; untimed--) {
			flow_set_initial();
#pragma omp barrier
			start = omp_get_wtime();
			for (int step = 0; step < (untimed ? 1 : class->steps); step++) {
				flow_find_residual();
				advance(tile, kept);
			}
		}
#pragma omp master
		*seconds = omp_get_wtime() - start;
		flow_find_residual();
		well = flow_verify(class);
#pragma omp master
		good = well;
	}
	return good;
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "bt");
	double n = classes[c].n, seconds = 0;
	bool good;

	flow_allocate(&classes[c]);
	good = run(&classes[c], &seconds);
	return npb_report("BT", c, seconds,
		1e-6 * classes[c].steps * n * (3478.8 * n * n - 17655.7 * n + 28023.7), good);
}
