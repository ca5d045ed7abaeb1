/* flow.h - what the NAS Parallel Benchmarks' BT, SP and LU share, written from their published
 * specification.
 *
 * All three march to the steady state of a flow of five variables (mass, momentum in x, y and z,
 * energy; each per volume) on a cubic grid; they differ in how they solve the implicit equations of
 * a step. The boundary is kept at the exact solution, a polynomial; the forcing term makes that
 * polynomial the steady state.
 *
 * Inside a parallel region a thread calls these functions with its own tile of planes k (the
 * outermost dimension), and writes these alone. The caller puts a barrier between functions where
 * one says that it reads what others write.
 */
#ifndef EXAMPLES_NPB_FLOW_H
#define EXAMPLES_NPB_FLOW_H

#include "npb.h"

enum { FLOW_VARIABLES = 5, FLOW_X = 0, FLOW_Y, FLOW_Z };

/* The specification's constants: ratio of specific heats, that less 1, and products of the
 * viscosity's.
 */
static const double flow_c1 = 1.4, flow_c2 = 0.4;
static const double flow_viscosity = 0.1, flow_conduction = 1.96 * 0.1; /* c3 c4, c1 c3 c4 c5 */
static const double flow_diffusion[] = { 0.75, 0.75, 1 }; /* dx1 .. dx5, dy1 .. dy5, dz1 .. dz5 */
static const double flow_dissipation = 0.25;              /* of fourth order; dssp */

typedef double flow_vector[FLOW_VARIABLES];
typedef double flow_block[FLOW_VARIABLES][FLOW_VARIABLES];

/* The grid: n points in each dimension, 0 and n - 1 on the boundary; `rhs` is zero there. */
struct flow {
	int n;
	double dt;     /* a step's length */
	double t1, t2; /* 1 / h^2 and 1 / 2h of the distance h between two points */
	flow_vector *u, *rhs, *forcing; /* of n planes of n rows of n points: see flow_at */
};
extern struct flow flow;

/* What one class of a program runs, and what is published of its end. */
struct flow_class {
	int n, steps;
	double dt;
	flow_vector residual, error; /* root mean squares */
};

/* The index of a point, and the distance of the indices of neighbours in a direction. */
static inline size_t flow_at(int k, int j, int i) { return ((size_t)k * flow.n + j) * flow.n + i; }
static inline size_t flow_step(int direction)
{
	size_t n = flow.n;

	return direction == FLOW_X ? 1 : direction == FLOW_Y ? n : n * n;
}

/* Allocate the grid of a class. */
void flow_allocate(const struct flow_class *class);

/* The calling thread's interior planes or, for what is done on the boundary too, also the first and
 * the last plane.
 */
struct npb_tile flow_tile(void);
struct npb_tile flow_tile_with_boundary(void);

/* The exact solution at a point. */
void flow_exact(int k, int j, int i, double *u);

/* Set u to the initial values: exact on the boundary, interpolated between the faces inside. */
void flow_set_initial(void);

/* Set the forcing term. Overwrites u and rhs; contains barriers. */
void flow_set_forcing(void);

/* rhs = the time derivative of u, which is zero in the steady state. Reads u of the two nearest
 * planes of neighbours.
 */
void flow_find_residual(void);

/* The Jacobian matrices of an implicit step, from u of one point. A neighbour in the direction
 * contributes, with `side` -1 for the one before and 1 for the one after, side dt/2h F'(u) - dt/h^2
 * (N'(u) + diffusion), F being the flux and N the viscous flux; the point itself contributes 2
 * dt/h^2 (N'(u) + diffusion), which is added to `block`.
 */
void flow_neighbour_block(const double *u, int direction, int side, flow_block block);
void flow_add_own_block(const double *u, int direction, flow_block block);

/* Compare rhs (not scaled by dt) and the error of u with the published values; every thread calls
 * it.
 */
bool flow_verify(const struct flow_class *class);

#endif
