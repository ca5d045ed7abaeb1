/* cg.c - the NAS Parallel Benchmarks' CG (conjugate gradient), written from its published
 * specification.
 *
 *   cg [S|W|A] [--threads N]
 *
 * The smallest eigenvalue of a large sparse symmetric matrix is estimated by inverse power
 * iteration; each of its 15 steps solves A z = x by 25 steps of the conjugate gradient method. A
 * thread owns a range of rows: their nonzero elements are its own memory, and of the vectors it
 * writes its range alone. Shared are the whole of p, which the product A p reads, and the sums of
 * two dot products. There are three barriers in each of the 375 steps.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "npb.h"

enum { STEPS = 15, CG_STEPS = 25, MAX_NONZERO = 16 };

static const double condition = 0.1; /* the reciprocal of the matrix's condition number */

static const struct class {
	int n;       /* rows and columns */
	int nonzero; /* nonzero elements of each random vector */
	double shift;
	double zeta; /* published */
} classes[] = {
	{ 1400, 7, 10, 8.5971775078648 },
	{ 7000, 8, 12, 10.362595087124 },
	{ 14000, 11, 20, 17.130235054029 },
};

/* One of the random sparse vectors whose weighted outer products make up the matrix. */
struct sparse_vector {
	int length;
	int index[MAX_NONZERO];
	double value[MAX_NONZERO];
};

/* The rows of one thread. */
struct rows {
	struct npb_tile tile;
	int *start; /* where each row begins in the following two; one more entry for the end */
	int *column;
	double *value;
};

static const struct class *class;
static struct sparse_vector *vectors;
static double *x, *z, *p, *q, *r; /* of n elements each */

/* ---- The matrix ---- */

static int find_index(const struct sparse_vector *v, int index)
{
	int i = 0;

	while (i < v->length && v->index[i] != index)
		i++;
	return i;
}

/* One random sparse vector: `nonzero` random elements at random places, and 0.5 at place `row`. */
static void make_vector(struct sparse_vector *v, int row, uint64_t *seed)
{
	int power_of_2 = 1, i;

	while (power_of_2 < class->n)
		power_of_2 *= 2;
	v->length = 0;
	while (v->length < class->nonzero) {
		double value = randlc(seed);
		int index = (int)(power_of_2 * randlc(seed));

		if (index < class->n && find_index(v, index) == v->length) {
			v->index[v->length] = index;
			v->value[v->length++] = value;
		}
	}
	i = find_index(v, row);
	v->index[i] = row;
	v->value[i] = 0.5;
	if (i == v->length)
		v->length++;
}

static void make_vectors(void)
{
	uint64_t seed = npb_first_seed;

	randlc(&seed); /* the specification's program draws one number before */
	for (int i = 0; i < class->n; i++)
		make_vector(&vectors[i], i, &seed);
}

/* Where a row of the matrix gets its elements from: element `place` of vector `vector`. */
struct term {
	int vector, place;
};

/* The terms of each of the thread's rows, sorted by row; `first` says where each row's begin. */
static struct term *sort_terms(struct npb_tile tile, int *first)
{
	int rows = tile.end - tile.first;
	int *next = calloc(rows + 1, sizeof *next);
	struct term *terms;

