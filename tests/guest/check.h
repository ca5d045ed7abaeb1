/* check.h - what the programs that run inside the guest share.
 *
 * Each prints one line per expectation, always with the same text, so that its output on the
 * machine under test can be compared with the reference machine's byte by byte.  Numbers that
 * differ from run to run are never printed. main() ends with `return check_result();`: 0, or 1 if
 * anything failed.
 */
#ifndef TESTS_GUEST_CHECK_H
#define TESTS_GUEST_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int check_failures;

/* Prints the line at once, since what follows may kill the process. */
#define expect(what, condition) check_expect(what, !!(condition), #condition)

static inline bool check_expect(const char *what, bool good, const char *condition)
{
	if (good) {
		printf("ok      %s\n", what);
	} else {
		printf("FAILED  %s: %s (errno %d)\n", what, condition, errno);
		check_failures++;
	}
	fflush(stdout);
	return good;
}

static inline int check_result(void)
{
	printf("%s\n", check_failures ? "FAILED" : "all well");
	fflush(stdout);
	return check_failures ? 1 : 0;
}

static inline int64_t check_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

#endif
