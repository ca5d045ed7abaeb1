/* kernel.h - the matrix of the LU factorisation, and the steps on its blocks (n x n, row by
 * row).  The MPI program that it is compared with uses them too. */
#ifndef KERNEL_H
#define KERNEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Returns a random element; the diagonal is heavy, so that no pivots are needed. */
static inline double element(long i, long j, long size)
{
	uint64_t x = ((uint64_t)i << 32 | (uint64_t)j) * 0x9E3779B97F4A7C15ULL;

	x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9ULL;
	return (double)(x >> 40) / (1 << 24) - 0.5 + (i == j ? (double)size : 0);
}

static inline void block_fill(double *a, int i, int j, int n, long size)
{
	for (int y = 0; y < n; y++)
		for (int x = 0; x < n; x++)
			a[y * n + x] = element((long)i * n + y, (long)j * n + x, size);
}

/* a = L U, with 1 on the diagonal of L */
static inline void block_factor(double *a, int n)
{
	for (int k = 0; k < n; k++)
		for (int y = k + 1; y < n; y++) {
			a[y * n + k] /= a[k * n + k];
			for (int x = k + 1; x < n; x++)
				a[y * n + x] -= a[y * n + k] * a[k * n + x];
		}
}

/* a = a U^-1, U of a factored diagonal block */
static inline void block_solve_right(double *a, const double *diagonal, int n)
{
	for (int y = 0; y < n; y++)
		for (int k = 0; k < n; k++) {
			a[y * n + k] /= diagonal[k * n + k];
			for (int x = k + 1; x < n; x++)
				a[y * n + x] -= a[y * n + k] * diagonal[k * n + x];
		}
}

/* a = L^-1 a */
static inline void block_solve_left(double *a, const double *diagonal, int n)
{
	for (int k = 0; k < n; k++)
		for (int y = k + 1; y < n; y++)
			for (int x = 0; x < n; x++)
				a[y * n + x] -= diagonal[y * n + k] * a[k * n + x];
}

/* a -= l u, four rows of u at once: so it matters little what the compiler makes of the
 * innermost loop */
static inline void block_update(double *restrict a, const double *restrict l,
				const double *restrict u, int n)
{
	for (int y = 0; y < n; y++, a += n, l += n) {
		int k = 0;
		for (; k + 4 <= n; k += 4) {
			const double f[] = { l[k], l[k + 1], l[k + 2], l[k + 3] };
			const double *u0 = u + k * n, *u1 = u0 + n, *u2 = u1 + n, *u3 = u2 + n;
			for (int x = 0; x < n; x++)
				a[x] -= f[0] * u0[x] + f[1] * u1[x] + f[2] * u2[x] + f[3] * u3[x];
		}
		for (; k < n; k++)
			for (int x = 0; x < n; x++)
				a[x] -= l[k] * u[k * n + x];
	}
}

/* Returns |A v - L (U v)| / |A v| for a vector v.  factored() returns the elements of L below
 * the diagonal, and those of U above. */
static inline double residual(long size, double (*factored)(long i, long j))
{
	double *v = calloc((size_t)size, sizeof *v), *u = calloc((size_t)size, sizeof *u),
	       error = 0, norm = 0;

	if (!v || !u)
		abort();
	for (long i = 0; i < size; i++)
		v[i] = element(i, 1, size) + 1;
	for (long i = 0; i < size; i++)
		for (long j = i; j < size; j++)
			u[i] += factored(i, j) * v[j];
	for (long i = 0; i < size; i++) {
		double left = 0, right = u[i];
		for (long j = 0; j < size; j++)
			left += element(i, j, size) * v[j];
		for (long j = 0; j < i; j++)
			right += factored(i, j) * u[j];
		error += (left - right) * (left - right);
		norm += left * left;
	}
	free(v);
	free(u);
	return sqrt(error / norm);
}

#endif
