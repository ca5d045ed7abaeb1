/* flow.c - see flow.h. */
#include "flow.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct flow flow;

void flow_allocate(const struct flow_class *class)
{
	size_t points = (size_t)class->n * class->n * class->n;

	flow.n = class->n;
	flow.dt = class->dt;
	flow.t1 = (double)(class->n - 1) * (class->n - 1);
	flow.t2 = 0.5 * (class->n - 1);
	flow.u = npb_allocate(points, sizeof *flow.u);
	flow.rhs = npb_allocate(points, sizeof *flow.rhs);
	flow.forcing = npb_allocate(points, sizeof *flow.forcing);
}

struct npb_tile flow_tile(void) { return npb_tile(1, flow.n - 1); }
struct npb_tile flow_tile_with_boundary(void) { return npb_with_boundary(flow_tile(), flow.n); }

/* ---- The exact solution and the initial values ---- */

/* Of each variable: the constant, and the coefficients of x, y, z, x^2, y^2, z^2, ... z^4. */
static const double exact_coefficients[FLOW_VARIABLES][13] = {
	{ 2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3 },
	{ 1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5 },
	{ 2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4 },
	{ 2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3 },
	{ 5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2 },
};

void flow_exact(int k, int j, int i, double *u)
{
	double h = 1.0 / (flow.n - 1), place[] = { i * h, j * h, k * h };

	for (int m = 0; m < FLOW_VARIABLES; m++) {
		const double *c = exact_coefficients[m];

		u[m] = c[0];
		for (int d = 0; d < 3; d++) {
			double s = place[d];

			u[m] += s * (c[1 + d] + s * (c[4 + d] + s * (c[7 + d] + s * c[10 + d])));
		}
	}
}

static bool is_inside(int i) { return i > 0 && i < flow.n - 1; }

/* Between the exact solutions on the six faces, blended in each direction: x + y + z - xy - xz - yz
 * + xyz.
 */
static void interpolate(int k, int j, int i, double *u)
{
	int last = flow.n - 1;
	double h = 1.0 / last, place[] = { i * h, j * h, k * h };
	flow_vector face[3][2];

	for (int side = 0; side < 2; side++) {
		flow_exact(k, j, side * last, face[FLOW_X][side]);
		flow_exact(k, side * last, i, face[FLOW_Y][side]);
		flow_exact(side * last, j, i, face[FLOW_Z][side]);
	}
	for (int m = 0; m < FLOW_VARIABLES; m++) {
		double blend[3];

		for (int d = 0; d < 3; d++)
			blend[d] = place[d] * face[d][1][m] + (1 - place[d]) * face[d][0][m];
		u[m] = blend[0] + blend[1] + blend[2] + blend[0] * blend[1] * blend[2] -
			blend[0] * blend[1] - blend[0] * blend[2] - blend[1] * blend[2];
	}
}

static void set_values(bool is_inside_exact)
{
	struct npb_tile tile = flow_tile_with_boundary();

	for (int k = tile.first; k < tile.end; k++)
		for (int j = 0; j < flow.n; j++)
			for (int i = 0; i < flow.n; i++) {
				double *u = flow.u[flow_at(k, j, i)];

				flow_exact(k, j, i, u);
				if (is_inside_exact)
					continue;
				if (is_inside(k) && is_inside(j) && is_inside(i))
					interpolate(k, j, i, u);
			}
}

void flow_set_initial(void) { set_values(false); }

void flow_set_forcing(void)
{
	struct npb_tile tile = flow_tile_with_boundary();
	size_t first = flow_at(tile.first, 0, 0), end = flow_at(tile.end, 0, 0);

	set_values(true);
	memset(flow.forcing + first, 0, (end - first) * sizeof *flow.forcing);
	memset(flow.rhs + first, 0, (end - first) * sizeof *flow.rhs);
#pragma omp barrier
	flow_find_residual();
	for (size_t at = first; at < end; at++)
		for (int m = 0; m < FLOW_VARIABLES; m++)
			flow.forcing[at][m] = -flow.rhs[at][m];
#pragma omp barrier
}

/* ---- The time derivative ---- */

/* What the fluxes need of a point. */
struct derived {
	double velocity[3], pressure;
	double kinetic; /* energy per mass: half the square of the velocity */
	double total;   /* energy per mass */
};

