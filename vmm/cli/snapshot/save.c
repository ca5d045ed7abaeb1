/* save.c - `vmp snapshot save FILE`: asks the machine for a cut (freeze.h), pulls what its hosts
 * hold (pull.h), and writes it.
 *
 * The machine runs on while the file is written.  Hosts send only what was asked for, so that a
 * slow disk fills no queue.  If anything fails, the machine is as it was and there is no file.
 */
#include "vmm/cli/snapshot/save.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/dispatch.h"
#include "base/log.h"
#include "vmm/cli/client.h"
#include "vmm/cli/cluster/host_names.h"
#include "vmm/cli/rundir.h"
#include "vmm/cli/snapshot/pull.h"
#include "vmm/cli/snapshot/savefile.h"

enum { SILENCE_S = 60, PROGRESS_NS = 200000000 };

struct save {
	const struct options *o;
	struct event_base *base;
	struct client client;
	struct rundir rundir;
	struct machine_info info;
	struct pull pull;
	struct event *limit, *signals[4];
	struct savefile to;
	uint64_t began_ns, shown_ns;
	bool shown, done;
	int status;
	struct problem why;
};

static void end_save(struct save *s, int status, const char *line)
{
	if (s->done)
		return;
	s->done = true;
	s->status = status;
	problem(&s->why, "%s", line);
	event_base_loopbreak(s->base);
}

static void on_signal(evutil_socket_t signal_number, short events, void *context)
{
	(void)events;
	end_save(context, 128 + signal_number, "");
}

static void on_limit(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events;
	end_save(context, EXIT_VMP_FAILURE, "the machine does not answer");
}

static void on_closed(void *context)
{
	struct save *s = context;
	struct machine_info now;
	struct problem p;
	bool yields = !rundir_read_info(&s->rundir, &now, &p) &&
		      (now.yields || now.yielded != s->info.yielded);

	if (s->client.wrong[0])
		return end_save(s, EXIT_VMP_FAILURE, s->client.wrong);
	end_save(s, EXIT_VMP_FAILURE, yields ?
		 "host 0 has gone meanwhile, and the machine comes back without it; nothing was "
		 "saved: ask again" : "the machine has ended; nothing was saved");
}

static void show_progress(struct save *s)
{
	uint64_t now = clock_now_ns();

	if (!isatty(2) || now - s->shown_ns < PROGRESS_NS)
		return;
	s->shown_ns = now;
	s->shown = true;
	dprintf(2, "\r\033[Kvmp: %llu MiB of at most %u MiB saved",
		(unsigned long long)snapfile_raw_bytes(s->to.file) >> 20,
		s->to.machine.was.mem_mib);
}

static int keep(void *context, const struct snapfile_record *record, const void *data,
		struct problem *p)
{
	struct save *s = context;

	if (savefile_add(&s->to, record, data, p))
		return -1;
	show_progress(s);
	return 0;
}

static void on_done(void *context) { end_save(context, 0, ""); }

static void on_failed(void *context, const char *line, bool nothing_happened)
{
	(void)nothing_happened;
	end_save(context, EXIT_VMP_FAILURE, line);
}

/* Shows what the snapshot waits for: a host that is added or removed, or another snapshot. */
static void on_waits(void *context, const char *line)
{
	struct save *s = context;
	struct host_names names;
	struct problem explained;

	if (!isatty(2))
		return;
	names_read(&names, s->rundir.path);
	names_explain(&names, line, explained.line, sizeof explained.line);
	s->shown = dprintf(2, "\r\033[Kvmp: %s", explained.line) > 0;
}

#define NODE_TO_SAVE(name, how, handler) HANDLER_##how(struct save *s, name, handler)
#include "base/msg.def"

void save_on_item(struct save *s, const struct message *m, const struct msg_snapshot_item *item)
{
	static const struct timeval limit = { SILENCE_S, 0 };

	(void)item;
	if (s->done)
		return;
	event_add(s->limit, &limit);
	pull_on_item(&s->pull, m->body, m->header.bytes);
}

