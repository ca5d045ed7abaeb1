/* holder_start.c - see holder_start.h. */
#include "vmm/cli/parts/holder_start.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"

#define COMMAND \
	"sh -c '" SSH_FOLDER "exec \"$d/ld.so\" --library-path \"$d\" \"$d/vmp\" hold'"

static void become_holder(const int ends[3], pid_t parent) __attribute__((noreturn));
static void become_holder(const int ends[3], pid_t parent)
{
	char path[4096], *arguments[] = { "vmp", "hold", NULL };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* so that the terminal's Ctrl-C reaches its owner alone */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (int i = 0; i < 3; i++)
		if (dup2(ends[i], i) < 0)
			_exit(EXIT_VMP_FAILURE);
	if (getppid() == parent && !beside_path("vmp", path, sizeof path))
		beside_exec(path, arguments);
	_exit(EXIT_VMP_FAILURE);
}

static int start_here(struct ssh *ssh)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	pid_t parent = getpid();

	*ssh = (struct ssh){ 0, -1, -1, -1 };
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ||
	    (ssh->pid = fork()) < 0) {
		ssh->pid = 0;
		for (int i = 0; i < 2; i++)
			close(in[i]), close(out[i]), close(err[i]);
		return -1;
	}
	if (!ssh->pid)
		become_holder((int[]){ in[0], out[1], err[1] }, parent);
	close(in[0]), close(out[1]), close(err[1]);
	ssh->in = in[1], ssh->out = out[0], ssh->err = err[0];
	fcntl(ssh->in, F_SETFL, O_NONBLOCK);
	fcntl(ssh->out, F_SETFL, O_NONBLOCK);
	fcntl(ssh->err, F_SETFL, O_NONBLOCK);
	return 0;
}

int holder_start(struct ssh *ssh, const struct cluster_host *host, const char *hash)
{
	char command[600];

	if (!hash)
		return start_here(ssh);
	snprintf(command, sizeof command, COMMAND, hash);
	return ssh_start(ssh, host, NULL, command, true);
}
