/* median.h - for programs that measure. */
#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

#include <stdlib.h>

static inline int median_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of n > 0 figures, and sorts them. */
static inline double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, median_order);
	return v[n / 2];
}

#endif
