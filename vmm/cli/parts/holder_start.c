/* holder_start.c - see holder_start.h. */
#include "vmm/cli/parts/holder_start.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"

#define COMMAND \
	"sh -c '" SSH_FOLDER "exec \"$d/ld.so\" --library-path \"$d\" \"$d/vmp\" hold'"

static void become_holder(void *context, const int ends[3], pid_t parent)
{
	char path[4096], *arguments[] = { "vmp", "hold", NULL };
	sigset_t none;

	(void)context;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* so that the terminal's Ctrl-C reaches its owner alone */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (int i = 0; i < 3; i++)
		if (dup2(ends[i], i) < 0)
			_exit(EXIT_VMP_FAILURE);
	if (getppid() == parent && !beside_path("vmp", path, sizeof path))
		beside_exec(path, arguments);
}

int holder_start(struct ssh *ssh, const struct cluster_host *host, const char *hash)
{
	char command[600];

	if (!hash)
		return ssh_fork(ssh, become_holder, NULL);
	snprintf(command, sizeof command, COMMAND, hash);
	return ssh_start(ssh, host, NULL, command, true);
}
