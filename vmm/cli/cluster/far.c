/* far.c - see far.h. */
#include "vmm/cli/cluster/far.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/limits.h"
#include "vmm/cli/cluster/cluster_ssh.h"
#include "vmm/shared/presence.h"

/* How much is read at a time: a host that writes for ever must not keep vmp from all other events.
 * Of an ssh that has ended, all is read that its pipe can hold. */
enum { READ_BYTES = 16 << 10, LAST_BYTES = 128 << 10 };

/* The remote login shell may be of any kind.  Therefore the commands contain no single quote and no
 * exclamation mark. */
#define PROBE \
	"exec sh -c 'case \"$(uname -sm)\" in \"Linux x86_64\") ;; " \
	"*) echo \"refused it runs $(uname -sm), not Linux x86_64\"; exit 1;; esac; " \
	SSH_FOLDER "[ -e \"$d/complete\" ] || { echo need; exit 0; }; touch \"$d\"; " \
	"exec \"$d/ld.so\" --library-path \"$d\" \"$d/vmp-host\"'"
/* Unpacks into a folder of another name first, since hosts may share their files and unpack at the
 * same time.  Removes versions that nobody has started for three months. */
#define UNPACK \
	"exec sh -c '" SSH_FOLDER "umask 077; " \
	"mkdir -p \"${d%%/*}\" && t=$(mktemp -d \"$d.XXXXXX\") || exit 1; " \
	"trap \"rm -rf \\\"$t\\\"\" EXIT HUP INT TERM; " \
	"tar xf - -C \"$t\" && [ -e \"$t/complete\" ] || exit 1; " \
	"there() { mv -T \"$t\" \"$d\" 2>/dev/null || [ -e \"$d/complete\" ]; }; " \
	"there || { rm -rf \"$d\"; there; } || exit 1; " \
	"find \"${d%%/*}\" -maxdepth 1 -name \"bin-*\" -mtime +90 -exec rm -rf {} + ; exit 0'"

/* ---- why ---- */

/* Returns what a user can do, or NULL. ssh itself has failed (its status is then 255), or the
 * command that it ran. */
static const char *what_to_do(bool ssh_failed, const char *said)
{
	static const struct { bool ssh; const char *said, *todo; } table[] = {
		{ true, "Permission denied",
		  "ssh must log in there without a password; set up a key with ssh-copy-id" },
		{ true, "Too many authentication failures",
		  "name the key for it in ~/.ssh/config (IdentityFile, IdentitiesOnly)" },
		{ true, "Host key verification failed",
		  "connect once by hand with ssh, to accept its key" },
		{ true, "Could not resolve", "is its name right?" },
		{ true, "Connection refused", "does sshd run there, and on this port (port=)?" },
		{ true, "timed out", "is it switched on and reachable?" },
		{ true, "No route to host", "is it switched on and reachable?" },
		{ true, "Network is unreachable", "is it switched on and reachable?" },
		{ true, "Connection closed", "its sshd did so, and its log says why; "
		  "perhaps too many logins at once (MaxStartups)" },
		{ true, "Connection reset", "its sshd did so, and its log says why; "
		  "perhaps too many logins at once (MaxStartups)" },
		{ false, "cannot run ssh", "install ssh on this computer (openssh-client)" },
		{ false, "No space left", "vmp's programs need 30 MB in ~/.cache there" },
		{ false, "quota exceeded", "vmp's programs need 30 MB in ~/.cache there" },
		{ false, "Read-only file system", "vmp's programs need 30 MB in ~/.cache there" },
		{ false, "tar: not found", "install tar there" },
		{ false, "tar: command not found", "install tar there" },
		{ false, "Permission denied", "~/.cache must be writable there, "
		  "and on a file system that runs programs (not noexec)" },
		{ false, "cannot execute",
		  "its file system or its processor does not run vmp's programs" },
		{ false, "Exec format error",
		  "its file system or its processor does not run vmp's programs" },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].ssh == ssh_failed && strcasestr(said, table[i].said))
			return table[i].todo;
	return NULL;
}

void far_explain(const struct cluster_host *host, int status, const char *said, char *why,
		 size_t bytes)
{
	const char *todo = what_to_do(WIFEXITED(status) && WEXITSTATUS(status) == 255, said);

	if (*said)
		snprintf(why, bytes, "host %s: %.220s%s%s", host->name, said, todo ? "; " : "",
			 todo ? todo : "");
	else if (WIFSIGNALED(status))
		snprintf(why, bytes, "host %s: its ssh died of signal %d (%s)", host->name,
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == 255)
		snprintf(why, bytes, "host %s: its ssh connection ended", host->name);
	else
		snprintf(why, bytes, "host %s: what ssh started there ended with status %d; does "
			 "`ssh %s true` work?",
			 host->name, WEXITSTATUS(status), host->name);
}

/* A daemon that ends by itself, with any status, does so because another one is lost. */
bool far_is_lost(int status, const char *ended)
{
	return *ended ? !strncmp(ended, "died ", 5) : status != 0;
}

