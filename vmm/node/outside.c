/* outside.c - see outside.h: the functions of a daemon that runs on a host. */
#include "vmm/node/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/log.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/node.h"
#include "vmm/node/wire/conn.h"

/* Runs in the child; nothing here may fail silently.  All descriptors but those of `program->keep`
 * and `theirs` close on exec. */
static void become_child(const struct node *node, const struct child_program *program, int theirs,
			 pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_VMP_FAILURE);
	/* Whatever a child writes to its standard streams, a sanitizer's report for example,
	 * belongs in the log. */
	if (null < 0 || dup2(null, 0) < 0 || dup2(node->o.log_fd, 1) < 0 ||
	    dup2(node->o.log_fd, 2) < 0)
		_exit(EXIT_VMP_FAILURE);
	fcntl(theirs, F_SETFD, 0);
	for (unsigned i = 0; i < program->n_keep; i++)
		fcntl(program->keep[i], F_SETFD, 0);
	beside_exec(program->arguments[0], program->arguments);
	log_error("cannot run %s: %s; build it with make", program->arguments[0], strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

/* Returns the child's pid, or -errno with the reason in `why`. */
static pid_t fork_child(struct node *node, const struct child *child,
			const struct child_program *program, int theirs, char *why,
			size_t why_bytes)
{
	pid_t parent = getpid(), pid;
	int error;

	if (access(program->arguments[0], X_OK)) {
		error = errno;
		snprintf(why, why_bytes, "cannot run %s: %s; build it with make",
			 program->arguments[0], strerror(error));
		return -error;
	}
	processors_before_fork(node, child);
	pid = fork();
	if (pid == 0)
		become_child(node, program, theirs, parent);
	error = errno;
	processors_after_fork(node);
	if (pid > 0)
		return pid;
	snprintf(why, why_bytes, "cannot start the %s: %s; too many processes?", child->name,
		 strerror(error));
	return -error;
}

static int start(struct node *node, struct child *child, const struct child_program *program,
		 char *why, size_t why_bytes)
{
	char path[4096], number[16];
	int sockets[2];
	pid_t pid;

	if (beside_path(program->name, path, sizeof path))
		die("the path of vmp's programs is too long");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		die("cannot make a socket pair: %s; see ulimit -n", strerror(errno));
	snprintf(number, sizeof number, "%d", sockets[1]);
	program->arguments[0] = path;
	program->arguments[program->n_arguments] = "--socket";
	program->arguments[program->n_arguments + 1] = number;
	program->arguments[program->n_arguments + 2] = NULL;
	pid = fork_child(node, child, program, sockets[1], why, why_bytes);
	close(sockets[1]);
	if (pid < 0) {
		close(sockets[0]);
		return pid;
	}
	child->pid = pid;
	child->conn = conn_new(&node->loop, sockets[0], child->name, program->handler, node,
			       child->cpu);
	log_debug("%s is process %d", child->name, child->pid);
	return 0;
}

static void kill_child(struct node *node, struct child *child, int signal_number)
{
	(void)node;
	kill(child->pid, signal_number);
}

static pid_t reap(struct node *node, int *status)
{
	(void)node;
	return waitpid(-1, status, WNOHANG);
}

static bool processors(cpu_set_t *allowed)
{
	return !sched_getaffinity(0, sizeof *allowed, allowed);
}

static void bind_to(pid_t pid, const cpu_set_t *processors)
{
	sched_setaffinity(pid, sizeof *processors, processors);
}

/* Returns the load of the computer, not only of the processors that this host may use. */
static uint32_t load_percent(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	double load;

	if (getloadavg(&load, 1) != 1 || count <= 0)
		return 0;
	return (uint32_t)(load * 100 / count);
}

const struct outside outside_real = {
	.reaches = overlay_reaches,
	.reaches_all = overlay_complete,
	.silent = overlay_silent,
	.dial = overlay_dial,
	.has_more = overlay_has_more,
	.cork = overlay_cork,
	.uncork = overlay_uncork,
	.be_prompt = overlay_be_prompt,
	.flush = overlay_flush,
	.has_sent_all = overlay_has_sent_all,
	.start = start,
	.kill = kill_child,
	.reap = reap,
	.processors = processors,
	.bind = bind_to,
	.load_percent = load_percent,
	.memory = hostmem_look,
	.tsc_mark = tsc_mark,
	.tsc_khz_since = tsc_khz_since,
	.tsc_trusted = tsc_trusted,
};
