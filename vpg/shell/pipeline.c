/* pipeline.c - see pipeline.h. */
#include "vpg/shell/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "vpg/shell/running.h"
#include "vpg/shell/signals.h"
#include "vpg/shell/own_terminal.h"

enum { NOT_FOUND = 127, CANNOT_RUN = 126, WORDS_ROOM = VPG_FRAME_MAX - (8 << 10) };

/* ---- the daemon ---- */

/* Connects to the daemon, if that was not done yet.  Returns 0, or -1 with one line. */
static int connect_daemon(struct executor *x)
{
	struct why why;

	if (x->daemon.fd >= 0 || !daemon_socket_open(&x->daemon, &why))
		return 0;
	log_error("%s", why.line);
	return -1;
}

int pipeline_peers(struct executor *x, struct group *g)
{
	struct vpg_ASK_CONNECTED question = { 0 };
	union vpg_any m;
	int type = -1;

	if (connect_daemon(x))
		return -1;
	if (!daemon_socket_send(&x->daemon, VPG_ASK_CONNECTED, &question))
		while ((type = daemon_socket_next(&x->daemon, &m, true)) > 0 && type != VPG_DONE)
			if (type == VPG_SAID && group_add(g, m.SAID.line))
				break;
	if (type == VPG_DONE)
		return 0;
	log_error("%s", daemon_socket_failure(&x->daemon));
	daemon_socket_close(&x->daemon);
	return -1;
}

/* ---- starting ---- */

static bool is_nohup(const struct running *r) { return !strcmp(r->words[0], "nohup"); }

