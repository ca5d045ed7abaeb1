/* clocks.h - the time in microseconds, for programs that measure: wall-clock time, and processor
 * time of this process. */
#ifndef BENCH_CLOCKS_H
#define BENCH_CLOCKS_H

#include <sys/resource.h>
#include <time.h>

static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline double cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

#endif
