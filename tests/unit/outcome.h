/* outcome.h - how a process ends that does one thing. */
#ifndef TESTS_UNIT_OUTCOME_H
#define TESTS_UNIT_OUTCOME_H

#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"

enum { FAILED = 99, KILLED = 1000 /* + the signal */ };

/* Returns the exit status of a process that does this, or KILLED + signal. */
static inline int outcome(int (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(run());
	CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