static void become(const struct running *r)
{
	for (int i = 0; i < 3; i++)
		if (r->fd[i] >= 0)
			dup2(r->fd[i], i);
	if (r->io[2] == IO_LIKE_OUT)
		dup2(1, 2);
	if (!is_nohup(r))
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	signals_forget(is_nohup(r));	/* nohup itself may ignore SIGHUP too late */
	execvp(r->words[0], r->words);
	dprintf(2, "vmp: %s: %s\n", r->words[0], strerror(errno));
	_exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

static int start_here(struct pipeline *p, struct running *r)
{
	fflush(stdout);
	r->pid = fork();
	if (r->pid == 0)
		become(r);
	for (int k = 0; k < 3; k++)
		if (r->fd[k] >= 0)
			close(r->fd[k]);
	r->fd[0] = r->fd[1] = r->fd[2] = -1;
	if (r->pid < 0) {
		r->pid = 0;
		return join_fail(p, "cannot start a process", strerror(errno));
	}
	return 0;
}

static int start_there(struct pipeline *p, const struct running *r)
{
	static char room[WORDS_ROOM];
	const char *kind = getenv("TERM");
	struct vpg_SPAWN m = {
		.job = p->job, .stage = (uint64_t)(r - p->runs), .nick = r->nick, .folder = "",
		.in = r->io[0], .in_stream = r->stream[0], .in_at = r->at[0],
		.out = r->io[1], .out_stream = r->stream[1], .out_at = r->at[1],
		.err = r->io[2], .err_stream = r->stream[2], .err_at = r->at[2],
		.terminal = !r->terminal ? "" : kind && *kind ? kind : "dumb",
		.words = message_list(r->words, r->n_words, room, sizeof room),
	};

	terminal_size(&m.rows, &m.columns);
	if (!m.words.n)
		return join_fail(p, r->words[0], "its words are too long for another computer");
	if (daemon_socket_send(&p->x->daemon, VPG_SPAWN, &m))
		return join_gone(p);
	if (r->terminal)
		terminal_raw();
	return 0;
}

static int start_all(struct pipeline *p)
{
	for (size_t i = 0; i < p->n_runs; i++)
		if (p->runs[i].nick && start_there(p, p->runs + i))
			return -1;
	if (pumps_begin(&p->pumps))
		return join_gone(p);
	for (size_t i = 0; i < p->n_runs; i++)
		if (!p->runs[i].nick && start_here(p, p->runs + i))
			return -1;
	return 0;
}

/* ---- signals ---- */

static void send_signal(struct pipeline *p, int number)
{
	for (size_t i = 0; i < p->n_runs; i++) {
		struct vpg_SIGNAL m = { p->job, i, (uint64_t)number };

		if (p->runs[i].nick && !p->runs[i].done)
			daemon_socket_send(&p->x->daemon, VPG_SIGNAL, &m);
	}
}

static void send_size(struct pipeline *p)
{
	struct vpg_RESIZE m = { .job = p->job };

	terminal_size(&m.rows, &m.columns);
	shell_signals.resized = 0;
	if (p->runs[0].terminal)
		daemon_socket_send(&p->x->daemon, VPG_RESIZE, &m);
}

/* Ctrl-Z: stops this process, until `fg`, or the program that started it, continues it. */
static void stop(struct pipeline *p)
{
	terminal_restore();
	signals_stop();
	if (p->runs[0].terminal)
		terminal_raw();
	send_size(p);
	send_signal(p, SIGCONT);
}

/* Passes signals on to the commands elsewhere; the commands here get them from the terminal.  The
 * second Ctrl-C ends the pipeline. */
static int pass_signals(struct pipeline *p)
{
	if (shell_signals.ended_by) {
		if (shell_signals.ended_by != SIGHUP)	/* commands under nohup get it, too */
			send_signal(p, shell_signals.ended_by);
		return -1;
	}
	if (shell_signals.resized)
		send_size(p);
	if (shell_signals.user)
		send_signal(p, shell_signals.user);
	shell_signals.user = 0;
	if (shell_signals.stop_asked) {
		send_signal(p, SIGTSTP);
		stop(p);
	}
	if (shell_signals.interrupted == p->signals_sent)
		return 0;
	if (shell_signals.interrupted - p->signals_sent > 1 || p->interrupted)
		return -1;
	p->interrupted = true;
	p->signals_sent = shell_signals.interrupted;
	send_signal(p, SIGINT);
	return 0;
}

/* ---- running ---- */

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void reap(struct pipeline *p)
{
	int status, stops = p->x->is_job ? WUNTRACED : 0;

	shell_signals.child_changed = 0;
	for (size_t i = 0; i < p->n_runs; i++) {
		struct running *r = p->runs + i;

		if (!r->pid || r->done || waitpid(r->pid, &status, WNOHANG | stops) != r->pid)
			continue;
		if (WIFSTOPPED(status)) {
			shell_signals.stop_asked = 1;
			continue;
		}
		r->done = true;
		r->status = status_of(status);
	}
}

static int on_exit_of(struct pipeline *p, const struct vpg_EXIT *m)
{
	struct running *r;

	if (m->job != p->job || m->stage >= p->n_runs || !p->runs[m->stage].nick)
		return 0;
	r = p->runs + m->stage;
	r->done = true;
	r->status = (int)(m->status & 255);
	if (!*m->why)
		return 0;
	if (r->terminal)
		terminal_restore();
	if (!r->of_group)
		return join_fail(p, m->why, "");
	log_error("%s", m->why);	/* the other commands of the group continue */
	for (int k = 0; k < 3; k++)
		pumps_drop(&p->pumps, r->stream[k]);
	return 0;
}

/* Serves the daemon's frames that have come. */
static int hear(struct pipeline *p)
{
	union vpg_any m;
	int type, error = 0;

	while (!error && (type = daemon_socket_next(&p->x->daemon, &m, false)) > 0) {
		if (type == VPG_EXIT)
			error = on_exit_of(p, &m.EXIT);
		else if (type == VPG_STOPPED && m.STOPPED.job == p->job)
			stop(p);
		else
			error = pumps_hear(&p->pumps, type, &m);
	}
	return error ? -1 : type < 0 ? join_gone(p) : 0;
}

static bool all_done(const struct pipeline *p)
{
	for (size_t i = 0; i < p->n_runs; i++)
		if (!p->runs[i].done)
			return false;
	return pumps_done(&p->pumps);
}

/* Serves all streams, until all commands have ended and all that they wrote is written. */
static int attend(struct pipeline *p)
{
	struct pollfd *fds = calloc(p->pumps.n + 1, sizeof *fds);
	int error = fds ? 0 : -1;

	while (!error && !all_done(p)) {
		fds[p->pumps.n] = (struct pollfd){ p->x->daemon.fd, POLLIN, 0 };
		pumps_wait(&p->pumps, fds);
		int n = ppoll(fds, p->pumps.n + 1, NULL, &shell_signals.waiting);
		if (n < 0 && errno != EINTR)
			error = join_fail(p, "cannot wait", strerror(errno));
		if (shell_signals.child_changed)
			reap(p);
		if (!error && pass_signals(p))
			error = -1;
		if (n < 0)
			continue;
		if (!error && pumps_ready(&p->pumps, fds))
			error = join_gone(p);
		if (!error && fds[p->pumps.n].revents)
			error = hear(p);
	}
	free(fds);
	return error;
}

/* The shell ends while commands under nohup go on: hears whether they could be started. The daemon
 * answers in order. */
static void hear_whether_started(struct pipeline *p)
{
	struct vpg_ASK_CONNECTED question = { 0 };
	union vpg_any m;
	int type;

	if (p->x->daemon.fd < 0 || daemon_socket_send(&p->x->daemon, VPG_ASK_CONNECTED, &question))
		return;
	while ((type = daemon_socket_next(&p->x->daemon, &m, true)) > 0 && type != VPG_DONE)
		if (type == VPG_EXIT)
			on_exit_of(p, &m.EXIT);
}

/* Ends what is left of the pipeline, here and elsewhere; not what is under nohup, if the shell has
 * ended before it. */
static void end(struct pipeline *p)
{
	struct vpg_END m = { p->job };

	terminal_restore();
	for (size_t i = 0; i < p->n_runs; i++) {
		struct running *r = p->runs + i;

		for (int k = 0; k < 3; k++)
			if (r->fd[k] >= 0)
				close(r->fd[k]);
		if (r->pid > 0 && !r->done && !(is_nohup(r) && shell_signals.ended_by == SIGHUP)) {
			kill(r->pid, SIGKILL);
			waitpid(r->pid, NULL, 0);
		}
	}
	pumps_free(&p->pumps);
	if (p->x->daemon.fd >= 0 && daemon_socket_send(&p->x->daemon, VPG_END, &m))
		daemon_socket_close(&p->x->daemon);
}

/* Returns the status of a part; of a group, the highest. */
static int status_of_part(const struct pipeline *p, size_t part)
{
	int status = 0;

	for (size_t i = p->first[part]; i < p->first[part + 1]; i++)
		status = p->runs[i].status > status ? p->runs[i].status : status;
	return status;
}

/* Returns the pipeline's status as a shell counts it: the status of the last command.  A part that
 * carries a file counts only if it fails; the command that wrote to it then dies by SIGPIPE. */
static int status_of_all(const struct pipeline *p)
{
	int status = status_of_part(p, p->plan.last);

	for (size_t i = 0; i < p->plan.n && (!status || status == 128 + SIGPIPE); i++)
		if (p->plan.parts[i].carries && status_of_part(p, i))
			status = status_of_part(p, i);
	for (size_t i = p->plan.last + 1; p->x->pipefail && i-- > 0 && !status;)
		status = status_of_part(p, i);
	return status;
}

static bool needs_daemon(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->parts[i].nick)
			return true;
	return false;
}

