/* peers.c - see peers.h. */
#include "vmm/cli/cluster/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/filepass.h"
#include "vmm/cli/cluster/cluster_ssh.h"

enum { ANSWER = 1, HELD = 3 };	/* descriptors of vmp-peer */

/* vmp-peer lies beside vmp-rsh: the folder of this program may be a copy for hosts, which has
 * neither.  Returns 0, or -1 if the path is too long. */
static int path_of_peer(char *path, size_t bytes)
{
	const char *rsh = ssh_is_rsh ? getenv("VMP_SSH") : NULL,
		   *slash = rsh ? strrchr(rsh, '/') : NULL;

	if (!slash)
		return beside_path("vmp-peer", path, bytes);
	return snprintf(path, bytes, "%.*s/vmp-peer", (int)(slash - rsh), rsh) < (int)bytes
		? 0 : -1;
}

/* Starts vmp-peer with these words.  fd becomes its descriptor `as`.  Returns its process, or -1
 * with errno set. */
static pid_t start(char **words, int fd, int as)
{
	pid_t parent = getpid(), pid;
	char path[4096];

	if (path_of_peer(path, sizeof path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); /* so that the terminal's Ctrl-C reaches vmp alone */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	words[0] = path;
	if (getppid() == parent && dup2(fd, as) == as && dup2(null, 0) == 0)
		execv(path, words);
	_exit(EXIT_VMP_FAILURE);
}

int peers_ask(struct peers_asked *a, const struct peers_wish *wish, struct problem *p)
{
	char number[4][12], *words[] = { NULL, "peer", "borrow", number[0], number[1], number[2],
					 number[3], (char *)wish->how, (char *)wish->nick, NULL };
	int ends[2];

	*a = (struct peers_asked){ .fd = -1, .held = -1 };
	snprintf(number[0], sizeof number[0], "%u", wish->others);
	snprintf(number[1], sizeof number[1], "%u", wish->cpus);
	snprintf(number[2], sizeof number[2], "%u", wish->mem_mib);
	snprintf(number[3], sizeof number[3], "%u", wish->min_mib);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return problem(p, "cannot make a socket pair: %s", strerror(errno));
	a->pid = start(words, ends[1], ANSWER);
	close(ends[1]);
	a->fd = ends[0];
	if (a->pid < 0) {
		close(a->fd);
		return problem(p, "cannot start vmp-peer: %s", strerror(errno));
	}
	return 0;
}

/* ---- the answer ---- */

/* Returns what recvmsg() does. */
static ssize_t receive(struct peers_asked *a, bool wait)
{
	union filepass_control control;
	struct iovec iov = { a->text + a->bytes, sizeof a->text - 1 - a->bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	ssize_t n = recvmsg(a->fd, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));

	if (n > 0) {
		filepass_take(&message, &a->held, a->held < 0);
		a->bytes += (size_t)n;
		a->text[a->bytes] = 0;
	}
	return n;
}

static int end(struct peers_asked *a, int result)
{
	close(a->fd);
	a->fd = -1;
	if (result < 0 && a->held >= 0) {
		close(a->held);
		a->held = -1;
	}
	return result;
}

/* Returns what peers_read() does. */
static int judge(struct peers_asked *a, struct problem *p)
{
	char *last = a->text;

	for (char *line = a->text; *line; line = strchr(line, '\n') + 1) {
		if (!strchr(line, '\n'))
			return 0;
		last = line;
	}
	if (!strcmp(last, "done\n") && a->held >= 0) {
		*last = 0;
		return end(a, 1);
	}
	if (!strncmp(last, "no ", 3)) {
		last[strlen(last) - 1] = 0;
		problem(p, "--peers: %.500s", last + 3);
		return end(a, -1);
	}
	return 0;
}

int peers_read(struct peers_asked *a, bool wait, struct problem *p)
{
	ssize_t n;
	int result;

	while ((n = receive(a, wait)) > 0 || (n < 0 && errno == EINTR)) {
		result = n > 0 ? judge(a, p) : 0;
		if (result)
			return result;
	}
	if (n < 0 && errno == EAGAIN)
		return 0;
	problem(p, "--peers: vmp-peer has ended without an answer; does vmp peers work?");
	return end(a, -1);
}

void peers_drop(struct peers_asked *a) { end(a, -1); }

/* ---- the rest ---- */

void peers_held_begin(struct peers_held *held, int first)
{
	memset(held, 0, sizeof *held);
	held->first = first;
}

void peers_held_add(struct peers_held *held, const char *nick, int fd)
{
	for (unsigned i = 0; i < MAX_NODES; i++)
		if (!held->later[i].nick[0]) {
			snprintf(held->later[i].nick, sizeof held->later[i].nick, "%s", nick);
			held->later[i].fd = fd;
			return;
		}
	close(fd); /* there are no more hosts than that */
}

void peers_held_return(struct peers_held *held, const char *nick)
{
	char *words[] = { NULL, "peer", "give-back", (char *)nick, NULL };

	for (unsigned i = 0; i < MAX_NODES; i++)
		if (*nick && !strcmp(held->later[i].nick, nick)) {
			close(held->later[i].fd);
			held->later[i].nick[0] = 0;
			return;
		}
	/* if that fails, the computer stays reserved until the machine ends */
	if (*nick && held->first >= 0)
		start(words, held->first, HELD);
}

void peers_held_end(struct peers_held *held)
{
	for (unsigned i = 0; i < MAX_NODES; i++)
		if (held->later[i].nick[0])
			close(held->later[i].fd);
	if (held->first >= 0)
		close(held->first);
	peers_held_begin(held, -1);
}

int peers_use_rsh(struct problem *p)
{
	char path[4096];

	if (beside_path("vmp-rsh", path, sizeof path))
		return problem(p, "the path of vmp's programs is too long");
	if (setenv("VMP_SSH", path, 1) || setenv("PHNX_SSH", path, 1))
		return problem(p, "no memory");
	ssh_is_rsh = true;
	return 0;
}

int peers_use_rsh_of_here(struct problem *p)
{
	if (!getenv("VMP_SSH"))
		return problem(p, "vmp-rsh has not said where it is on this computer");
	ssh_is_rsh = true;
	return 0;
}