/* The hosts stay the same while the machine is saved. */
void save_on_hosts(struct save *s, const struct message *m, const struct msg_hosts *hosts)
{
	(void)m;
	s->pull.hosts = hosts->present;
}

void save_on_machine_end(struct save *s, const struct message *m, const struct msg_machine_end *end)
{
	(void)m, (void)end;
	on_closed(s);
}

static bool dispatch(struct save *s, const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_SAVE(name, how, handler) SERVE_##how(s, m, name, handler)
#include "base/msg.def"
	}
	return false;
}

static void on_message(void *context, const struct message *m)
{
	/* client.c has refused messages that this client may not receive */
	bug_on(!dispatch(context, m));
}

static int prepare(struct save *s)
{
	static const int quitting[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const struct timeval limit = { SILENCE_S, 0 };
	int error;

	if (rundir_find(&s->rundir, s->o->name, &s->why) ||
	    rundir_read_info(&s->rundir, &s->info, &s->why))
		return -1;
	signal(SIGPIPE, SIG_IGN);
	/* so that a file beyond the limit is an error, like a full disk */
	signal(SIGXFSZ, SIG_IGN);
	/* Open the file first: if it cannot be written, the machine need not stop. */
	if (savefile_begin(&s->to, s->o->file, &s->why))
		return -1;
	s->base = client_new_loop();
	if (!s->base)
		return problem(&s->why, "no memory");
	for (size_t i = 0; i < ARRAY_LEN(quitting); i++) {
		s->signals[i] = evsignal_new(s->base, quitting[i], on_signal, s);
		if (!s->signals[i] || event_add(s->signals[i], NULL))
			return problem(&s->why, "no memory");
	}
	s->limit = evtimer_new(s->base, on_limit, s);
	if (!s->limit || event_add(s->limit, &limit))
		return problem(&s->why, "no memory");
	error = client_connect(&s->client, s->base, s->rundir.path, CLIENT_QUERY);
	if (error)
		return problem(&s->why, "cannot connect to the machine %s: %s", s->rundir.name,
			       strerror(-error));
	return 0;
}

static void report(const struct save *s, uint64_t file_bytes)
{
	double seconds = (clock_now_ns() - s->began_ns) / 1e9;

	printf("%s: saved in %s: %.1f MiB of memory as %.1f MiB in %.2f s; the machine stood still "
	       "for %.1f ms\n",
	       s->rundir.name, s->o->file, s->to.machine.pages / 256.0, file_bytes / 1048576.0,
	       seconds, s->to.machine.machine.pause_ns / 1e6);
}

static void finish(struct save *s)
{
	uint64_t file_bytes = snapfile_file_bytes(s->to.file);

	pull_stop(&s->pull);
	client_flush(&s->client, 100);
	if (s->shown && write(2, "\r\033[K", 4) < 0) {
		/* if the terminal is gone, nothing needs cleaning */
	}
	if (!s->status && savefile_commit(&s->to, &s->why))
		s->status = EXIT_VMP_FAILURE;
	if (!s->status)
		report(s, file_bytes);
}

static void free_save(struct save *s)
{
	struct event *events[] = { s->limit, s->signals[0], s->signals[1], s->signals[2],
				   s->signals[3] };

	savefile_abandon(&s->to);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	client_close(&s->client);
	if (s->base)
		event_base_free(s->base);
}

int save_machine(const struct options *o)
{
	static struct save s;

	s = (struct save){ .o = o, .began_ns = clock_now_ns(), .status = EXIT_VMP_FAILURE };
	s.client = (struct client){ .fd = -1,
				    .context = &s,
				    .link = LINK_NODE_TO_SAVE,
				    .on_message = on_message,
				    .on_closed = on_closed };
	s.pull = (struct pull){ .client = &s.client,
				.kernel = s.info.kernel,
				.context = &s,
				.waits = on_waits,
				.keep = keep,
				.done = on_done,
				.failed = on_failed };
	if (!prepare(&s)) {
		pull_start(&s.pull, SNAPSHOT_APART);
		event_base_dispatch(s.base);
		finish(&s);
	}
	free_save(&s);
	if (s.why.line[0])
		log_error("%s", s.why.line);
	return s.status;
}
