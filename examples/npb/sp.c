/* sp.c - the NAS Parallel Benchmarks' SP (scalar pentadiagonal), written from its published
 * specification.
 *
 *   sp [S|W|A] [--threads N]
 *
 * As BT (bt.c), but the system of each direction is first brought into the form in which the five
 * variables are independent: the eigenvectors of the flux's Jacobian matrix. For each line of
 * points there are then five scalar systems with five diagonals, the outer two of which come from
 * the dissipation. Threads, tiles and barriers are as in BT; a step computes less between them.
 */
#include <math.h>
#include <omp.h>

#include "flow.h"

static const struct flow_class classes[] = {
	{ 12, 100, 0.015,
	  { 2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02,
	    1.5840557224455615e-02, 3.4849040609362460e-02 },
	  { 2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05,
	    1.5750704994480102e-05, 3.4177666183390531e-05 } },
	{ 36, 400, 0.0015,
	  { 0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03,
	    0.2887475409984e-03, 0.3143611161242e-02 },
	  { 0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04,
	    0.1128838671535e-04, 0.1212845639773e-03 } },
	{ 64, 400, 0.0015,
	  { 2.4799822399300195e+00, 1.1276337964368832e+00, 1.5028977888770491e+00,
	    1.4217816211695179e+00, 2.1292113035138280e+00 },
	  { 1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05,
	    4.7671093939528255e-05, 1.3621613399213001e-04 } },
};

static const double root_half = 0.70710678118654752440; /* the specification's bt */

/* What the transformations need of a point. */
struct local {
	double per_mass, velocity[3], kinetic;
	double sound; /* the speed of sound */
};

static struct local local_of(const double *u)
{
	struct local l = { .per_mass = 1 / u[0] };

	for (int d = 0; d < 3; d++)
		l.velocity[d] = u[1 + d] * l.per_mass;
	l.kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) * l.per_mass * l.per_mass;
	l.sound = sqrt(flow_c1 * flow_c2 * (u[4] * l.per_mass - l.kinetic));
	return l;
}

/* ---- Between the variables and the eigenvectors ---- */

/* From the variables, scaled by dt, to the eigenvectors in x. */
static void enter_x(const double *u, double *r)
{
	struct local l = local_of(u);
	const double *v = l.velocity;
	double work = l.kinetic * r[0] - v[0] * r[1] - v[1] * r[2] - v[2] * r[3] + r[4];
	double t1 = flow_c2 / (l.sound * l.sound) * work * flow.dt;
	double t2 = root_half * l.per_mass * (v[0] * r[0] - r[1]) * flow.dt;
	double t3 = root_half * l.per_mass * l.sound * t1;
	double r0 = r[0] * flow.dt, r2 = r[2] * flow.dt, r3 = r[3] * flow.dt;

	r[0] = r0 - t1;
	r[1] = l.per_mass * (r3 - v[2] * r0);
	r[2] = l.per_mass * (v[1] * r0 - r2);
	r[3] = t3 - t2;
	r[4] = t3 + t2;
}

/* From the eigenvectors in x to those in y: the product of both matrices depends on no variable. */
static void from_x_to_y(double *r)
{
	double r0 = r[0], t1 = root_half * r[2], t2 = 0.5 * (r[3] + r[4]);

	r[2] = root_half * (r[3] - r[4]);
	r[0] = -r[1];
	r[1] = r0;
	r[3] = t2 - t1;
	r[4] = t2 + t1;
}

static void from_y_to_z(double *r)
{
	double r1 = r[1], t1 = root_half * r[0], t2 = 0.5 * (r[3] + r[4]);

	r[0] = root_half * (r[3] - r[4]);
	r[1] = -r[2];
	r[2] = r1;
	r[3] = t2 - t1;
	r[4] = t2 + t1;
}

/* From the eigenvectors in z back to the variables. */
static void leave_z(const double *u, double *r)
{
	struct local l = local_of(u);
	const double *v = l.velocity;
	double t1 = root_half * u[0] / l.sound * (r[3] + r[4]), t2 = r[2] + t1;
	double t3 = root_half * u[0] * (r[3] - r[4]), r0 = r[0], r1 = r[1];

	r[0] = t2;
	r[1] = v[0] * t2 - u[0] * r1;
	r[2] = v[1] * t2 + u[0] * r0;
	r[3] = v[2] * t2 + t3;
	r[4] = u[0] * (v[1] * r0 - v[0] * r1) + l.kinetic * t2 + v[2] * t3 +
		l.sound * l.sound / flow_c2 * t1;
}

/* ---- The systems of a line ---- */

/* The five coefficients of a row: of the point itself, which is element 2, and of its two
 * neighbours on each side.
 */
typedef double row[5];

/* Memory for a line: the systems of the three eigenvalues v, v + sound and v - sound, and what they
 * are made of. It is on pages of its own, since a thread writes it all the time, and its neighbours
 * on the heap would be words that the other threads wait for.
 */
struct line {
	row *system[3];
	double *velocity, *sound, *diffusion;
};

static struct line new_line(int n)
{
	struct line l;
	double *memory = npb_allocate(n, 3 * sizeof(row) + 3 * sizeof(double));

	for (int s = 0; s < 3; s++, memory += n * (sizeof(row) / sizeof(double)))
		l.system[s] = (row *)memory;
	l.velocity = memory;
	l.sound = memory + n;
	l.diffusion = memory + 2 * n;
	return l;
}

