/* join.c - makes the processes of a pipeline, and connects their standard streams.  See
 * running.h. */
#include "vpg/shell/running.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

int join_fail(struct pipeline *p, const char *what, const char *why)
{
	log_error("%s%s%s", what, *why ? ": " : "", why);
	p->failed = true;
	return -1;
}

int join_gone(struct pipeline *p)
{
	return join_fail(p, daemon_socket_failure(&p->x->daemon), "");
}

/* ---- runs ---- */

static bool is_group(const struct plan_part *part)
{
	return part->nick && group_is_one(part->nick);
}

static int name_group(struct pipeline *p, size_t part)
{
	const char *name = p->plan.parts[part].nick;
	struct group *g = p->groups + part;

	if (!strcmp(name, "all"))
		return pipeline_peers(p->x, g) ? (p->failed = true, -1) : 0;
	if (group_expand(g, name) || !g->n)
		return join_fail(p, name, "not a group as all, h[1-40] or h[1,3-5]");
	return 0;
}

static void fill_run(struct pipeline *p, size_t part, size_t run, const char *nick)
{
	const struct plan_part *of = p->plan.parts + part;

	p->runs[run] = (struct running){
		.nick = nick, .words = of->words, .n_words = of->n_words, .of_group = is_group(of),
		.fd = { -1, -1, -1 }, .at = { "", "", "" },
	};
}

int join_make(struct pipeline *p)
{
	p->groups = calloc(p->plan.n, sizeof *p->groups);
	p->first = calloc(p->plan.n + 1, sizeof *p->first);
	if (!p->groups || !p->first)
		return join_fail(p, "out of memory", "");
	for (size_t i = 0; i < p->plan.n; i++) {
		if (is_group(p->plan.parts + i) && name_group(p, i))
			return -1;
		p->first[i + 1] = p->first[i] + (p->groups[i].n ? p->groups[i].n : 1);
	}
	p->n_runs = p->first[p->plan.n];
	p->runs = calloc(p->n_runs, sizeof *p->runs);
	if (!p->runs)
		return join_fail(p, "out of memory", "");
	for (size_t i = 0; i < p->plan.n; i++)
		for (size_t r = p->first[i]; r < p->first[i + 1]; r++)
			fill_run(p, i, r, p->groups[i].n ? p->groups[i].nicks[r - p->first[i]]
							 : p->plan.parts[i].nick);
	return 0;
}

/* ---- streams ---- */

/* Makes a new stream between the shell and a run; the shell's end is fd. */
static int join_shell(struct pipeline *p, struct running *r, int which, int fd, bool own)
{
	r->io[which] = IO_SHELL;
	r->stream[which] = ++p->last_stream;
	if (fd < 0 || pumps_add(&p->pumps, r->stream[which], fd, which == 0, own))
		return join_fail(p, "out of memory or descriptors", "");
	return 0;
}

/* Makes a new stream between a run elsewhere and one here, at whose pipe fd is the other end. */
static int join_pipe(struct pipeline *p, struct running *r, int which, int fd)
{
	int error;

	r->io[which] = IO_SHELL;
	r->stream[which] = ++p->last_stream;
	error = pumps_attach(&p->pumps, r->stream[which], fd, which == 0);
	if (error == -EPIPE)
		return join_gone(p);
	return error ? join_fail(p, "out of memory", "") : 0;
}

/* Makes a pipe with room for all that a stream's end reads in one go, and as much again, so that
 * both ends have something to do; with less room, if that is not permitted. */
static int make_pipe(int pair[2])
{
	int error = pipe2(pair, O_CLOEXEC);

	if (!error)
		fcntl(pair[0], F_SETPIPE_SZ, 1 << 20);
	return error;
}

/* Connects the output `which` of one run with the input of another run. */
static int join_two(struct pipeline *p, struct running *w, int which, struct running *r)
{
	int pair[2];

	if (w->nick && r->nick) {
		w->io[which] = r->io[0] = IO_STREAM;
		w->stream[which] = r->stream[0] = ++p->last_stream;
		w->at[which] = r->nick;
		r->at[0] = w->nick;
		return 0;
	}
	if (make_pipe(pair))
		return join_fail(p, "cannot make a pipe", strerror(errno));
	if (!w->nick)
		w->fd[which] = pair[1];
	if (!r->nick)
		r->fd[0] = pair[0];
	if (w->nick)
		return join_pipe(p, w, which, pair[1]);
	return r->nick ? join_pipe(p, r, 0, pair[0]) : 0;
}

/* Lets all runs of a group write, line by line, to one descriptor of the shell; closes that
 * descriptor. */
static int join_lines(struct pipeline *p, size_t part, int which, int fd)
{
	int error = 0;

	for (size_t i = p->first[part]; i < p->first[part + 1] && !error; i++) {
		int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

		error = join_shell(p, p->runs + i, which, own, true);
		if (!error && pumps_by_lines(&p->pumps, ""))
			error = join_fail(p, "out of memory", "");
	}
	close(fd);
	return error;
}

