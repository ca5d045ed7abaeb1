/* execute.c - see execute.h.
 *
 * The shell is one process.  Commands on its own computer are its children.  The others run under
 * daemons of other computers, to which the shell's own daemon passes its messages on.  A list that
 * ends with & is a job: it runs in a copy of the shell, with a connection of its own.  At a prompt
 * each pipeline is a job, so that Ctrl-Z can stop it.
 */
#include "vpg/shell/execute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/log.h"
#include "vpg/shell/builtins.h"
#include "vpg/shell/job_table.h"
#include "vpg/shell/pipeline.h"
#include "vpg/shell/signals.h"
#include "vpg/shell/own_terminal.h"

enum { INTERRUPTED = 128 + SIGINT, STOPPED = 128 + SIGTSTP };

void execute_prepare(struct executor *x)
{
	x->daemon.fd = -1;
	signals_prepare();
}

/* ---- jobs ---- */

/* Writes the stages as text, for a list of jobs. */
static void describe(const struct line *l, size_t first, size_t end_at, char text[JOB_TEXT])
{
	static const char *const signs[] = { "", " | ", " && ", " || ", "; ", " &" };
	size_t n = 0;

	*text = 0;
	for (size_t i = first; i < end_at; i++) {
		const struct line_stage *s = l->stages + i;

		for (size_t w = 0; w < s->n_words && n < JOB_TEXT; w++)
			n += (size_t)snprintf(text + n, JOB_TEXT - n, "%s%s%s%s", w ? " " : "",
					      s->words[w], !w && s->nick ? "@" : "",
					      !w && s->nick ? s->nick : "");
		if (n < JOB_TEXT)
			n += (size_t)snprintf(text + n, JOB_TEXT - n, "%s", signs[s->after]);
	}
}

/* Called in the copy: gives up what belongs to the shell, and makes the copy a job. */
static void become_job(struct executor *x, bool foreground)
{
	prctl(PR_SET_PDEATHSIG, SIGHUP);
	setpgid(0, 0);
	if (foreground && x->interactive && terminal_is_own())
		tcsetpgrp(0, getpid());
	signal(SIGTTOU, SIG_DFL);
	daemon_socket_close(&x->daemon);
	x->no_input |= !foreground;
	x->is_job = true;
	x->terminal = foreground && x->interactive && terminal_is_own();
	x->interactive = false;
}

static int run_list(struct executor *x, const struct line *l, size_t first, size_t end_at);

/* Starts a copy of the shell, which runs the stages and dies with the shell. */
static struct job *start_job(struct executor *x, const struct line *l, size_t first, size_t end_at,
			     bool foreground)
{
	char text[JOB_TEXT];
	struct job *j;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		log_error("cannot start a process: %s", strerror(errno));
	if (pid < 0)
		return NULL;
	if (!pid) {
		become_job(x, foreground);
		_exit(run_list(x, l, first, end_at));
	}
	setpgid(pid, pid);
	describe(l, first, end_at, text);
	j = job_add(pid, text);
	if (j)
		j->stays = end_at == first + 1 && !strcmp(l->stages[first].words[0], "nohup");
	if (!j) {
		log_error("there are %d jobs already: wait for some", JOBS_MAX);
		kill(-pid, SIGKILL);
	}
	return j;
}

/* Waits for the jobs; `leaving`: not for those that stay. */
static void wait_for_jobs(bool leaving)
{
	int seen = shell_signals.interrupted;
	struct job *j = job_next(0);

	while (j && !shell_signals.ended_by && shell_signals.interrupted == seen) {
		int number = j->number;

		if (!j->stopped && !(leaving && j->stays))
			job_wait(j);
		j = job_next(number);
	}
}

void execute_wait(struct executor *x)
{
	(void)x;
	wait_for_jobs(false);
}

void execute_leave(struct executor *x)
{
	wait_for_jobs(true);
	execute_end(x);
}

/* A copy of the shell that has a command under nohup ends when it has passed the command on.  The
 * shell waits for that, so that a failure is reported before the shell is gone. */
void execute_end(struct executor *x)
{
	(void)x;
	jobs_hang_up();
	for (struct job *j = job_next(0), *next; j; j = next) {
		next = job_next(j->number);
		if (j->stays)
			job_wait(j);
	}
}

/* ---- lists ---- */

static int run_pipeline(struct executor *x, const struct line *l, size_t first, size_t end_at)
{
	struct job *j;

	if (!x->interactive)
		return pipeline_run(x, l, first, end_at);
	j = start_job(x, l, first, end_at, true);
	return j ? job_foreground(j, terminal_is_own()) : 1;
}

/* Returns whether a list continues behind a command of this status. */
static bool goes_on(const struct executor *x, int seen)
{
	return !x->exits && !shell_signals.ended_by && shell_signals.interrupted == seen &&
	       !(x->interactive && (x->status == INTERRUPTED || x->status == STOPPED));
}

static int run_list(struct executor *x, const struct line *l, size_t first, size_t end_at)
{
	enum line_after before = AFTER_SEQUENCE;
	int seen = shell_signals.interrupted;

	while (first < end_at && (before == AFTER_SEQUENCE || goes_on(x, seen))) {
		size_t next = line_pipeline_end(l, first);
		bool skip = (before == AFTER_AND && x->status) ||
			    (before == AFTER_OR && !x->status);
		int status = skip ? x->status : -1;

		if (!skip && next == first + 1)
			status = builtin_run(x, l->stages + first);
		x->status = status >= 0 ? status : run_pipeline(x, l, first, next);
		before = l->stages[next - 1].after;
		first = next;
	}
	return x->status;
}

int execute_line(struct executor *x, const struct line *l)
{
	int seen = shell_signals.interrupted;

	for (size_t i = 0, next; i < l->n_stages && !x->exits && !shell_signals.ended_by;
	     i = next) {
		next = line_list_end(l, i);
		if (l->stages[next - 1].after == AFTER_BACKGROUND) {
			struct job *j = start_job(x, l, i, next, false);

			if (j && x->interactive)
				printf("[%d] %d\n", j->number, (int)j->pid);
			x->status = !j;
		} else {
			run_list(x, l, i, next);
			if (!goes_on(x, seen))
				break;
		}
	}
	x->exits |= shell_signals.ended_by != 0;
	return x->status;
}

int execute_text(struct executor *x, const char *text, size_t n)
{
	struct line l;
	int error = line_parse(&l, text, n);

	if (error)
		log_error("%s", error == -EINVAL ? l.error : strerror(-error));
	x->status = error ? 2 : execute_line(x, &l);
	line_free(&l);
	return x->status;
}
