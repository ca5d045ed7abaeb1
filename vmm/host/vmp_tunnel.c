/* vmp_tunnel.c - vmp-tunnel starts ssh for a node daemon that is confined
 * (vmm/shared/sshtunnel.h).
 *
 *     vmp-tunnel DOOR		DOOR: the descriptor of its socket to the daemon
 *
 * It trusts the daemon with tunnels and nothing else.  It checks each request and makes ssh's
 * command line itself: ssh logs in where the user's own ssh can, and connects to one port of that
 * host's loopback interface, from 1024 on.  It ends, with every ssh, when the daemon does.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/filepass.h"
#include "base/limits.h"
#include "vmm/shared/sshtunnel.h"

enum { MAX_TUNNELS = 64, FIRST_PORT = 1024, LAST_PORT = 65535, ARGUMENT = 640 };

/* Those that run come first; `control` is -1 when the daemon has closed it. */
static struct tunnel { pid_t ssh; int control; bool told_to_end; } tunnels[MAX_TUNNELS];
static unsigned n_tunnels;

/* ---- one ssh ---- */

/* Returns where ssh's connections can be shared, or NULL, as phoenix/net/ssh.c does. */
static const char *shared_by(const char *login)
{
	const char *path = getenv("PHNX_SSH_CONTROL");

	return path && *path &&
			       strlen(path) + strlen(login) <
				       sizeof((struct sockaddr_un *)0)->sun_path
		       ? path
		       : NULL;
}

static void become_ssh(const struct tunnel_request *r, const int fd[TUNNEL_DESCRIPTORS],
		       pid_t parent)
{
	const char *program = getenv("PHNX_SSH") ? getenv("PHNX_SSH") : "ssh";
	char target[32], control[ARGUMENT];
	const char *path = shared_by(r->login);
	char *arguments[] = { (char *)program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
			      "-W", target, "-o", control, "-o", "ControlMaster=no", "--",
			      (char *)r->login, NULL };
	sigset_t none;

	snprintf(target, sizeof target, "127.0.0.1:%d", r->port);
	snprintf(control, sizeof control, "ControlPath=%s", path ? path : "");
	if (!path) /* as ssh's own configuration says */
		memcpy(arguments + 7, arguments + 11, 3 * sizeof *arguments);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(fd[0], 0) == 0 && dup2(fd[0], 1) == 1 &&
	    dup2(fd[1], 2) == 2)
		execvp(program, arguments);
	dprintf(fd[1], "cannot run %s: %s\n", program, strerror(errno));
	_exit(255);
}

static void report(int control, int status)
{
	(void)!send(control, &status, sizeof status, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(control);
}

static void start(const struct tunnel_request *r, const int fd[TUNNEL_DESCRIPTORS])
{
	pid_t parent = getpid(), pid = n_tunnels < MAX_TUNNELS ? fork() : -1;

	if (pid == 0)
		become_ssh(r, fd, parent);
	close(fd[0]);
	close(fd[1]);
	if (pid < 0)
		report(fd[2], 255 << 8);
	else
		tunnels[n_tunnels++] = (struct tunnel){ pid, fd[2], false };
}

/* A process that was stopped takes no SIGTERM before it goes on. */
static void end(struct tunnel *t)
{
	if (!t->told_to_end) {
		kill(t->ssh, SIGTERM);
		kill(t->ssh, SIGCONT);
	}
	t->told_to_end = true;
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < n_tunnels; i++)
			if (tunnels[i].ssh == pid) {
				report(tunnels[i].control, status);
				tunnels[i] = tunnels[--n_tunnels];
				break;
			}
}

/* ---- requests ---- */

/* ssh may pass a login to a shell (ProxyCommand, Match exec): what a shell would obey is refused,
 * as newer versions of ssh do. */
static bool is_login(const char *login)
{
	static const char obeyed[] = "'`\"$\\;&<>|(){}";
	size_t n = strnlen(login, MAX_TUNNEL_LOGIN);

	if (!n || n == MAX_TUNNEL_LOGIN || *login == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (login[i] <= ' ' || login[i] == 127 || strchr(obeyed, login[i]))
			return false;
	return true;
}

/* Serves one request.  Returns false if the daemon is gone. */
static bool serve(int door)
{
	union filepass_control control;
	struct tunnel_request r;
	struct iovec iov = { &r, sizeof r };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	ssize_t n = recvmsg(door, &message, MSG_CMSG_CLOEXEC);
	int fd[TUNNEL_DESCRIPTORS];
	unsigned got;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	got = filepass_take(&message, fd, TUNNEL_DESCRIPTORS);
	if (n == sizeof r && got == TUNNEL_DESCRIPTORS &&
	    !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && is_login(r.login) &&
	    r.port >= FIRST_PORT && r.port <= LAST_PORT) {
		start(&r, fd);
		return true;
	}
	for (unsigned i = 0; i < got && i < TUNNEL_DESCRIPTORS; i++)
		close(fd[i]);
	return true;
}

/* Serves until the daemon is gone. */
static void loop(int door, int children)
{
	struct pollfd polled[2 + MAX_TUNNELS] = { { .fd = door, .events = POLLIN },
						  { .fd = children, .events = POLLIN } };
	struct signalfd_siginfo info;

	for (;;) {
		unsigned n = n_tunnels;

		for (unsigned i = 0; i < n; i++)
			polled[2 + i] = (struct pollfd){
				.fd = tunnels[i].told_to_end ? -1 : tunnels[i].control,
				.events = POLLIN
			};
		if (poll(polled, 2 + n, -1) < 0 && errno != EINTR)
			return;
		for (unsigned i = 0; i < n; i++)
			if (polled[2 + i].revents)
				end(&tunnels[i]);
		if (polled[1].revents && read(children, &info, sizeof info) == sizeof info)
			reap();
		if (polled[0].revents && !serve(door))
			return;
	}
}

int main(int argc, char **argv)
{
	char *rest = "";
	long door = argc == 2 ? strtol(argv[1], &rest, 10) : -1;
	sigset_t set;
	int children;

	if (argc != 2 || *rest || !*argv[1] || door < 0 || door > 1 << 20) {
		fputs("vmp-tunnel is started by vmp-node\n", stderr);
		return EXIT_VMP_FAILURE;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (children < 0)
		return EXIT_VMP_FAILURE;
	loop((int)door, children);
	for (unsigned i = 0; i < n_tunnels; i++)
		end(&tunnels[i]);
	return 0;
}
