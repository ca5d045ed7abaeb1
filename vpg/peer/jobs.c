/* jobs.c - see jobs.h. */
#include "vpg/peer/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "vpg/peer/keeper.h"
#include "vpg/peer/pipes.h"
#include "vpg/peer/rules.h"

enum { STAGES_MAX = 4096, RULES_ROOM = 64 << 10 };

/* A command that runs here. */
struct stage {
	struct stage *next;
	struct tunnel *origin;
	uint64_t job, number;
	pid_t keeper;
	int control;
	int terminal;		/* this side of its terminal; -1: it has none */
	struct event *said;
	bool broken;		/* one of its streams has broken */
	bool exited;		/* EXIT was sent */
};

/* A command that was started for a shell here. */
struct started {
	struct started *next;
	struct shell *shell;
	uint64_t job, number;
	struct tunnel *via;
};

/* A keeper whose stage was freed: it kills what is left, and ends. */
struct leaving { struct leaving *next; pid_t keeper; };

static struct leaving *leaving;
static struct stage *stages;
static struct started *started;

/* ---- commands that run here ---- */

static void say_exit(struct tunnel *t, uint64_t job, uint64_t number, int status, const char *why)
{
	struct vpg_EXIT m = { job, number, (uint64_t)status, why };

	tunnel_send(t, VPG_EXIT, &m);
}

void jobs_tidy(void)
{
	for (struct leaving **at = &leaving, *l; (l = *at);) {
		if (waitpid(l->keeper, NULL, WNOHANG) == 0) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
	}
}

/* Frees a stage.  Its keeper kills what is left when its socket is closed. */
static void stage_free(struct stage *s)
{
	struct leaving *l = malloc(sizeof *l);

	if (l) {
		*l = (struct leaving){ leaving, s->keeper };
		leaving = l;
	}
	for (struct stage **at = &stages; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	pipes_close_stage(s->origin->d, s);
	if (s->said)
		event_free(s->said);
	if (s->control >= 0)
		close(s->control);
	if (s->terminal >= 0)
		close(s->terminal);
	free(s);
}

static void on_said(evutil_socket_t fd, short what, void *arg)
{
	struct stage *s = arg;
	int status = 0;
	ssize_t n = recv(fd, &status, sizeof status, 0);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof status)
		event_del(s->said);	/* the keeper has ended */
	if (s->exited)
		return;
	if (n == sizeof status && status == KEEPER_STOPPED) {
		struct vpg_STOPPED m = { s->job, s->number };

		tunnel_send(s->origin, VPG_STOPPED, &m);
		return;
	}
	s->exited = true;
	if (s->broken)
		say_exit(s->origin, s->job, s->number, EXIT_VMP_FAILURE,
			 "the connection to another computer of the pipeline broke");
	else if (n == sizeof status)
		say_exit(s->origin, s->job, s->number, status, "");
	else
		say_exit(s->origin, s->job, s->number, EXIT_VMP_FAILURE,
			 "a process of vmp was killed");
}

static uint64_t count_stages(void)
{
	uint64_t n = 0;

	for (const struct stage *s = stages; s; s = s->next)
		n++;
	return n;
}

/* Checks whether the owner lets others run the program; this computer's own shells may run all. */
static int permit(struct tunnel *t, const char *program, struct why *why)
{
	static char text[RULES_ROOM];
	const struct network *n = &t->d->net;
	long bytes = t->mirror ? -ENOENT : folder_read(n->folder, "rules", text, sizeof text);

	if (bytes == -ENOENT)
		return 0;
	if (bytes < 0 || bytes == RULES_ROOM - 1)
		return why_set(why, "%s: its file rules cannot be read: nothing is run",
			       n->settings.nick);
	switch (rules_ask(text, program)) {
	case RULES_ALLOW: return 0;
	case RULES_DENY:
		return why_set(why, "%s does not let others run %.64s", n->settings.nick, program);
	default:
		return why_set(why, "%s: its file rules is damaged: nothing is run",
			       n->settings.nick);
	}
}