static int run_plan(struct pipeline *p)
{
	int error;

	if (needs_daemon(&p->plan) && connect_daemon(p->x))
		return EXIT_VMP_FAILURE;
	if (getrandom(&p->job, sizeof p->job, 0) != sizeof p->job || join_make(p))
		return EXIT_VMP_FAILURE;
	p->job |= 1;
	p->last_stream = p->job;	/* so that each job numbers its streams differently */
	p->signals_sent = shell_signals.interrupted;
	p->pumps.daemon = &p->x->daemon;
	error = join_all(p);
	if (!error)
		error = start_all(p) || attend(p);
	else if (!p->failed)
		error = 0;	/* a file here cannot be opened: it is the command's failure */
	if (error && shell_signals.ended_by == SIGHUP && is_nohup(p->runs))
		hear_whether_started(p);
	end(p);
	if (p->failed)
		return EXIT_VMP_FAILURE;
	int by = shell_signals.ended_by;
	return error ? 128 + (by ? by : SIGINT) : status_of_all(p);
}

int pipeline_run(struct executor *x, const struct line *l, size_t first, size_t end_at)
{
	struct pipeline p = { .x = x };
	int status = EXIT_VMP_FAILURE;

	if (!plan_make(&p.plan, l, first, end_at))
		status = run_plan(&p);
	for (size_t i = 0; p.groups && i < p.plan.n; i++)
		group_free(p.groups + i);
	free(p.groups);
	free(p.first);
	free(p.runs);
	plan_free(&p.plan);
	return status;
}
