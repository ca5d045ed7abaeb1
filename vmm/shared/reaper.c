/* reaper.c - see reaper.h. */
#include "vmm/shared/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int reaper_become(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) ? -errno : 0;
}

static bool has(const pid_t *list, pid_t pid)
{
	while (list && *list && *list != pid)
		list++;
	return list && *list;
}

/* Kills the children of `of`, by /proc's list, and with `all_below` all their descendants.  Returns
 * how many children there were. */
static unsigned kill_children(pid_t of, const pid_t *but, bool all_below)
{
	char path[64];
	unsigned n = 0;
	FILE *list;
	int pid;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", of, of);
	list = fopen(path, "re");
	while (list && fscanf(list, "%d", &pid) == 1) {
		if (has(but, pid))
			continue;
		n += !kill(pid, SIGKILL);
		if (all_below)
			kill_children(pid, but, true);
	}
	if (list)
		fclose(list);
	return n;
}

void reaper_sleep_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&time, NULL);
}

/* (TRICKS: kill-all-at-once) */
void reaper_end_all(const pid_t *but)
{
	enum { STEP_MS = 2, LAST_MS = 5000 };

	/* All die at the same time and free their memory in parallel, instead of each child after
	 * its parent. */
	kill_children(getpid(), but, true);
	for (unsigned waited = 0; waited < LAST_MS; waited += STEP_MS) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0 || !kill_children(getpid(), but, false))
			break;
		reaper_sleep_ms(STEP_MS);
	}
}
