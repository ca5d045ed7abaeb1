/* killed.c - see killed.h. */
#include "base/killed.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>

static uint64_t before;

uint64_t killed_count(const char *root)
{
	unsigned long long count = 0;
	char path[PATH_MAX], line[128];
	FILE *file;

	snprintf(path, sizeof path, "%s/proc/vmstat", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file) && sscanf(line, "oom_kill %llu", &count) != 1)
		;
	if (file)
		fclose(file);
	return count;
}

void killed_remember(void)
{
	before = killed_count("");
}

const char *killed_why(int signal)
{
	if (signal == SIGSYS)
		return "; it made a system call that it has given up: a bug in vmp, or an attack";
	return signal == SIGKILL && killed_count("") > before
		       ? "; the host, or a control group (cgroup), ran out of memory"
		       : "";
}