static void derive_plane(int k, struct derived *plane)
{
	for (int at = 0; at < flow.n * flow.n; at++) {
		const double *u = flow.u[flow_at(k, 0, 0) + at];
		struct derived *out = &plane[at];
		double per_mass = 1 / u[0];

		for (int d = 0; d < 3; d++)
			out->velocity[d] = u[1 + d] * per_mass;
		out->kinetic = u[1] * u[1] + u[2] * u[2] + u[3] * u[3];
		out->kinetic *= 0.5 * per_mass * per_mass;
		out->pressure = flow_c2 * (u[4] - out->kinetic * u[0]);
		out->total = u[4] * per_mass;
	}
}

static inline double curvature(double before, double here, double after)
{
	return before - 2 * here + after;
}

static inline double square(double x) { return x * x; }

/* Add what one direction contributes: convection, pressure, diffusion, viscosity, conduction. */
static inline void add_fluxes(const flow_vector *u, size_t step, const struct derived *before,
	const struct derived *here, const struct derived *after, int d, double *rhs)
{
	const double *next = u[step], *last = u[-(ptrdiff_t)step];
	double diffusion = flow_diffusion[d] * flow.t1, t1 = flow.t1, t2 = flow.t2;

	for (int m = 0; m < FLOW_VARIABLES; m++)
		rhs[m] += diffusion * curvature(last[m], (*u)[m], next[m]) -
			t2 * (next[m] * after->velocity[d] - last[m] * before->velocity[d]);
	rhs[1 + d] -= t2 * (after->pressure - before->pressure);
	for (int m = 0; m < 3; m++)
		rhs[1 + m] += (m == d ? 4.0 / 3 : 1) * flow_viscosity * t1 *
			curvature(before->velocity[m], here->velocity[m], after->velocity[m]);
	rhs[4] += flow_conduction * t1 * curvature(before->total, here->total, after->total) +
		(flow_viscosity - flow_conduction) * t1 *
			curvature(before->kinetic, here->kinetic, after->kinetic) +
		flow_viscosity / 6 * t1 * curvature(square(before->velocity[d]),
			square(here->velocity[d]), square(after->velocity[d])) -
		t2 * (after->pressure * after->velocity[d] -
			before->pressure * before->velocity[d]);
}

/* Subtract the dissipation in one direction: a fourth difference, cut off at the boundary. */
static inline void dissipate(const flow_vector *u, size_t step, int i, double *rhs)
{
	ptrdiff_t s = (ptrdiff_t)step;
	int from_end = flow.n - 1 - i;

	for (int m = 0; m < FLOW_VARIABLES; m++) {
		double sum = (i == 1 || from_end == 1 ? 5 : 6) * u[0][m];

		if (i > 1)
			sum -= 4 * u[-s][m];
		if (i > 2)
			sum += u[-2 * s][m];
		if (from_end > 1)
			sum -= 4 * u[s][m];
		if (from_end > 2)
			sum += u[2 * s][m];
		rhs[m] -= flow_dissipation * sum;
	}
}

/* The row's points, from the derived quantities of the planes before, here and after. */
static void find_row(int k, int j, struct derived *const plane[3])
{
	int n = flow.n;

	for (int i = 1; i < n - 1; i++) {
		size_t at = flow_at(k, j, i), in_plane = (size_t)j * n + i;
		const flow_vector *u = flow.u + at;
		const struct derived *here = plane[1] + in_plane;
		const struct derived *below = plane[0] + in_plane, *above = plane[2] + in_plane;
		flow_vector rhs;

		memcpy(rhs, flow.forcing[at], sizeof rhs);
		add_fluxes(u, 1, here - 1, here, here + 1, FLOW_X, rhs);
		add_fluxes(u, n, here - n, here, here + n, FLOW_Y, rhs);
		add_fluxes(u, (size_t)n * n, below, here, above, FLOW_Z, rhs);
		dissipate(u, 1, i, rhs);
		dissipate(u, n, j, rhs);
		dissipate(u, (size_t)n * n, k, rhs);
		memcpy(flow.rhs[at], rhs, sizeof rhs);
	}
}