void far_destination(const struct cluster_host *host, char *text, size_t bytes)
{
	bool six = strchr(host->name, ':');
	int n = snprintf(text, bytes, "ssh://%s%s%s%s%s", host->user, host->user[0] ? "@" : "",
			 six ? "[" : "", host->name, six ? "]" : "");

	if (host->port && n < (int)bytes)
		snprintf(text + n, bytes - (size_t)n, ":%u", host->port);
}

const char *far_doing(const struct far *f, char *text, size_t bytes)
{
	if (f->state == FAR_COPY && f->bundle->bytes)
		snprintf(text, bytes, "copying vmp: %zu %%", f->copied * 100 / f->bundle->bytes);
	else
		snprintf(text, bytes, "%s",
			 f->state == FAR_PROBE	? "connecting"
			 : f->state == FAR_OVER ? "failed"
						: "ready");
	return text;
}

/* ---- the end of an ssh ---- */

static void drop(struct event **event, int *fd)
{
	if (*event)
		event_free(*event);
	*event = NULL;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_streams(struct far *f)
{
	drop(&f->on_room, &f->in);
	drop(&f->on_out, &f->out);
	drop(&f->on_err, &f->err);
}

void far_tell_over(struct far *f)
{
	static const char over[] = "over\n";

	if (f->state == FAR_RUNS && f->in >= 0 && write(f->in, over, sizeof over - 1) < 0) {
		/* a failed write means that the host has ended anyway */
	}
}

void far_hang_up(struct far *f)
{
	f->hung_up = true;
	drop(&f->on_room, &f->in);
}

void far_close(struct far *f)
{
	close_streams(f);
	if (f->pid > 0)
		kill(f->pid, SIGTERM);
	f->pid = 0;
	f->state = FAR_OVER;
}

static void set_state(struct far *f, enum far_state state)
{
	f->state = state;
	f->changed(f->context, f);
}

static int over(struct far *f, const char *why)
{
	snprintf(f->why, sizeof f->why, "%s", why);
	f->state = FAR_OVER;
	return -1;
}

/* ---- what it says ---- */

static void take_vote(struct far *f, enum vote vote)
{
	if (f->vote == VOTE_UNASKED || vote == VOTE_COUNT)
		return;
	f->vote = vote;
	if (f->state == FAR_READY)
		f->changed(f->context, f);
}

static void take_line(struct far *f)
{
	struct host_facts facts;

	if (!strcmp(f->line, "need")) {
		f->needs = true;
	} else if (!strncmp(f->line, "refused ", 8)) {
		snprintf(f->why, sizeof f->why, "host %s: %.300s", f->host.name, f->line + 8);
	} else if (!strncmp(f->line, "ended ", 6)) {
		snprintf(f->ended, sizeof f->ended, "%s", f->line + 6);
	} else if (f->state == FAR_PROBE && !facts_parse(&facts, f->line)) {
		f->facts = facts;
		set_state(f, FAR_READY);
	} else if (!strncmp(f->line, "vote ", 5)) {
		take_vote(f, vote_of_word(f->line + 5));
	} else if (f->state == FAR_RUNS && sscanf(f->line, "port %u", &f->port) == 1) {
		f->changed(f->context, f);
	} else if (!strcmp(f->line, "alone")) {
		f->alone = true;
	} /* other lines come from the remote login shell */
}

static void read_out(struct far *f, ssize_t most)
{
	char bytes[512];
	ssize_t n = -1;

	errno = EAGAIN;
	for (; f->out >= 0 && most > 0 && (n = read(f->out, bytes, sizeof bytes)) > 0; most -= n)
		for (ssize_t i = 0; i < n && f->out >= 0; i++) {
			if (bytes[i] != '\n') {
				f->line[f->line_bytes] = bytes[i];
				f->line_bytes += f->line_bytes < sizeof f->line - 1;
				continue;
			}
			f->line[f->line_bytes] = 0;
			f->line_bytes = 0;
			take_line(f);
		}
	if (f->on_out && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)))
		event_del(f->on_out);
}

static void on_out(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	read_out(context, READ_BYTES);
}

/* Remembers the last line that is not empty and no warning of ssh's own. */
static void remember(struct far *f, char *text)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest))
		if (*line && strncmp(line, "Warning: Permanently added", 26))
			snprintf(f->said, sizeof f->said, "%s", line);
}

