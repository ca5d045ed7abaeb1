/* reaper.c - see reaper.h. */
#include "vmm/reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int reaper_become(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) ? -errno : 0;
}

/* By /proc's list of them. */
static void kill_children(void)
{
	char path[64];
	FILE *list;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	list = fopen(path, "re");
	if (!list)
		return;
	while (fscanf(list, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	fclose(list);
}

void reaper_sleep_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&time, NULL);
}

void reaper_end_all(void)
{
	enum { STEP_MS = 2, LAST_MS = 5000 };

	for (unsigned waited = 0; waited < LAST_MS; waited += STEP_MS) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0)
			break;
		kill_children();
		reaper_sleep_ms(STEP_MS);
	}
}
