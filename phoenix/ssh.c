/* ssh.c - a connection through the system's ssh: its process, and what it says when it fails.
 *
 * ssh may ask nothing (BatchMode), and what it writes to its standard error is nobody's but ours: it is read as it comes, so that
 * ssh never waits for that, and of all its lines the last is kept.  Is the connection lost, and ssh has not ended in good order, then
 * that line is why (contact_complain()). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "phoenix/conn.h"

extern char **environ;

/* ---- what it says ---- */

struct said {
	int fd;
	struct event *readable;
	char line[MAX_SSH_LINE + 1], last[MAX_SSH_LINE + 1];	/* line: the one that has not ended */
	unsigned n;					/* bytes of it */
	bool up;	/* the link was, when it was last heard: what was said before is no reason for anything */
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
	/* ssh says this after the reason */
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
	if (s && (s->readable = event_new(k->net->base, fd, EV_READ | EV_PERSIST, net_ssh_event, k)) &&
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

/* ---- its process ---- */

/* Where whoever started us shares ssh's connections (ControlMaster), with room for what %n stands for in a socket's name; or NULL. */
static const char *shared_by(const struct phnx_contact *at)
{
	const char *path = getenv("PHNX_SSH_CONTROL");

	return path && *path && strlen(path) + strlen(at->host) < sizeof ((struct sockaddr_un *)0)->sun_path ? path : NULL;
}

/* ssh -W carries one TCP connection over its standard input and output. 0 or what posix_spawnp() has. */
static int spawn(struct conn *k, const struct phnx_contact *at, const char *program, int carry, int say)
{
	char target[32], login[2 * MAX_HOST], control[128];
	posix_spawn_file_actions_t actions;

	snprintf(target, sizeof target, "127.0.0.1:%d", at->port);
	snprintf(login, sizeof login, "%s%s%s", at->user ? at->user : "", at->user ? "@" : "", at->host);
	snprintf(control, sizeof control, "ControlPath=%s", shared_by(at) ? shared_by(at) : "");
	char *own[] = { (char *)program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-W", target, "--", login, NULL };
	char *shared[] = { (char *)program, "-o", "ControlMaster=no", "-o", control, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
			   "-W", target, "--", login, NULL };
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, carry, 0);
	posix_spawn_file_actions_adddup2(&actions, carry, 1);
	posix_spawn_file_actions_adddup2(&actions, say, 2);
	int error = posix_spawnp(&k->ssh, program, &actions, NULL, shared_by(at) ? shared : own, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		k->ssh = 0;
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
	int error = spawn(k, at, program, carry[1], say[1]);
	close(carry[1]);
	close(say[1]);
	k->said = listen_to(k, say[0]);
	if (error)
		contact_complain(k->net->ph, k->contact, PH_ESYSTEM, "cannot run %s: %s", program, strerror(error));
	if (error || !k->said || conn_watch(k))
		conn_lost(k);
	else
		conn_open(k);
}

/* It has closed its end, so it is about to end, if it has not. */
void ssh_lost(struct conn *k)
{
	int status = 0;

	if (k->ssh <= 0 || !k->said)
		return;
	kill(k->ssh, SIGTERM);
	waitpid(k->ssh, &status, 0);
	k->ssh = 0;
	ssh_hear(k);
	end_line(k->said);
	if (!k->contact || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	if (*k->said->last)
		contact_complain(k->net->ph, k->contact, PH_EHOST, "ssh to %s: %s", k->contact->at.host, k->said->last);
	else if (WIFEXITED(status) && !is_up(k))
		contact_complain(k->net->ph, k->contact, PH_EHOST, "ssh to %s: status %d", k->contact->at.host, WEXITSTATUS(status));
}