static void audit(struct tunnel *t, const struct vpg_SPAWN *m, char **words, const char *refused)
{
	char path[FOLDER_PATH + 8], day[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	snprintf(path, sizeof path, "%s/audit", t->d->net.folder);
	FILE *f = fopen(path, "ae");
	if (!f)
		return;
	if (localtime_r(&now, &tm))
		strftime(day, sizeof day, "%F %T", &tm);
	fprintf(f, "%s %s%s:", day, t->nick, *refused ? " (refused)" : "");
	for (size_t i = 0; i < m->words.n; i++) {
		fputc(' ', f);
		for (const char *c = words[i]; *c; c++)
			fputc((unsigned char)*c < ' ' ? '?' : *c, f);
	}
	fputc('\n', f);
	fclose(f);
}

/* One of the three standard streams, as SPAWN describes it. */
struct wish { uint64_t io, stream; const char *at; bool writes; };

static bool is_stream(const struct wish *w) { return w->io == IO_SHELL || w->io == IO_STREAM; }

/* Makes a pipe for a stream. *theirs is the command's end, *ours the daemon's. */
static int open_pipe(const struct wish *w, int *theirs, int *ours)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	*theirs = pair[w->writes ? 1 : 0];
	*ours = pair[w->writes ? 0 : 1];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	/* Pipes of 1 MiB take a few percent less time, but 64 of them are all that a user may have
	 * (fs.pipe-user-pages-soft): each later pipe of the user has two pages.  If this fails, the
	 * pipe stays as it is. */
	fcntl(*ours, F_SETPIPE_SZ, 1 << 18);
	return 0;
}

/* Returns the tunnel to a stream's other end; NULL if there is no connection. */
static struct tunnel *way(struct tunnel *origin, const struct wish *w)
{
	return tunnel_to(origin->d, w->io == IO_SHELL ? origin->nick : w->at, w->writes);
}

struct setting {
	struct wish wish[3];
	int theirs[3], ours[3];
	struct tunnel *via[3];
	int terminal;		/* ours; -1: there is none */
};

/* Makes a terminal of the given size in place of two pipes. */
static int open_terminal(struct setting *s, const struct vpg_SPAWN *m)
{
	const struct winsize size = { .ws_row = (unsigned short)m->rows,
				      .ws_col = (unsigned short)m->columns };
	int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	char path[64];

	s->terminal = ours;
	if (ours < 0 || grantpt(ours) || unlockpt(ours) || ptsname_r(ours, path, sizeof path))
		return -1;
	ioctl(ours, TIOCSWINSZ, &size);
	for (int i = 0; i < 2; i++) {
		s->theirs[i] = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
		s->ours[i] = fcntl(ours, F_DUPFD_CLOEXEC, 0);
		if (s->theirs[i] < 0 || s->ours[i] < 0)
			return -1;
	}
	return 0;
}

/* Returns whether the streams allow a terminal: all must be the shell's own. */
static bool terminal_fits(const struct vpg_SPAWN *m)
{
	return !*m->terminal || (m->in == IO_SHELL && m->out == IO_SHELL && m->err == IO_LIKE_OUT &&
				 strlen(m->terminal) < 64);
}

static int prepare(struct tunnel *origin, const struct vpg_SPAWN *m, struct setting *s,
		   struct keeper_order *o, struct why *why)
{
	if (!terminal_fits(m))
		return why_set(why, "it sends what no version sends");
	if (*m->terminal && open_terminal(s, m))
		return why_set(why, "%s has no terminal left: %s", origin->d->net.settings.nick,
			       strerror(errno));
	for (int i = 0; i < 3; i++) {
		const struct wish *w = s->wish + i;

		o->stream[i] = (struct keeper_stream){ -1, (enum vpg_io)w->io, w->at };
		if (w->io >= IO_KINDS || (w->io == IO_LIKE_OUT && i != 2))
			return why_set(why, "it sends what no version sends");
		if (!is_stream(w))
			continue;
		s->via[i] = way(origin, w);
		if (!s->via[i])
			return why_set(why, "%s does not reach %.64s", origin->d->net.settings.nick,
				       w->at);
		if (s->theirs[i] < 0 && open_pipe(w, &s->theirs[i], &s->ours[i]))
			return why_set(why, "%s: %s", origin->d->net.settings.nick,
				       strerror(errno));
		o->stream[i].fd = s->theirs[i];
	}
	return 0;
}

