/* cluster_ssh.c - see cluster_ssh.h. */
#include "vmm/cli/cluster/cluster_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MAX_OPTIONS = 32, MAX_COMMAND = 2048 };

bool ssh_is_rsh;

/* Puts before a command what makes vmp there start vmp-rsh, whose path its environment has. */
static const char *with_rsh(const char *command, char text[MAX_COMMAND])
{
	if (!ssh_is_rsh)
		return command;
	snprintf(text, MAX_COMMAND, "export VMP_SSH=\"$VMP_RSH\" PHNX_SSH=\"$VMP_RSH\"; %s",
		 command);
	return text;
}

struct call {
	const struct cluster_host *host;
	const char *const *options, *command;
	bool stays;
};

static void become_ssh(void *context, const int ends[3], pid_t parent)
{
	const struct call *call = context;
	const struct cluster_host *host = call->host;
	const char *const *options = call->options;
	const char *program = getenv("VMP_SSH") ? getenv("VMP_SSH") : "ssh";
	char text[MAX_COMMAND], port[16], *arguments[MAX_OPTIONS] = {
		(char *)program, "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30",
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
	};
	int n = 10;

	for (; options && *options && n < MAX_OPTIONS - 8; options++)
		arguments[n++] = (char *)*options;
	snprintf(port, sizeof port, "%u", host->port);
	if (host->port)
		arguments[n++] = "-p", arguments[n++] = port;
	if (host->user[0])
		arguments[n++] = "-l", arguments[n++] = (char *)host->user;
	arguments[n++] = "--", arguments[n++] = (char *)host->name;
	if (call->stays)
		arguments[n++] = "nohup";
	arguments[n++] = (char *)with_rsh(call->command, text);
	setpgid(0, 0); /* so that the terminal's Ctrl-C reaches vmp alone */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (int i = 0; i < 3; i++)
		if (dup2(ends[i], i) < 0)
			_exit(EXIT_VMP_FAILURE);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGTTIN, SIG_DFL);
	if (getppid() == parent)
		execvp(program, arguments);
	dprintf(2, "cannot run %s: %s\n", program, strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

int ssh_fork(struct ssh *ssh, void (*become)(void *context, const int ends[3], pid_t parent),
	     void *context)
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
	if (!ssh->pid) {
		become(context, (int[]){ in[0], out[1], err[1] }, parent);
		_exit(EXIT_VMP_FAILURE);
	}
	close(in[0]), close(out[1]), close(err[1]);
	ssh->in = in[1], ssh->out = out[0], ssh->err = err[0];
	fcntl(ssh->in, F_SETFL, O_NONBLOCK);
	fcntl(ssh->out, F_SETFL, O_NONBLOCK);
	fcntl(ssh->err, F_SETFL, O_NONBLOCK);
	return 0;
}

int ssh_start(struct ssh *ssh, const struct cluster_host *host, const char *const *options,
	      const char *command, bool stays)
{
	struct call call = { host, options, command, stays };

	return ssh_fork(ssh, become_ssh, &call);
}