void flow_find_residual(void)
{
	struct npb_tile tile = flow_tile();
	size_t points = (size_t)flow.n * flow.n;
	struct derived *window = malloc(3 * points * sizeof *window);

	derive_plane(tile.first - 1, window + (tile.first - 1) % 3 * points);
	derive_plane(tile.first, window + tile.first % 3 * points);
	for (int k = tile.first; k < tile.end; k++) {
		struct derived *plane[3];

		for (int p = 0; p < 3; p++)
			plane[p] = window + (k - 1 + p) % 3 * points;
		derive_plane(k + 1, plane[2]);
		for (int j = 1; j < flow.n - 1; j++)
			find_row(k, j, plane);
	}
	free(window);
}

/* ---- Jacobian matrices ---- */

/* Add weight N'(u) + weight diffusion. */
static void add_viscous(const double *u, int direction, double weight, flow_block block)
{
	double per_mass = 1 / u[0], energy = -flow_conduction * u[4] * per_mass;

	for (int m = 0; m < FLOW_VARIABLES; m++)
		block[m][m] += weight * flow_diffusion[direction];
	for (int m = 1; m < 4; m++) {
		double friction = (m == direction + 1 ? 4.0 / 3 : 1) * flow_viscosity;
		double velocity = u[m] * per_mass;

		block[m][0] -= weight * friction * velocity * per_mass;
		block[m][m] += weight * friction * per_mass;
		block[4][m] += weight * (friction - flow_conduction) * velocity * per_mass;
		energy -= (friction - flow_conduction) * velocity * velocity;
	}
	block[4][0] += weight * energy * per_mass;
	block[4][4] += weight * flow_conduction * per_mass;
}

void flow_add_own_block(const double *u, int direction, flow_block block)
{
	add_viscous(u, direction, 2 * flow.dt * flow.t1, block);
}

void flow_neighbour_block(const double *u, int direction, int side, flow_block block)
{
	double weight = side * flow.dt * flow.t2, per_mass = 1 / u[0], total = u[4] * per_mass;
	double v[] = { u[1] * per_mass, u[2] * per_mass, u[3] * per_mass };
	double speed = v[direction], kinetic = 0.5 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
	int d = direction + 1; /* the variable that flows in the direction */

	memset(block, 0, sizeof(flow_block));
	block[0][d] = weight;
	for (int m = 1; m < 4; m++) {
		block[m][0] = -weight * v[m - 1] * speed;
		block[m][m] = weight * speed;
		block[4][m] = -weight * flow_c2 * v[m - 1] * speed;
	}
	for (int m = 1; m < 4; m++) {
		block[m][d] += weight * v[m - 1];
		block[d][m] -= weight * flow_c2 * v[m - 1];
	}
	block[d][0] += weight * flow_c2 * kinetic;
	block[d][4] = weight * flow_c2;
	block[4][0] = weight * (2 * flow_c2 * kinetic - flow_c1 * total) * speed;
	block[4][d] += weight * (flow_c1 * total - flow_c2 * kinetic);
	block[4][4] = weight * flow_c1 * speed;
	add_viscous(u, direction, -flow.dt * flow.t1, block);
}

/* ---- Verification ---- */

/* The thread's part of the squares of rhs and of the error. */
static void sum_squares(double *residual, double *error)
{
	struct npb_tile tile = flow_tile();

	for (int k = tile.first; k < tile.end; k++)
		for (int j = 1; j < flow.n - 1; j++)
			for (int i = 1; i < flow.n - 1; i++) {
				size_t at = flow_at(k, j, i);
				flow_vector exact;

				flow_exact(k, j, i, exact);
				for (int m = 0; m < FLOW_VARIABLES; m++) {
					residual[m] += square(flow.rhs[at][m]);
					error[m] += square(flow.u[at][m] - exact[m]);
				}
			}
}

bool flow_verify(const struct flow_class *class)
{
	flow_vector residual = { 0 }, error = { 0 };
	double points = pow(flow.n - 2, 3);
	bool good = true;

	sum_squares(residual, error);
	for (int m = 0; m < FLOW_VARIABLES; m++) {
		residual[m] = sqrt(npb_sum(residual[m]) / points);
		error[m] = sqrt(npb_sum(error[m]) / points);
	}
	if (omp_get_thread_num() == 0)
		for (int m = 0; m < FLOW_VARIABLES; m++) {
			good &= npb_compare("residual", residual[m], class->residual[m], 1e-8);
			good &= npb_compare("error", error[m], class->error[m], 1e-8);
		}
	return good;
}