static void read_err(struct far *f, ssize_t most)
{
	char bytes[1024];
	ssize_t n = -1;

	errno = EAGAIN;
	for (; most > 0 && (n = read(f->err, bytes, sizeof bytes - 1)) > 0; most -= n) {
		bytes[n] = 0;
		if (f->state == FAR_RUNS && f->log_fd >= 0 &&
		    write(f->log_fd, bytes, (size_t)n) < 0) {
			/* a full disk under the log does not stop the machine */
		}
		remember(f, bytes);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		event_del(f->on_err);
}

static void on_err(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	read_err(context, READ_BYTES);
}

static void on_room(evutil_socket_t fd, short what, void *context)
{
	struct far *f = context;
	ssize_t n = write(fd, f->bundle->data + f->copied, f->bundle->bytes - f->copied);

	(void)what;
	if (n > 0)
		f->copied += (size_t)n;
	if (f->copied == f->bundle->bytes || (n < 0 && errno != EAGAIN && errno != EINTR))
		/* if the write failed, ssh's exit status and messages will say why */
		drop(&f->on_room, &f->in);
}

/* ---- ssh ---- */

static int watch(struct far *f)
{
	f->on_out = event_new(f->base, f->out, EV_READ | EV_PERSIST, on_out, f);
	f->on_err = event_new(f->base, f->err, EV_READ | EV_PERSIST, on_err, f);
	if (f->state == FAR_COPY)
		f->on_room = event_new(f->base, f->in, EV_WRITE | EV_PERSIST, on_room, f);
	bool ok = f->on_out && f->on_err && !event_add(f->on_out, NULL) &&
		  !event_add(f->on_err, NULL) && (!f->on_room || !event_add(f->on_room, NULL));

	return ok ? 0 : over(f, "no memory");
}

static int start_ssh(struct far *f, enum far_state state, const char *format)
{
	char command[1200], control[FAR_CONTROL + 16];
	const char *packs[] = { "-C", NULL };
	const char *shares[] = { "-o", "ControlMaster=yes", "-o", "ControlPersist=no",
				 "-o", control, NULL };
	bool has_control = f->control[0];
	struct ssh ssh;

	f->state = state;
	f->copied = f->line_bytes = 0;
	f->needs = f->alone = false;
	f->vote = VOTE_UNASKED;
	f->said[0] = f->ended[0] = f->why[0] = 0;
	snprintf(command, sizeof command, format, f->bundle->hash);
	snprintf(control, sizeof control, "ControlPath=%s", f->control);
	if (has_control)
		unlink(f->control); /* left by an ssh that was killed */
	if (ssh_start(&ssh, &f->host,
		      state == FAR_COPY ? packs
		      : has_control	? shares
					: NULL,
		      command, false))
		return over(f, "cannot start ssh: too many processes or open files?");
	f->pid = ssh.pid;
	f->in = ssh.in, f->out = ssh.out, f->err = ssh.err;
	return watch(f);
}

int far_start(struct far *f)
{
	f->in = f->out = f->err = -1;
	f->port = 0;
	f->was_copied = false;
	return start_ssh(f, FAR_PROBE, PROBE);
}

/* Reads the last output of the ssh, which is still in the pipes, before the streams are closed. */
void far_reaped(struct far *f, int status)
{
	char why[FAR_LINE];
	enum far_state state;

	f->pid = 0;
	if (f->out >= 0)
		read_out(f, LAST_BYTES);
	if (f->err >= 0)
		read_err(f, LAST_BYTES);
	close_streams(f);
	state = f->state;
	if (state == FAR_PROBE && f->needs && !f->was_copied && !f->hung_up) {
		if (start_ssh(f, FAR_COPY, UNPACK))
			f->changed(f->context, f);
		return;
	}
	if (state == FAR_COPY && WIFEXITED(status) && !WEXITSTATUS(status) && !f->hung_up) {
		f->was_copied = true;
		if (start_ssh(f, FAR_PROBE, PROBE))
			f->changed(f->context, f);
		return;
	}
	f->lost = far_is_lost(status, f->ended);
	if (f->ended[0])
		snprintf(f->why, sizeof f->why, "host %s: its node daemon %.300s", f->host.name,
			 f->ended);
	else if (!f->why[0]) {
		far_explain(&f->host, status, f->said, why, sizeof why);
		snprintf(f->why, sizeof f->why, "%s", why);
	}
	set_state(f, FAR_OVER);
}

static int send_text(struct far *f, const char *text, size_t bytes)
{
	return f->in >= 0 && write(f->in, text, bytes) == (ssize_t)bytes ? 0 : -1;
}

int far_go(struct far *f, char *const *arguments, const char *secret, const char *id)
{
	char text[4096]; /* a pipe takes this many bytes at once */
	char present[MAX_PRESENCE];
	size_t n = 0;

	for (; *arguments && n < sizeof text; arguments++)
		n += (size_t)snprintf(text + n, sizeof text - n, "arg %s\n", *arguments);
	presence_name(present, id, f->host.name);
	if (n < sizeof text)
		n += (size_t)snprintf(text + n, sizeof text - n, "secret %s\npresent %s\ngo\n",
				      secret, present);
	if (f->state != FAR_READY || n >= sizeof text || send_text(f, text, n)) {
		snprintf(f->why, sizeof f->why, "host %s: its ssh connection ended", f->host.name);
		return -1;
	}
	f->state = FAR_RUNS;
	return 0;
}

void far_ask_vote(struct far *f, const char *name, const char *owner)
{
	char text[MAX_PRESENCE + PRESENCE_ID + 16];
	int n = snprintf(text, sizeof text, "vote %s %s\n", owner, name);

	if (f->state != FAR_READY || f->vote != VOTE_UNASKED)
		return;
	f->vote = VOTE_WAITS;
	send_text(f, text, (size_t)n); /* if it fails, the end of the ssh follows */
}

void far_tell_alive(struct far *f)
{
	if (f->state == FAR_READY)
		send_text(f, "\n", 1);
}