/* Connects the output `which` of a part with the input of another part. */
static int join_parts(struct pipeline *p, size_t from, int which, size_t to)
{
	struct running *r = p->runs + p->first[to];
	int pair[2];

	if (r->of_group)
		return join_fail(p, p->plan.parts[to].nick, "a group reads from no pipe");
	if (!p->runs[p->first[from]].of_group)
		return join_two(p, p->runs + p->first[from], which, r);
	if (make_pipe(pair))
		return join_fail(p, "cannot make a pipe", strerror(errno));
	if (!r->nick)
		r->fd[0] = pair[0];
	else if (join_pipe(p, r, 0, pair[0]))
		return -1;
	return join_lines(p, from, which, pair[1]);
}

/* Opens a file on the shell's own computer.  Returns its descriptor, or -1 after one line. */
static int open_here(struct pipeline *p, const struct plan_end *e, int which)
{
	int flags = which == 0 ? O_RDONLY : O_WRONLY | O_CREAT | (e->append ? O_APPEND : O_TRUNC);
	int fd = open(e->path, flags | O_CLOEXEC, 0666);

	if (fd < 0) {
		log_error("%s: %s", e->path, strerror(errno));
		p->runs[p->first[p->plan.last]].status = 1;
	}
	return fd;
}

static int join_file(struct pipeline *p, size_t part, int which, const struct plan_end *e)
{
	int fd;

	for (size_t i = p->first[part]; e->kind == PLAN_FILE && i < p->first[part + 1]; i++) {
		p->runs[i].io[which] = which == 0 ? IO_READ : e->append ? IO_APPEND : IO_WRITE;
		p->runs[i].at[which] = e->path;
	}
	struct running *r = p->runs + p->first[part];
	if (e->kind == PLAN_FILE && r->nick)
		return 0;
	if (r->of_group && which == 0)
		return join_fail(p, p->plan.parts[part].nick,
				    "a group reads no file of this computer");
	fd = open_here(p, e, which);
	if (fd < 0)
		return -1;
	if (e->kind == PLAN_FILE)
		r->fd[which] = fd;
	else if (r->of_group)
		return join_lines(p, part, which, fd);
	else
		return join_shell(p, r, which, fd, true);
	return 0;
}

/* Sets the streams of a command that outlives the shell: none is the shell's, as with nohup(1) at a
 * terminal. */
static void join_nohup(struct running *r, int which)
{
	r->io[which] = which == 0 ? IO_NULL : which == 1 ? IO_APPEND : IO_LIKE_OUT;
	if (which == 1)
		r->at[1] = "nohup.out";
}

/* Connects a stream of the part with the shell's own. */
static int join_own(struct pipeline *p, size_t part, int which)
{
	struct running *r = p->runs + p->first[part], *end = p->runs + p->first[part + 1];
	bool silent = which == 0 && p->x->no_input;

	if (!r->nick) {
		if (silent)
			r->fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return 0;
	}
	for (; r < end; r++) {
		if (!strcmp(r->words[0], "nohup") && !p->x->keeps_streams)
			join_nohup(r, which);
		else if (which == 0 && (silent || r->of_group))
			r->io[0] = IO_NULL;
		else if (which == 2 && r->terminal)
			r->io[2] = IO_LIKE_OUT;
		else if (join_shell(p, r, which, which, false))
			return -1;
		else if (r->of_group && pumps_by_lines(&p->pumps, r->nick))
			return join_fail(p, "out of memory", "");
	}
	return 0;
}

static int join_end(struct pipeline *p, size_t part, int which, const struct plan_end *e)
{
	switch (e->kind) {
	case PLAN_OWN: return join_own(p, part, which);
	case PLAN_PART: return which ? join_parts(p, part, which, e->part) : 0;
	case PLAN_LIKE_OUT:
		for (size_t i = p->first[part]; i < p->first[part + 1]; i++)
			p->runs[i].io[which] = IO_LIKE_OUT;
		return 0;
	default: return join_file(p, part, which, e);
	}
}

/* Returns whether the only command of the pipeline is elsewhere, and all its streams are the
 * shell's. */
static bool gets_terminal(const struct pipeline *p)
{
	const struct plan_part *part = p->plan.parts;

	return p->x->terminal && !p->x->no_input && p->n_runs == 1 && part->nick &&
	       part->in.kind == PLAN_OWN && part->out.kind == PLAN_OWN &&
	       part->err.kind == PLAN_OWN && strcmp(part->words[0], "nohup");
}

int join_all(struct pipeline *p)
{
	p->runs[0].terminal = gets_terminal(p);
	for (size_t i = 0; i < p->plan.n; i++) {
		const struct plan_part *part = p->plan.parts + i;

		if (join_end(p, i, 0, &part->in) || join_end(p, i, 1, &part->out) ||
		    join_end(p, i, 2, &part->err))
			return -1;
	}
	return 0;
}