	for (int i = 0; i < class->n; i++)
		for (int j = 0; j < vectors[i].length; j++)
			if (vectors[i].index[j] >= tile.first && vectors[i].index[j] < tile.end)
				next[vectors[i].index[j] - tile.first + 1]++;
	for (int i = 0; i < rows; i++)
		next[i + 1] += next[i];
	for (int i = 0; i <= rows; i++)
		first[i] = next[i];
	terms = calloc(first[rows] + 1, sizeof *terms);
	for (int i = 0; i < class->n; i++)
		for (int j = 0; j < vectors[i].length; j++)
			if (vectors[i].index[j] >= tile.first && vectors[i].index[j] < tile.end)
				terms[next[vectors[i].index[j] - tile.first]++] =
					(struct term){ i, j };
	free(next);
	return terms;
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Add a term to the row that is summed up in `sum`; returns the row's length, new columns being
 * appended. */
static int add_term(struct term t, int row, double weight, double *sum, char *is_used, int *columns,
		    int length)
{
	const struct sparse_vector *v = &vectors[t.vector];
	double scale = weight * v->value[t.place];

	for (int i = 0; i < v->length; i++) {
		int column = v->index[i];

		if (!is_used[column]) {
			is_used[column] = 1;
			sum[column] = 0;
			columns[length++] = column;
		}
		sum[column] += v->value[i] * scale;
		if (column == row && t.vector == row)
			sum[column] += condition - class->shift;
	}
	return length;
}

/* The thread's rows of sum(weight(i) v(i) v(i)^T) + (condition - shift) I, the weights falling from
 * 1 to `condition`. */
static void make_rows(struct rows *m)
{
	int rows = m->tile.end - m->tile.first, bound = 0, length = 0;
	int *first = calloc(rows + 1, sizeof *first);
	struct term *terms = sort_terms(m->tile, first);
	double *sum = calloc(class->n, sizeof *sum), ratio = pow(condition, 1.0 / class->n);
	char *is_used = calloc(class->n, 1);

	for (int i = 0; i < first[rows]; i++)
		bound += vectors[terms[i].vector].length;
	m->start = npb_allocate(rows + 1, sizeof *m->start);
	m->column = npb_allocate(bound + 1, sizeof *m->column);
	m->value = npb_allocate(bound + 1, sizeof *m->value);
	for (int row = 0; row < rows; row++) {
		int *columns = m->column + length, here = 0;

		for (int i = first[row]; i < first[row + 1]; i++)
			here = add_term(terms[i], m->tile.first + row, pow(ratio, terms[i].vector),
					sum, is_used, columns, here);
		qsort(columns, here, sizeof *columns, compare_ints);
		for (int i = 0; i < here; i++) {
			m->value[length + i] = sum[columns[i]];
			is_used[columns[i]] = 0;
		}
		length += here;
		m->start[row + 1] = length;
	}
	free(is_used);
	free(sum);
	free(terms);
	free(first);
}

/* ---- The solution ---- */

/* q = A p in the thread's rows; returns its part of p q. */
static double multiply(const struct rows *m)
{
	double product = 0;

	for (int row = 0; row < m->tile.end - m->tile.first; row++) {
		double sum = 0;

		for (int i = m->start[row]; i < m->start[row + 1]; i++)
			sum += m->value[i] * p[m->column[i]];
		q[m->tile.first + row] = sum;
		product += sum * p[m->tile.first + row];
	}
	return product;
}

/* Solve A z = x approximately. Every thread calls it; p must not be in use by others, and is not
 * when it returns. */
static void solve(const struct rows *m)
{
	double rho = 0;

	for (int i = m->tile.first; i < m->tile.end; i++) {
		z[i] = 0;
		p[i] = r[i] = x[i];
		rho += r[i] * r[i];
	}
	rho = npb_sum(rho);
	for (int step = 0; step < CG_STEPS; step++) {
		double alpha = rho / npb_sum(multiply(m)), rho_before = rho;

		rho = 0;
		for (int i = m->tile.first; i < m->tile.end; i++) {
			z[i] += alpha * p[i];
			r[i] -= alpha * q[i];
			rho += r[i] * r[i];
		}
		rho = npb_sum(rho);
		for (int i = m->tile.first; i < m->tile.end; i++)
			p[i] = r[i] + rho / rho_before * p[i];
#pragma omp barrier
	}
}

/* One step of the inverse power iteration; returns the estimate of the eigenvalue. */
static double step(const struct rows *m)
{
	double xz = 0, zz = 0;

	solve(m);
	for (int i = m->tile.first; i < m->tile.end; i++) {
		xz += x[i] * z[i];
		zz += z[i] * z[i];
	}
	xz = npb_sum(xz);
	zz = npb_sum(zz);
	for (int i = m->tile.first; i < m->tile.end; i++)
		x[i] = z[i] / sqrt(zz);
	return class->shift + 1 / xz;
}

static void set_to_one(struct npb_tile tile)
{
	for (int i = tile.first; i < tile.end; i++)
		x[i] = 1;
}

static void run(double *zeta, double *seconds)
{
#pragma omp parallel
	{
		struct rows mine = { .tile = npb_tile(0, class->n) };
		double start, estimate = 0;

		make_rows(&mine);
		set_to_one(mine.tile);
		step(&mine); /* as specified: untimed, so that all memory has been touched */
		set_to_one(mine.tile);
#pragma omp barrier
		start = omp_get_wtime();
		for (int i = 0; i < STEPS; i++)
			estimate = step(&mine);
#pragma omp barrier
#pragma omp master
		{
			*seconds = omp_get_wtime() - start;
			*zeta = estimate;
		}
	}
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "cg"), terms;
	double zeta = 0, seconds = 0;
	bool good;

	class = &classes[c];
	vectors = npb_allocate(class->n, sizeof *vectors);
	x = npb_allocate(class->n, sizeof *x);
	z = npb_allocate(class->n, sizeof *z);
	p = npb_allocate(class->n, sizeof *p);
	q = npb_allocate(class->n, sizeof *q);
	r = npb_allocate(class->n, sizeof *r);
	make_vectors();
	run(&zeta, &seconds);
	good = npb_compare("zeta", zeta, class->zeta, 1e-10);
	terms = class->nonzero * (class->nonzero + 1);
	return npb_report("CG", c, seconds,
			  2e-6 * STEPS * class->n * (3 + terms + CG_STEPS * (5.0 + terms) + 3),
			  good);
}
