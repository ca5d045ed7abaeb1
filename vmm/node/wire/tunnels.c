/* tunnels.c - see tunnels.h. */
#include "vmm/node/wire/tunnels.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/filepass.h"
#include "vmm/shared/sshtunnel.h"

static int the_door = -1;

/* Becomes vmp-tunnel.  Runs in the child. */
static void become_tunnel(const struct node *node, char *path, int door, pid_t parent)
{
	char number[16], *arguments[] = { path, number, NULL };
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	snprintf(number, sizeof number, "%d", door);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == parent && dup2(null, 0) == 0 && dup2(node->o.log_fd, 1) == 1 &&
	    dup2(node->o.log_fd, 2) == 2 && !fcntl(door, F_SETFD, 0))
		beside_exec(path, arguments);
	_exit(EXIT_VMP_FAILURE);
}

int tunnels_start(struct node *node, char *why, size_t why_bytes)
{
	char path[4096];
	pid_t parent = getpid(), pid;
	int door[2];

	if (beside_path("vmp-tunnel", path, sizeof path)) {
		snprintf(why, why_bytes, "the path of vmp's programs is too long");
		return -1;
	}
	if (access(path, X_OK)) {
		snprintf(why, why_bytes, "cannot run %s: %s; build it with make", path,
			 strerror(errno));
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door)) {
		snprintf(why, why_bytes, "cannot make a socket pair: %s; see ulimit -n",
			 strerror(errno));
		return -1;
	}
	pid = fork();
	if (pid == 0)
		become_tunnel(node, path, door[1], parent);
	close(door[1]);
	the_door = door[0];
	if (pid < 0)
		snprintf(why, why_bytes, "cannot start vmp-tunnel: %s; too many processes?",
			 strerror(errno));
	return pid < 0 ? -1 : 0;
}

/* Sends the request with its descriptors.  Returns 0 or -errno. */
static int ask(const struct tunnel_request *r, const int fd[TUNNEL_DESCRIPTORS])
{
	union filepass_control control;
	struct iovec iov = { (void *)r, sizeof *r };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	filepass_put(&message, &control, fd, TUNNEL_DESCRIPTORS);
	return sendmsg(the_door, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int tunnels_ssh(void *arg, const char *login, int port, int carry, int say)
{
	struct tunnel_request r = { .port = port };
	int ends[2], error;

	(void)arg;
	if (strlen(login) >= sizeof r.login)
		return -ENAMETOOLONG;
	memcpy(r.login, login, strlen(login));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	error = ask(&r, (const int[]){ carry, say, ends[1] });
	close(ends[1]);
	if (!error)
		return ends[0];
	close(ends[0]);
	return error;
}
