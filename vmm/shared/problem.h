/* problem.h - one line that says what is wrong and what to do, filled in by whoever finds out, printed by main() alone. */
#ifndef VMM_SHARED_PROBLEM_H
#define VMM_SHARED_PROBLEM_H

struct problem { char line[640]; };

/* Fill in the line; returns -1, so that callers can `return problem(...)`. */
int problem(struct problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
