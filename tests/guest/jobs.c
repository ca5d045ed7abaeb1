/* jobs.c - programs that one parent starts, two at a time, begin on the hosts that are idle if they
 * run for long, and stay on their parent's if they do not (guest-patches/23-jobs-apart.patch).
 *
 *   jobs JOBS MS
 *
 * Starts this program JOBS times; each uses MS ms of processor time.  The first four do not count:
 * nothing is known of them.  Prints "apart" if at least a quarter of the others began on each of
 * the two processors, otherwise "together".
 */
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { AT_A_TIME = 2, UNKNOWN = 4 };

static int64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* What a job does; its exit status is the processor on which it began. */
static int work(int64_t ms)
{
	int cpu = sched_getcpu();

	while (used_ns() < ms * 1000000)
		;
	return cpu;
}

static void start(const char *self, char *ms)
{
	char *argv[] = { (char *)self, "job", ms, NULL };
	pid_t pid;

	errno = posix_spawn(&pid, self, NULL, NULL, argv, environ);
	if (!errno)
		return;
	perror(self);
	exit(1);
}

int main(int argc, char **argv)
{
	unsigned jobs = argc == 3 ? (unsigned)atoi(argv[1]) : 0, on[2] = { 0, 0 }, started = 0;

	if (argc == 3 && !strcmp(argv[1], "job"))
		return work(atoi(argv[2]));
	if (jobs <= UNKNOWN || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: jobs JOBS MS\n");
		return 2;
	}
	for (; started < AT_A_TIME; started++)
		start(argv[0], argv[2]);
	for (unsigned ended = 0; ended < jobs; ended++) {
		int status;
		pid_t pid;

		while ((pid = wait(&status)) < 0 && errno == EINTR)
			;
		if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
			printf("a job failed\n");
			return 1;
		}
		if (ended >= UNKNOWN)
			on[WEXITSTATUS(status)]++;
		if (started++ < jobs)
			start(argv[0], argv[2]);
	}
	jobs = (on[0] < on[1] ? on[0] : on[1]) * 4;
	printf("%s\n", jobs >= on[0] + on[1] ? "apart" : "together");
	return 0;
}
