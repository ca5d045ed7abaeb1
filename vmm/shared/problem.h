/* problem.h - one line that says what is wrong and what to do.  The function that finds the problem
 * writes it; main() alone prints it. */
#ifndef VMM_SHARED_PROBLEM_H
#define VMM_SHARED_PROBLEM_H

struct problem { char line[640]; };

/* Writes the line, with question marks for control characters: other computers, and files, may have
 * chosen a part of it.  Returns -1, so that callers can `return problem(...)`. */
int problem(struct problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
