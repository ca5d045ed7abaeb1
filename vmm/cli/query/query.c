/* query.c - see query.h.  Each command runs an event loop with one connection, which ends when the
 * answer is complete.  What a command asks, and what it does with the answer, is in console.c,
 * dumps.c, looks.c and changes.c. */
#include "vmm/cli/query/query_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"

enum { ANSWER_LIMIT_S = 10, GONE_LIMIT_MS = 30000, YIELD_TRIES = 600, YIELD_LOOK_US = 50000 };

void query_end(struct query *q, int status, const char *line)
{
	if (q->done)
		return;
	q->done = true;
	q->status = status;
	problem(&q->why, "%s", line);
	event_base_loopbreak(q->base);
}

static void on_signal(evutil_socket_t signal_number, short events, void *context)
{
	struct query *q = context;

	(void)events;
	if (q->execs && exec_signal(signal_number))
		return;
	query_end(q, q->live && signal_number == SIGINT ? 0 : 128 + signal_number, "");
}

static void on_limit(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events;
	query_end(context, EXIT_VMP_FAILURE, "the machine does not answer");
}

static void on_closed(void *context)
{
	struct query *q = context;

	if (q->client.wrong[0])
		return query_end(q, EXIT_VMP_FAILURE, q->client.wrong);
	if (query_wait_for_machine(q))
		return;
	if (q->execs)
		query_end(q, EXIT_VMP_FAILURE,
			  exec_lost(q->info.machine.checkpoint_ms || query_yields_or_has(q)));
	else if (q->until_end)
		query_end(q, 0, "");
	else
		query_end(q, EXIT_VMP_FAILURE, query_yields_or_has(q) ?
			  "host 0 has gone meanwhile: ask again; the others have new numbers" :
			  "the machine has ended");
}

/* The machine has ended in order, or a part of it is lost. */
void query_on_machine_end(struct query *q, const struct message *m,
			  const struct msg_machine_end *end)
{
	(void)m;
	if (q->done)
		return;
	if (end->reason != END_PART_DIED)
		q->info.machine.checkpoint_ms = q->yields_ns = 0;
	on_closed(q);
}

/* The first of these messages starts the command.  A later one says that some hosts will not
 * answer. */
void query_on_hosts(struct query *q, const struct message *m, const struct msg_hosts *hosts)
{
	void (*start)(struct query *) = q->start;

	(void)m;
	if (q->done)
		return;
	q->hosts = *hosts;
	q->start = NULL;
	if (start) {
		start(q);
	} else if (q->again) {
		report_keep_hosts(&q->now.report, q->hosts.present);
		look_check(q);
	} else if (q->asks_pages) {
		dumps_pages_check(q);
	}
}

static bool dispatch(struct query *q, const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_QUERY(name, how, handler) SERVE_##how(q, m, name, handler)
#include "base/msg.def"
	}
	return false;
}

/* Messages that follow the end of the command are ignored: every handler checks q->done. */
static void on_message(void *context, const struct message *m)
{
	/* client.c has refused messages that a query may not receive */
	bug_on(!dispatch(context, m));
}

static void wait_while_it_yields(const struct query *q)
{
	for (unsigned tries = 0; tries < YIELD_TRIES && query_yields(q); tries++)
		usleep(YIELD_LOOK_US);
}