static void close_all(int *fds)
{
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int start_stage(struct tunnel *t, const struct vpg_SPAWN *m, struct setting *set,
		       struct keeper_order *o, struct why *why)
{
	struct stage *s = calloc(1, sizeof *s);

	if (!s)
		return why_set(why, "out of memory");
	*s = (struct stage){ .origin = t, .job = m->job, .number = m->stage, .control = -1,
			     .terminal = -1 };
	s->keeper = keeper_start(o, &s->control);
	if (s->keeper < 0) {
		free(s);
		return why_set(why, "%s cannot start a process: %s", t->d->net.settings.nick,
			       strerror(errno));
	}
	s->next = stages;
	stages = s;
	s->terminal = set->terminal;
	set->terminal = -1;
	s->said = event_new(t->d->base, s->control, EV_READ | EV_PERSIST, on_said, s);
	if (s->said)
		event_add(s->said, NULL);
	for (int i = 0; i < 3; i++)
		if (set->ours[i] >= 0) {
			pipe_open(t->d, set->wish[i].stream, set->via[i], set->wish[i].writes,
				  set->ours[i], s);
			set->ours[i] = -1;	/* the pipe_end has it now */
		}
	return 0;
}

static void on_spawn(struct tunnel *t, const struct vpg_SPAWN *m)
{
	struct setting set = {
		{ { m->in, m->in_stream, m->in_at, false },
		  { m->out, m->out_stream, m->out_at, true },
		  { m->err, m->err_stream, m->err_at, true } },
		{ -1, -1, -1 }, { -1, -1, -1 }, { NULL }, -1,
	};
	struct keeper_order o = { .folder = m->folder, .nick = t->d->net.settings.nick,
				  .terminal = m->terminal };
	struct why why = { "" };
	int error = 0;

	o.words = calloc(m->words.n + 1, sizeof *o.words);
	if (!o.words || !m->words.n || count_stages() >= STAGES_MAX)
		error = why_set(&why, "%s runs too many commands", t->d->net.settings.nick);
	if (!error) {
		message_words(&m->words, o.words);
		error = permit(t, o.words[0], &why);
		audit(t, m, o.words, why.line);
		o.stays = !strcmp(o.words[0], "nohup");
	}
	if (!error)
		error = prepare(t, m, &set, &o, &why);
	if (!error)
		error = start_stage(t, m, &set, &o, &why);
	if (error)
		say_exit(t, m->job, m->stage, EXIT_VMP_FAILURE, why.line);
	close_all(set.theirs);
	close_all(set.ours);
	if (set.terminal >= 0)
		close(set.terminal);
	free(o.words);
}

static void on_signal(struct tunnel *t, const struct vpg_SIGNAL *m)
{
	unsigned char number = (unsigned char)m->signal;

	for (struct stage *s = stages; s; s = s->next)
		if (s->origin == t && s->job == m->job && s->number == m->stage &&
		    m->signal < NSIG)
			send(s->control, &number, 1, MSG_NOSIGNAL);
}

static void on_resize(struct tunnel *t, const struct vpg_RESIZE *m)
{
	const struct winsize size = { .ws_row = (unsigned short)m->rows,
				      .ws_col = (unsigned short)m->columns };

	for (struct stage *s = stages; s; s = s->next)
		if (s->origin == t && s->job == m->job && s->number == m->stage && s->terminal >= 0)
			ioctl(s->terminal, TIOCSWINSZ, &size);
}

static void end_job(struct tunnel *origin, uint64_t job, bool every)
{
	for (struct stage *s = stages, *next; s; s = next) {
		next = s->next;
		if (s->origin == origin && (every || s->job == job))
			stage_free(s);
	}
}

void jobs_kill_stage(struct stage *s)
{
	unsigned char number = SIGKILL;

	s->broken = true;
	send(s->control, &number, 1, MSG_NOSIGNAL);
}

void jobs_end_all(void)
{
	while (stages)
		stage_free(stages);
}

/* ---- commands of shells here ---- */

static void started_free(struct started *s)
{
	for (struct started **at = &started; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	free(s);
}

static void tell_exit(struct shell *shell, const struct vpg_SPAWN *m, const char *why)
{
	struct vpg_EXIT say = { m->job, m->stage, EXIT_VMP_FAILURE, why };

	shell_say(shell, VPG_EXIT, &say);
}

static void relay(struct daemon *d, struct shell *s, const struct vpg_SPAWN *m, uint64_t io,
		  uint64_t stream, bool shell_writes)
{
	if (io == IO_SHELL)
		pipe_relay(d, stream, tunnel_to(d, m->nick, shell_writes), shell_writes, s,
			   m->job);
}

static void spawn(struct shell *shell, const struct vpg_SPAWN *m)
{
	struct daemon *d = shell_daemon(shell);
	struct tunnel *t = tunnel_to(d, m->nick, true);
	struct started *s = calloc(1, sizeof *s);
	struct why why;

	if (!t || !s) {
		why_set(&why, members_of_nick(&d->net.members, m->nick) ? "%.64s is not reached" :
			"no computer is called %.64s: vmp peers lists them", m->nick);
		tell_exit(shell, m, why.line);
		free(s);
		return;
	}
	*s = (struct started){ started, shell, m->job, m->stage, t };
	started = s;
	tunnel_send(t, VPG_SPAWN, m);
	relay(d, shell, m, m->in, m->in_stream, true);
	relay(d, shell, m, m->out, m->out_stream, false);
	relay(d, shell, m, m->err, m->err_stream, false);
}

/* Sends SIGNAL or RESIZE to the computer of a stage. */
static void pass(struct shell *shell, enum vpg_type type, uint64_t job, uint64_t stage,
		 const void *m)
{
	for (struct started *s = started; s; s = s->next)
		if (s->shell == shell && s->job == job && s->number == stage)
			tunnel_send(s->via, type, m);
}

/* Ends a job of the shell; all of its jobs if `job` is 0. */
static void end_started(struct daemon *d, struct shell *shell, uint64_t job)
{
	for (struct started *s = started, *next; s; s = next) {
		struct vpg_END m = { s->job };

		next = s->next;
		if (s->shell != shell || (job && s->job != job))
			continue;
		tunnel_send(s->via, VPG_END, &m);
		started_free(s);
	}
	pipes_close_shell(d, shell, job);
}

void jobs_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m)
{
	if (type == VPG_SPAWN)
		spawn(s, &m->SPAWN);
	else if (type == VPG_SIGNAL)
		pass(s, type, m->SIGNAL.job, m->SIGNAL.stage, &m->SIGNAL);
	else if (type == VPG_RESIZE)
		pass(s, type, m->RESIZE.job, m->RESIZE.stage, &m->RESIZE);
	else if (m->END.job)
		end_started(shell_daemon(s), s, m->END.job);
}

void jobs_shell_gone(struct daemon *d, struct shell *s)
{
	end_started(d, s, 0);
}

/* Sends EXIT or STOPPED to the shell of a stage. */
static void tell_shell(struct tunnel *t, enum vpg_type type, uint64_t job, uint64_t stage,
		       const void *m)
{
	for (struct started *s = started; s; s = s->next)
		if (s->via == t && s->job == job && s->number == stage)
			shell_say(s->shell, type, m);
}

/* ---- both ---- */

void jobs_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m)
{
	switch (type) {
	case VPG_SPAWN: on_spawn(t, &m->SPAWN); break;
	case VPG_SIGNAL: on_signal(t, &m->SIGNAL); break;
	case VPG_END: end_job(t, m->END.job, false); break;
	case VPG_RESIZE: on_resize(t, &m->RESIZE); break;
	case VPG_EXIT: tell_shell(t, type, m->EXIT.job, m->EXIT.stage, &m->EXIT); break;
	case VPG_STOPPED:
		tell_shell(t, type, m->STOPPED.job, m->STOPPED.stage, &m->STOPPED);
		break;
	default: break;
	}
}

void jobs_tunnel_closed(struct tunnel *t, const char *why)
{
	char line[256];

	end_job(t, 0, true);
	pipes_tunnel_closed(t);
	for (struct started *s = started, *next; s; s = next) {
		struct vpg_EXIT lost = { s->job, s->number, EXIT_VMP_FAILURE, line };

		next = s->next;
		if (s->via != t)
			continue;
		snprintf(line, sizeof line, "%s is lost: %s", t->nick, why);
		shell_say(s->shell, VPG_EXIT, &lost);
		started_free(s);
	}
}
