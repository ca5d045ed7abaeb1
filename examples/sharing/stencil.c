/* stencil.c - heat spreads over a square plate: each step replaces every point by the mean of its
 * four neighbours.
 *
 *   stencil [S|W|A] [--threads N]
 *
 * OpenMP as most programs use it: one parallel loop over the rows for each step, and every tenth
 * step a sum over all points. The first pattern of heat is one that keeps its form and shrinks by a
 * known factor, so that every point of the result can be checked.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>

#include "npb.h"

enum { STEPS_BETWEEN_SUMS = 10 };

static const struct class {
	int n, steps; /* n x n points inside the boundary, which stays at zero */
} classes[] = { { 254, 200 }, { 1022, 300 }, { 2046, 500 } };

static int n;

static double *row_of(double *plate, int row) { return plate + (size_t)row * (n + 2); }

static double first_heat(int row, int column)
{
	return sin(M_PI * row / (n + 1)) * sin(M_PI * column / (n + 1));
}

static void heat_up(double *plate)
{
#pragma omp parallel for schedule(static)
	for (int row = 1; row <= n; row++)
		for (int column = 1; column <= n; column++)
			row_of(plate, row)[column] = first_heat(row, column);
}

static void step(double *from, double *to)
{
#pragma omp parallel for schedule(static)
	for (int row = 1; row <= n; row++) {
		const double *above = row_of(from, row - 1), *here = row_of(from, row);
		const double *below = row_of(from, row + 1);
		double *out = row_of(to, row);

		for (int column = 1; column <= n; column++)
			out[column] = 0.25 * (above[column] + here[column - 1] + here[column + 1] +
				below[column]);
	}
}

static double sum_of(double *plate)
{
	double sum = 0;

#pragma omp parallel for schedule(static) reduction(+ : sum)
	for (int row = 1; row <= n; row++)
		for (int column = 1; column <= n; column++)
			sum += row_of(plate, row)[column];
	return sum;
}

/* The points that differ from the first heat times a factor. */
static double count_wrong(double *plate, double factor)
{
	double wrong = 0;

	for (int row = 1; row <= n; row++)
		for (int column = 1; column <= n; column++) {
			double expected = factor * first_heat(row, column);

			if (!(fabs(row_of(plate, row)[column] - expected) <= 1e-12))
				wrong++;
		}
	return wrong;
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "stencil"), steps = classes[c].steps;
	double *plate, *next, start, sum, factor, wrong, seconds, loss = 0;

	n = classes[c].n;
	plate = npb_allocate((size_t)(n + 2) * (n + 2), sizeof *plate);
	next = npb_allocate((size_t)(n + 2) * (n + 2), sizeof *next);
	heat_up(plate);
	step(plate, next); /* both have been touched */
	start = omp_get_wtime();
	sum = sum_of(plate);
	for (int s = 1; s <= steps; s++) {
		double *last = plate;

		step(plate, next);
		plate = next;
		next = last;
		if (s % STEPS_BETWEEN_SUMS == 0)
			loss = 1 - sum_of(plate) / sum;
	}
	seconds = omp_get_wtime() - start;
	factor = pow(cos(M_PI / (n + 1)), steps);
	wrong = count_wrong(plate, factor);
	printf("%-15s %.13e  expected %.13e, %.0f points differ\n", "heat lost", loss, 1 - factor,
		wrong);
	return npb_report("stencil", c, seconds, 4e-6 * n * n * steps,
		wrong == 0 && fabs(loss - (1 - factor)) <= 1e-9);
}