static int open_query(struct query *q, const struct options *o, uint32_t kind)
{
	static const int quitting[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const struct timeval limit = { ANSWER_LIMIT_S, 0 };
	struct problem ignored;
	int error;

	*q = (struct query){ .o = o, .kind = kind, .execs = o->verb == VERB_EXEC };
	q->client = (struct client){ .fd = -1,
				     .context = q,
				     .link = LINK_NODE_TO_QUERY,
				     .on_message = on_message,
				     .on_closed = on_closed };
	if (rundir_find(&q->rundir, o->name, &q->why) ||
	    rundir_read_info(&q->rundir, &q->info, &q->why) || change_find_host(q))
		return -1;
	wait_while_it_yields(q);
	if (!rundir_read_info(&q->rundir, &q->info, &ignored) && q->info.elsewhere[0])
		return problem(&q->why, "the machine %s goes on on %s", q->rundir.name,
			       q->info.elsewhere);
	signal(SIGPIPE, SIG_IGN);
	q->base = client_new_loop();
	if (!q->base)
		return problem(&q->why, "no memory");
	for (size_t i = 0; i < ARRAY_LEN(quitting); i++) {
		q->signals[i] = evsignal_new(q->base, quitting[i], on_signal, q);
		if (!q->signals[i] || event_add(q->signals[i], NULL))
			return problem(&q->why, "no memory");
	}
	q->limit = evtimer_new(q->base, on_limit, q);
	if (!q->limit || (kind == CLIENT_QUERY && event_add(q->limit, &limit)))
		return problem(&q->why, "no memory");
	error = client_connect(&q->client, q->base, q->rundir.path, kind);
	if (error)
		return problem(&q->why, "cannot connect to the machine %s: %s", q->rundir.name,
			       strerror(-error));
	return 0;
}

static int close_query(struct query *q)
{
	struct event *events[] = { q->limit,	  q->typed,	 q->window,
				   q->again,	  q->back,	 q->signals[0],
				   q->signals[1], q->signals[2], q->signals[3] };

	change_hide_progress(q);
	exec_stop();
	frames_free(q);
	client_flush(&q->client, 100);
	terminal_restore();
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	client_close(&q->client);
	if (q->base)
		event_base_free(q->base);
	for (size_t i = 0; i < MAX_CPUS; i++)
		free(q->dump[i]);
	pageheat_free(&q->heat);
	if (q->why.line[0]) {
		log_error("%s", q->why.line);
		return q->status ? q->status : EXIT_VMP_FAILURE;
	}
	return q->status;
}

/* Carries out a command that asks a machine: connects to it, calls start(), and loops until
 * query_end(); then, if all went well, print(), which may be NULL.  Returns the exit status. */
static int ask(const struct options *o, uint32_t kind, void (*start)(struct query *),
	       void (*print)(struct query *))
{
	static struct query q;

	if (!open_query(&q, o, kind)) {
		q.start = start;
		event_base_dispatch(q.base);
		if (!q.status && print) {
			print(&q);
			if (fflush(stdout))
				problem(&q.why, "cannot write the answer: %s", strerror(errno));
		}
	}
	return close_query(&q);
}

int query_console(const struct options *o)
{
	return ask(o, CLIENT_CONSOLE, console_start, NULL);
}

/* A terminal inside needs one outside. */
int query_exec(const struct options *o)
{
	if (o->tty && !isatty(0)) {
		log_error("--tty needs a terminal as standard input; leave it away, and the "
			  "command has three streams");
		return EXIT_VMP_FAILURE;
	}
	return ask(o, CLIENT_QUERY, exec_start, NULL);
}

int query_regs(const struct options *o)
{
	return ask(o, CLIENT_QUERY, dumps_start_regs, dumps_print_regs);
}

int query_pages(const struct options *o)
{
	return ask(o, CLIENT_QUERY, dumps_start_pages, dumps_print_pages);
}

int query_status(const struct options *o)
{
	return ask(o, CLIENT_QUERY, look_start_status, look_print_status);
}

int query_top(const struct options *o)
{
	return ask(o, CLIENT_QUERY, look_start_top, NULL);
}

/* Waits until the machine's process has ended, so that its name and its disk are free. */
static void wait_until_gone(struct query *q)
{
	if (rundir_wait_gone(&q->rundir, GONE_LIMIT_MS)) {
		q->status = EXIT_VMP_FAILURE;
		problem(&q->why, "the machine %s has ended, but its process %d does not",
			q->rundir.name, q->info.pid);
	}
}

static int take_down(const struct options *o)
{
	return ask(o, CLIENT_QUERY, change_start_down, wait_until_gone);
}

/* Ends each machine that runs now.  A machine that ends by itself meanwhile is no error.  If one
 * does not end, the others are ended all the same. */
static int take_all_down(const struct options *o)
{
	struct rundir_list list;
	struct options one = *o;
	struct rundir ignored;
	struct problem p;
	int status = 0;

	if (rundir_list(&list, &p)) {
		log_error("%s", p.line);
		return EXIT_VMP_FAILURE;
	}
	for (unsigned i = 0; i < list.n; i++) {
		one.name = list.name[i];
		if (!rundir_find(&ignored, one.name, &p) && take_down(&one))
			status = EXIT_VMP_FAILURE;
	}
	return status;
}

int query_down(const struct options *o) { return o->all ? take_all_down(o) : take_down(o); }

int query_cpu_move(const struct options *o)
{
	return ask(o, CLIENT_QUERY, change_start_move, NULL);
}

int query_host(const struct options *o)
{
	return ask(o, CLIENT_QUERY, change_start_host, NULL);
}

int query_policy(const struct options *o)
{
	return ask(o, CLIENT_QUERY, change_start_policy, NULL);
}
