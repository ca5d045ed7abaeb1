/* keeper.c - see keeper.h. */
#include "vpg/peer/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 126, NOT_FOUND = 127, CONTROL = 3, SIGNALS = 4 };

/* ---- the command's own process, before it is the command ---- */

static void say(const char *what, int error)
{
	dprintf(2, "vmp: %s: %s\n", what, strerror(error));
}

static int open_stream(const struct keeper_stream *s, bool reads)
{
	switch (s->io) {
	case IO_READ: return open(s->path, O_RDONLY);
	case IO_WRITE: return open(s->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	case IO_APPEND: return open(s->path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	default: return open("/dev/null", reads ? O_RDONLY : O_WRONLY);
	}
}

/* Sets the standard streams; standard error first, since later failures are reported there. */
static int set_streams(const struct keeper_order *o)
{
	static const int order[] = { 2, 0, 1 };

	for (int i = 0; i < 3; i++) {
		const struct keeper_stream *s = o->stream + order[i];

		if (s->fd >= 0 && dup2(s->fd, order[i]) >= 0)
			continue;
		if (s->io == IO_LIKE_OUT)
			continue;
		int fd = open_stream(s, order[i] == 0);
		if (fd < 0 || dup2(fd, order[i]) < 0) {
			say(s->path ? s->path : "/dev/null", errno);
			return -1;
		}
		if (fd > 2)
			close(fd);
	}
	return o->stream[2].io == IO_LIKE_OUT && dup2(1, 2) < 0 ? -1 : 0;
}

/* Names the program that the command, if it is vmp, starts instead of ssh. */
static void name_rsh(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "vmp-rsh");
	char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;

	if (slash) {
		strcpy(slash + 1, "vmp-rsh");
		setenv("VMP_RSH", path, 1);
	}
}

/* Sets what a login would have set, if the daemon was started without it (by cron, in a container).
 * sshd sets it, and programs that start others (GNU parallel) rely on it. */
static void set_login(void)
{
	const struct passwd *user = getpwuid(getuid());

	if (user) {
		setenv("HOME", user->pw_dir, 0);
		setenv("SHELL", *user->pw_shell ? user->pw_shell : "/bin/sh", 0);
		setenv("USER", user->pw_name, 0);
		setenv("LOGNAME", user->pw_name, 0);
	}
	setenv("SHELL", "/bin/sh", 0);
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0);
}

static void become(const struct keeper_order *o)
{
	set_login();

	const char *home = getenv("HOME"), *folder = *o->folder ? o->folder : home ? home : "/";
	sigset_t none;

	setpgid(0, 0);
	if (*o->terminal)	/* signals are blocked: so a background process may do this */
		tcsetpgrp(o->stream[0].fd, getpid());
	for (int n = 1; n < NSIG; n++)
		signal(n, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir(folder)) {
		int error = errno;

		if (o->stream[2].fd >= 0)
			dup2(o->stream[2].fd, 2);
		say(folder, error);
		_exit(1);
	}
	if (set_streams(o))
		_exit(1);
	setenv("PWD", folder, 1);
	setenv("VMP_PEER", o->nick, 1);
	name_rsh();
	if (*o->terminal)
		setenv("TERM", o->terminal, 1);
	if (!strcmp(o->words[0], PEER_PROGRAM))
		execv("/proc/self/exe", o->words);
	else
		execvp(o->words[0], o->words);
	say(o->words[0], errno);
	_exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

/* ---- the keeper ---- */

static void kill_children(void)
{
	char path[64], text[4096], *at = text, *end;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	for (long pid; (pid = strtol(at, &end, 10)) > 0; at = end)
		kill((pid_t)pid, SIGKILL);
}

/* Kills all that is left.  Children of killed processes become this process's, and are killed in
 * the next round. command 0: it has ended, and its number may be another process's. */
static void kill_rest(pid_t command)
{
	if (command)
		kill(-command, SIGKILL);
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
	_exit(0);
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Reaps children that have ended.  Sets *command to 0 when the command has ended.  Returns false if
 * no child is left. */
static bool reap(pid_t *command, bool terminal)
{
	int status, shown;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | (terminal ? WUNTRACED : 0))) > 0)
		if (pid == *command) {
			shown = WIFSTOPPED(status) ? KEEPER_STOPPED : status_of(status);
			send(CONTROL, &shown, sizeof shown, MSG_NOSIGNAL);
			if (!WIFSTOPPED(status))
				*command = 0;
		}
	return pid == 0;
}

static void keep(pid_t command, const struct keeper_order *o)
{
	struct pollfd wait[] = { { CONTROL, POLLIN, 0 }, { SIGNALS, POLLIN, 0 } };
	struct signalfd_siginfo info;
	unsigned char number;

	for (;;) {
		if (poll(wait, 2, -1) < 0)
			continue;
		if (wait[1].revents && read(SIGNALS, &info, sizeof info) > 0 &&
		    !reap(&command, *o->terminal))
			_exit(0);
		if (!wait[0].revents)
			continue;
		if (recv(CONTROL, &number, 1, 0) <= 0) {
			if (!o->stays)
				kill_rest(command);
			wait[0].fd = -1;
			continue;
		}
		if (command && number > 0 && number < NSIG)
			kill(-command, number);
	}
}

static void be_keeper(const struct keeper_order *o, int control)
{
	sigset_t child;
	int signals;
	pid_t command;

	setsid();
	if (*o->terminal)
		ioctl(o->stream[0].fd, TIOCSCTTY, 0);
	prctl(PR_SET_NAME, "vmp-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigfillset(&child);	/* a terminal's signals are the command's, not the keeper's */
	sigprocmask(SIG_SETMASK, &child, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	signals = signalfd(-1, &child, SFD_CLOEXEC);
	command = fork();
	if (command == 0) {
		if (!o->stays)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		become(o);
	}
	if (command < 0 || signals < 0)
		_exit(1);
	setpgid(command, command);
	/* keep only these two descriptors open: no end of anybody's pipe */
	int kept = fcntl(control, F_DUPFD, 16), watched = fcntl(signals, F_DUPFD, 16);
	dup2(kept, CONTROL);
	dup2(watched, SIGNALS);
	close_range(SIGNALS + 1, ~0u, 0);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	keep(command, o);
}

pid_t keeper_start(const struct keeper_order *o, int *control)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	pid = fork();
	if (pid == 0) {
		fcntl(pair[1], F_SETFL, 0);
		be_keeper(o, pair[1]);
		_exit(1);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -errno;
	}
	*control = pair[0];
	return pid;
}