/* Add the dissipation's part, cut off at the boundary as in the residual. */
static void add_dissipation(int i, double *r)
{
	double weight = flow.dt * flow_dissipation;
	int from_end = flow.n - 1 - i;

	r[2] += (i == 1 || from_end == 1 ? 5 : 6) * weight;
	if (i > 1)
		r[1] -= 4 * weight;
	if (i > 2)
		r[0] += weight;
	if (from_end > 1)
		r[3] -= 4 * weight;
	if (from_end > 2)
		r[4] += weight;
}

static void make_systems(size_t first, int direction, struct line *l)
{
	double t1 = flow.dt * flow.t1, t2 = flow.dt * flow.t2;
	size_t at = first;

	for (int i = 0; i < flow.n; i++, at += flow_step(direction)) {
		struct local here = local_of(flow.u[at]);

		l->velocity[i] = here.velocity[direction];
		l->sound[i] = here.sound;
		l->diffusion[i] = flow_diffusion[direction] + flow_conduction * here.per_mass;
		l->diffusion[i] *= t1;
	}
	for (int i = 1; i < flow.n - 1; i++) {
		for (int s = 0; s < 3; s++) {
			double *r = l->system[s][i];
			int sign = s == 2 ? -1 : s;

			r[0] = r[4] = 0;
			r[1] = -t2 * (l->velocity[i - 1] + sign * l->sound[i - 1]);
			r[1] -= l->diffusion[i - 1];
			r[2] = 1 + 2 * l->diffusion[i];
			r[3] = t2 * (l->velocity[i + 1] + sign * l->sound[i + 1]);
			r[3] -= l->diffusion[i + 1];
			add_dissipation(i, r);
		}
	}
}

/* Subtract row i, which is divided by its own coefficient, from the row `distance` after it. */
static inline void subtract_row(row *r, int distance, flow_vector *rhs, size_t step, int first,
	int end)
{
	double factor = r[distance][2 - distance];

	r[distance][3 - distance] -= factor * r[0][3];
	r[distance][4 - distance] -= factor * r[0][4];
	for (int m = first; m < end; m++)
		rhs[distance * step][m] -= factor * rhs[0][m];
}

/* Solve one of the systems for the variables first <= m < end. The ends of the line are on the
 * boundary, where the right side is zero: they are no part of the system.
 */
static inline void solve_system(row *r, size_t start, size_t step, int first, int end)
{
	flow_vector *rhs = flow.rhs + start;

	for (int i = 1; i < flow.n - 1; i++) {
		double *here = rhs[i * step], factor = 1 / r[i][2];

		r[i][3] *= factor;
		r[i][4] *= factor;
		for (int m = first; m < end; m++)
			here[m] *= factor;
		if (i + 1 < flow.n - 1)
			subtract_row(r + i, 1, rhs + i * step, step, first, end);
		if (i + 2 < flow.n - 1)
			subtract_row(r + i, 2, rhs + i * step, step, first, end);
	}
	for (int i = flow.n - 3; i > 0; i--)
		for (int m = first; m < end; m++) {
			rhs[i * step][m] -= r[i][3] * rhs[(i + 1) * step][m];
			if (i < flow.n - 3)
				rhs[i * step][m] -= r[i][4] * rhs[(i + 2) * step][m];
		}
}

static void solve_line(size_t first, int direction, struct line *l)
{
	size_t step = flow_step(direction);

	make_systems(first, direction, l);
	solve_system(l->system[0], first, step, 0, 3);
	solve_system(l->system[1], first, step, 3, 4);
	solve_system(l->system[2], first, step, 4, 5);
}

/* ---- The program ---- */

/* All of a step that stays in plane k. */
static void solve_plane(int k, struct line *l)
{
	int n = flow.n;

	for (int j = 1; j < n - 1; j++) {
		for (int i = 1; i < n - 1; i++)
			enter_x(flow.u[flow_at(k, j, i)], flow.rhs[flow_at(k, j, i)]);
		solve_line(flow_at(k, j, 0), FLOW_X, l);
		for (int i = 1; i < n - 1; i++)
			from_x_to_y(flow.rhs[flow_at(k, j, i)]);
	}
	for (int i = 1; i < n - 1; i++) {
		solve_line(flow_at(k, 0, i), FLOW_Y, l);
		for (int j = 1; j < n - 1; j++)
			from_y_to_z(flow.rhs[flow_at(k, j, i)]);
	}
}

/* The rest of a step, for the points of row j in all planes. */
static void solve_rows(int j, struct line *l)
{
	int n = flow.n;

	for (int i = 1; i < n - 1; i++)
		solve_line(flow_at(0, j, i), FLOW_Z, l);
	for (int k = 1; k < n - 1; k++)
		for (size_t at = flow_at(k, j, 1); at < flow_at(k, j, n - 1); at++) {
			leave_z(flow.u[at], flow.rhs[at]);
			for (int m = 0; m < FLOW_VARIABLES; m++)
				flow.u[at][m] += flow.rhs[at][m];
		}
}

static bool run(const struct flow_class *class, double *seconds)
{
	bool good = false;

#pragma omp parallel
	{
		struct npb_tile tile = flow_tile();
		struct line line = new_line(class->n);
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
				for (int k = tile.first; k < tile.end; k++)
					solve_plane(k, &line);
#pragma omp barrier
				for (int j = tile.first; j < tile.end; j++)
					solve_rows(j, &line);
#pragma omp barrier
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
	int c = npb_parse(argc, argv, "sp");
	double n = classes[c].n, seconds = 0;
	bool good;

	flow_allocate(&classes[c]);
	good = run(&classes[c], &seconds);
	return npb_report("SP", c, seconds,
		1e-6 * classes[c].steps *
			(881.174 * n * n * n - 4683.91 * n * n + 11484.5 * n - 19272.4), good);
}
