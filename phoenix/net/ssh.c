/* ssh.c - a connection through the system's ssh: the process, and what it writes when it fails.
 *
 * ssh must not ask anything (BatchMode).  What it writes to its standard error is read as it comes,
 * so that ssh never blocks, and the last line is kept.  When the connection ends and ssh has
 * failed, that line is reported as the reason (contact_complain()).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "phoenix/net/net_private.h"

extern char **environ;

/* ---- what ssh writes ---- */

struct said {
	int fd;
	struct event *readable;
	/* line: the one that has not ended; last: the last complete one */
	char line[MAX_SSH_LINE + 1], last[MAX_SSH_LINE + 1];
	unsigned n;					/* bytes of `line` */
	bool up;	/* the link was up when ssh was last read: earlier lines explain nothing */
};

static bool is_up(const struct conn *k)
{
	return k->l && k->l->state == LINK_UP;
}

static void end_line(struct said *s)
{
	s->line[s->n] = 0;
	s->n = 0;
	for (char *c = s->line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	/* ssh writes this after the reason */
	if (*s->line && strcmp(s->line, "stdio forwarding failed"))
		memcpy(s->last, s->line, sizeof s->last);
}

static void take(struct said *s, const char *bytes, size_t n)
{
	for (; n; n--, bytes++)
		if (*bytes == '\n')
			end_line(s);
		else if (*bytes && *bytes != '\r' && s->n < MAX_SSH_LINE)
			s->line[s->n++] = *bytes;
}

void ssh_hear(struct conn *k)
{
	struct said *s = k->said;
	char buf[4096];
	ssize_t n = -1;

	if (is_up(k) && !s->up)
		*s->last = 0;
	s->up = is_up(k);
	for (int turn = 0; turn < 16 && (n = read(s->fd, buf, sizeof buf)) > 0; turn++)
		take(s, buf, (size_t)n);
	if (n == 0)
		event_del(s->readable);
}

static struct said *listen_to(struct conn *k, int fd)
{
	struct said *s = calloc(1, sizeof *s);

	evutil_make_socket_nonblocking(fd);
	if (s &&
	    (s->readable = event_new(k->net->base, fd, EV_READ | EV_PERSIST, net_ssh_event, k)) &&
	    event_add(s->readable, NULL) == 0) {
		s->fd = fd;
		return s;
	}
	if (s && s->readable)
		event_free(s->readable);
	free(s);
	close(fd);
	return NULL;
}

void ssh_deafen(struct conn *k)
{
	if (!k->said)
		return;
	event_free(k->said->readable);	/* waits for its callback in another thread */
	close(k->said->fd);
	free(k->said);
	k->said = NULL;
}

/* ---- the process ---- */

/* Returns where connections of ssh's can be shared (ControlMaster), or NULL
 * (TRICKS: share-the-session).  There must be room for the host's name, which %n in a socket's
 * name stands for. */
static const char *shared_by(const struct phnx_contact *at)
{
	const char *path = getenv("PHNX_SSH_CONTROL");

	return path && *path &&
			       strlen(path) + strlen(at->host) <
				       sizeof((struct sockaddr_un *)0)->sun_path
		       ? path
		       : NULL;
}

/* Writes the login's name and host. */
static void write_login(const struct phnx_contact *at, char login[2 * MAX_HOST])
{
	snprintf(login, 2 * MAX_HOST, "%s%s%s", at->user ? at->user : "", at->user ? "@" : "",
		 at->host);
}

/* Starts ssh -W, which carries one TCP connection over its standard input and output.  Returns 0
 * or the error of posix_spawnp(). */
static int spawn(struct conn *k, const struct phnx_contact *at, const char *program, int carry,
		 int say)
{
	char target[32], login[2 * MAX_HOST], control[128];
	posix_spawn_file_actions_t actions;

	snprintf(target, sizeof target, "127.0.0.1:%d", at->port);
	write_login(at, login);
	snprintf(control, sizeof control, "ControlPath=%s", shared_by(at) ? shared_by(at) : "");
	char *own[] = { (char *)program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-W",
			target,		 "--", login,		NULL };
	char *shared[] = { (char *)program, "-o", "ControlMaster=no",  "-o", control, "-o",
			   "BatchMode=yes", "-o", "ConnectTimeout=10", "-W", target,  "--",
			   login,	    NULL };
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, carry, 0);
	posix_spawn_file_actions_adddup2(&actions, carry, 1);
	posix_spawn_file_actions_adddup2(&actions, say, 2);
	int error = posix_spawnp(&k->ssh, program, &actions, NULL, shared_by(at) ? shared : own,
				 environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		k->ssh = 0;
	return error;
}

/* Starts ssh in whichever way.  Returns 0 or an error number. */
static int start(struct conn *k, const struct phnx_contact *at, const char *program, int carry,
		 int say)
{
	struct net *net = k->net;
	char login[2 * MAX_HOST];

	if (!net->ssh_starter)
		return spawn(k, at, program, carry, say);
	write_login(at, login);
	k->ssh_door = net->ssh_starter(net->ssh_starter_arg, login, at->port, carry, say);
	if (k->ssh_door >= 0)
		return 0;
	int error = -k->ssh_door;
	k->ssh_door = -1;
	return error;
}

void ssh_start(struct conn *k, const struct phnx_contact *at)
{
	const char *program = getenv("PHNX_SSH") ? getenv("PHNX_SSH") : "ssh";
	int carry[2], say[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, carry)) {
		conn_lost(k);
		return;
	}
	k->fd = carry[0];
	if (pipe2(say, O_CLOEXEC)) {
		close(carry[1]);
		conn_lost(k);
		return;
	}
	int error = start(k, at, program, carry[1], say[1]);
	close(carry[1]);
	close(say[1]);
	k->said = listen_to(k, say[0]);
	if (error)
		contact_complain(k->net->ph, k->contact, PH_ESYSTEM, "cannot run %s: %s", program,
				 strerror(error));
	if (error || !k->said || conn_watch(k))
		conn_lost(k);
	else
		conn_open(k);
}

int ssh_end(struct conn *k)
{
	int status = -1;

	if (k->ssh > 0) {
		kill(k->ssh, SIGTERM);
		waitpid(k->ssh, &status, 0);
		k->ssh = 0;
	} else if (k->ssh_door >= 0) {
		shutdown(k->ssh_door, SHUT_WR);
		if (recv(k->ssh_door, &status, sizeof status, MSG_WAITALL) != sizeof status)
			status = 255 << 8;	/* whoever ran ssh is gone: ssh's own failure */
		close(k->ssh_door);
		k->ssh_door = -1;
	}
	return status;
}

/* ssh has closed its end: it is about to end, if it has not ended already. */
void ssh_lost(struct conn *k)
{
	int status;

	if (!k->said)
		return;
	status = ssh_end(k);
	if (status < 0)
		return;
	ssh_hear(k);
	end_line(k->said);
	if (!k->contact || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	if (*k->said->last)
		contact_complain(k->net->ph, k->contact, PH_EHOST, "ssh to %s: %s",
				 contact_at(k->contact)->host, k->said->last);
	else if (WIFEXITED(status) && !is_up(k))
		contact_complain(k->net->ph, k->contact, PH_EHOST, "ssh to %s: status %d",
				 contact_at(k->contact)->host, WEXITSTATUS(status));
}
