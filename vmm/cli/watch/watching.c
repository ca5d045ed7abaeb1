/* watching.c - see watching.h. */
#include "vmm/cli/watch/watching.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/limits.h"
#include "base/log.h"

enum { ANSWER_LIMIT_S = 10, RETRY_MS = 100, RETRIES = 600 };

void watch_end(struct watch *w, int status, const char *line)
{
	if (w->done)
		return;
	w->done = true;
	w->status = status;
	problem(&w->why, "%s", line);
	event_base_loopbreak(w->base);
}

/* Ctrl-C is how a person ends a command that has no other end. */
static void on_signal(evutil_socket_t signal_number, short events, void *context)
{
	(void)events;
	watch_end(context, signal_number == SIGINT ? 0 : 128 + signal_number, "");
}

static void on_limit(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events;
	watch_end(context, EXIT_VMP_FAILURE, "the machine does not answer");
}

/* Connects to a machine whose connection broke.  Its run folder is there as long as it may come
 * back. */
static void on_retry(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval pause = { 0, RETRY_MS * 1000 };
	struct watch *w = context;
	struct machine_info now;
	struct rundir ignored;
	struct problem p;

	(void)fd, (void)events;
	if (!rundir_read_info(&w->rundir, &now, &p) && now.elsewhere[0]) {
		problem(&p, "the machine goes on on %s", now.elsewhere);
		watch_end(w, EXIT_VMP_FAILURE, p.line);
		return;
	}
	if (++w->tries == RETRIES || rundir_find(&ignored, w->rundir.name, &p)) {
		w->machine_ended = true;
		watch_end(w, 0, "");
		return;
	}
	if (sampler_open(&w->sampler, w->base))
		event_add(w->retry, &pause);
	else
		w->tries = 0;
}

static void on_lost(void *context, const char *why)
{
	struct watch *w = (struct watch *)((char *)context - offsetof(struct watch, sampler));

	if (why[0])
		watch_end(w, EXIT_VMP_FAILURE, why);
	else
		on_retry(-1, 0, w);
}

static int make_events(struct watch *w)
{
	static const int quitting[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const struct timeval limit = { ANSWER_LIMIT_S, 0 };

	w->base = client_new_loop();
	if (!w->base)
		return problem(&w->why, "no memory");
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(quitting); i++) {
		w->signals[i] = evsignal_new(w->base, quitting[i], on_signal, w);
		if (!w->signals[i] || event_add(w->signals[i], NULL))
			return problem(&w->why, "no memory");
	}
	w->retry = evtimer_new(w->base, on_retry, w);
	w->limit = evtimer_new(w->base, on_limit, w);
	if (!w->retry || !w->limit || event_add(w->limit, &limit))
		return problem(&w->why, "no memory");
	return 0;
}

int watch_open(struct watch *w, const struct options *o)
{
	int error;

	*w = (struct watch){ .o = o };
	w->sampler.client.fd = -1;
	if (rundir_find(&w->rundir, o->name, &w->why) ||
	    rundir_read_info(&w->rundir, &w->info, &w->why))
		return -1;
	if (w->info.elsewhere[0])
		return problem(&w->why, "the machine %s goes on on %s", w->rundir.name,
			       w->info.elsewhere);
	if (make_events(w))
		return -1;
	w->sampler.rundir = w->rundir.path;
	w->sampler.on_lost = on_lost;
	w->sampler.context = &w->sampler;
	error = sampler_open(&w->sampler, w->base);
	if (error)
		return problem(&w->why, "cannot connect to the machine %s: %s", w->rundir.name,
			       strerror(-error));
	return 0;
}

void watch_is_answered(struct watch *w) { event_del(w->limit); }

int watch_close(struct watch *w)
{
	struct event *events[] = { w->signals[0], w->signals[1], w->signals[2], w->signals[3],
				   w->retry, w->limit };

	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	sampler_close(&w->sampler);
	pageheat_free(&w->sampler.now.report.heat);
	if (w->base)
		event_base_free(w->base);
	if (!w->why.line[0])
		return w->status;
	log_error("%s", w->why.line);
	return w->status ? w->status : EXIT_VMP_FAILURE;
}
