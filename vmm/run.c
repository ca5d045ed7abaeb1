/* run.c - `vmp run`, and the keeper of `vmp up`, in the order of what happens: checks, archive, run folder, daemons, loop, end.
 *
 * The loop has three phases: connecting (the daemons come up), running, and ending (output is written out, statistics
 * are fetched).  Whatever ends the machine first decides the status and the line; see end_with().
 */
#include "vmm/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/checks.h"
#include "vmm/client.h"
#include "vmm/cluster/cluster.h"
#include "vmm/gdb/server.h"
#include "vmm/guestprog.h"
#include "vmm/hostcpu.h"
#include "vmm/launch.h"
#include "vmm/snapshot/load.h"
#include "vmm/placement.h"
#include "vmm/dumptext.h"
#include "vmm/report.h"
#include "vmm/rundir.h"
#include "vmm/snapshot/checkpoint.h"
#include "vmm/streams.h"
#include "vmm/terminal.h"

enum {
	CONNECT_RETRY_MS = 5,
	CONNECT_LIMIT_MS = 10000,
	PROGRESS_MS = 2000,	/* work that takes longer than this shows that it goes on */
	END_LIMIT_MS = 3000,	/* for the last output and the statistics, once the machine has ended */
	GRACE_MS = 1000,	/* for the daemons to end by themselves */
	LOG_LINE = 1024,
};

struct run {
	const struct options *o;
	struct event_base *base;
	struct client client;
	struct launch launch;
	struct launch_plan plan; /* for hosts that come */
	struct cluster cluster;	 /* with --cluster */
	unsigned adding;	 /* the host that comes, of a cluster; 0: none */
	uint32_t joins;		 /* bit set: those that it joins */
	uint32_t hosts;		 /* bit set of those that there are */
	struct rundir rundir;
	struct report report;
	struct load load;
	struct checkpoint checkpoint;
	struct {
		uint32_t lost;	   /* bit set of hosts, as far as the machine's daemons have said */
		uint64_t since_ns; /* 0: the machine does not go back just now */
		struct problem said /* of the loss, by a daemon */, why;
	} back;
	struct gdbserver gdb;
	bool loads;		/* `vmp snapshot load`, or the machine has gone back to a checkpoint */
	bool attached;		/* the console and the streams flow */
	uint32_t input_room, input_taken; /* what its stream device has room for, and what it had got */
	struct options loaded;	/* the options, with what the snapshot's or the cluster's file says */
	char disk[4200];
	struct stream_in in;
	struct stream_out out, err;
	struct escape escape;
	struct event *retry, *tick, *typed, *limit, *death, *starter;
	struct event *signals[8];
	uint64_t start_ns, connect_ns; /* the machine's beginning; of the last start of daemons */
	const char *kernel;	/* the file */
	int log_fd, archive_fd;
	bool interactive, raw, connected;
	bool held;		/* the machine waits for a debugger */
	bool background;	/* `vmp up`: standard error is its socket until userland is there; see up.c */
	bool progress_shown, output_seen;
	bool ended;		/* the status is decided */
	bool report_asked;
	bool forced;		/* no more waiting for output */
	int status;
	struct problem why;	/* empty: nothing to say */
};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void hide_progress(struct run *run)
{
	if (run->progress_shown && write(2, "\r\033[K", 4) < 0) {
		/* a terminal that is gone needs no cleaning */
	}
	run->progress_shown = false;
}

/* The end, step by step; called again whenever something that it waits for has happened. */
static void proceed_to_end(struct run *run)
{
	bool wants_report = run->o->stats || run->o->summary;

	if (!run->ended)
		return;
	if (!run->forced && !run->interactive && !(stream_out_drained(&run->out) && stream_out_drained(&run->err)))
		return;
	if (!run->forced && wants_report && !run->why.line[0] && run->connected) {
		if (!run->report_asked)
			report_ask(&run->report, &run->client, run->hosts);
		run->report_asked = true;
		if (!report_is_complete(&run->report))
			return;
	}
	event_base_loopbreak(run->base);
}

static void on_limit(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;

	(void)fd, (void)events;
	run->forced = true;
	proceed_to_end(run);
}

/* What the guest had a hand in does not get control of the terminal, nor a second line. */
static void make_printable(char *line)
{
	line[strcspn(line, "\r\n")] = 0;
	for (; *line; line++)
		if ((unsigned char)*line < ' ' || *line == 0x7f)
			*line = '?';
}

/* The first end wins. `line` may be empty; status 125 always comes with one. */
static void end_with(struct run *run, int status, const char *line)
{
	static const struct timeval limit = { END_LIMIT_MS / 1000, 0 };

	if (run->ended)
		return;
	run->ended = true;
	run->status = status;
	names_explain(&run->cluster.names, line, run->why.line, sizeof run->why.line);
	make_printable(run->why.line);
	checkpoint_stop(&run->checkpoint);
	stream_out_release(&run->out);
	stream_out_release(&run->err);
	event_add(run->limit, &limit);
	proceed_to_end(run);
}

static void on_signal(evutil_socket_t signal_number, short events, void *context)
{
	struct run *run = context;

	(void)events;
	run->forced = true;
	end_with(run, 128 + signal_number, "");
	event_base_loopbreak(run->base);
}

/* A daemon has died, or closed the connection. Node 0 may be about to say why, in better words than ours. */
static const struct timeval death_pause = { 0, 100000 };

static bool go_back(struct run *run, const char *why);

static void on_death(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;
	struct problem p;

	(void)fd, (void)events;
	launch_reap(&run->launch);
	launch_describe(&run->launch, &p);
	if (go_back(run, p.line))
		return;
	run->forced |= !run->connected;
	end_with(run, EXIT_VMP_FAILURE, p.line);
	proceed_to_end(run);
}

static void answer_host(struct run *run, uint32_t host, enum host_op op, int error, const char *line)
{
	struct msg_host answer = { .host = host, .op = op, .error = error };

	client_send(&run->client, MSG_HOST, VNODE_CLI, &answer, sizeof answer, line, strlen(line));
}

/* Daemons that are no part of the machine, yet or any more, and have ended. */
static void tell_ends(struct run *run)
{
	struct problem p;
	int host;

	while ((host = launch_take_loose(&run->launch, &p)) >= 0) {
		answer_host(run, host, HOST_ENDED, 0, p.line);
		if (run->o->cluster)
			cluster_forget(&run->cluster, (unsigned)host);
	}
}

/* --- hosts that are other computers --------------------------------------------------------------------------------- */

static void tell_where(struct run *run, unsigned host)
{
	char where[256];

	if (run->connected && *cluster_where(&run->cluster, host, where, sizeof where))
		answer_host(run, host, HOST_AT, 0, where);
}

static void refuse_host(struct run *run, unsigned host, const char *why)
{
	answer_host(run, host, HOST_LAUNCHED, EAGAIN, why);
	cluster_forget(&run->cluster, host);
	run->adding = 0;
}

/* A host that is added is prepared, runs, or has failed; or one that runs says where it listens. */
static void on_cluster_changed(void *context, unsigned host)
{
	struct run *run = context;
	const struct far *far = &run->cluster.far[host];
	bool is_new = run->adding == host;
	struct problem p;

	if (run->ended)
		return;
	if (is_new && far->state == FAR_OVER && !run->launch.node[host]) {
		refuse_host(run, host, far->why);
	} else if (is_new && far->state == FAR_READY) {
		if (cluster_admit(&run->cluster, host, &p) || launch_add(&run->launch, &run->plan, host, run->joins, &p))
			refuse_host(run, host, p.line);
	} else if (far->state == FAR_RUNS) {
		tell_where(run, host);
		if (is_new)
			answer_host(run, host, HOST_LAUNCHED, 0, "");
		run->adding = is_new ? 0 : run->adding;
	}
}

/* `name`: "" for a daemon on this computer. 0: it is there, or will be heard of again. */
static int add_host(struct run *run, const struct msg_host *host, const char *name, struct problem *p)
{
	if (!run->o->cluster && *name)
		return problem(p, "this machine was not started with --cluster: vmp host add without a name adds a host on this computer");
	if (!run->o->cluster)
		return launch_add(&run->launch, &run->plan, host->host, host->nodes, p);
	run->joins = host->nodes;
	if (cluster_add(&run->cluster, host->host, name, p))
		return -1;
	run->adding = host->host;
	return 0;
}

/* Until all are there, or one is not, or somebody has had enough. */
static int prepare_cluster(struct run *run, struct problem *p)
{
	static const struct timeval first_tick = { PROGRESS_MS / 1000, 0 };
	struct cluster *c = &run->cluster;

	c->base = run->base;
	c->changed = on_cluster_changed;
	c->context = run;
	c->rundir = run->rundir.path;
	c->log_fd = run->log_fd;
	run->launch.cluster = c;
	if (isatty(2))
		event_add(run->tick, &first_tick);
	if (cluster_prepare(c, run->o->hosts, p))
		return -1;
	while (!run->ended && !cluster_settled(c))
		event_base_loop(run->base, EVLOOP_ONCE);
	hide_progress(run);
	event_del(run->tick);
	return run->ended ? 0 : cluster_agree(c, p);
}

/* Node 0 leads when hosts come and go (vmm/hosts.h); this process is the daemons' parent. */
static void on_host(struct run *run, const void *body, size_t bytes)
{
	struct msg_host host;
	struct problem p = { "" };
	char name[MAX_HOST_NAME];
	int error;

	memcpy(&host, body, sizeof host);
	if (host.host >= MAX_NODES || run->ended)
		return;
	switch (host.op) {
	case HOST_LAUNCH:
		snprintf(name, sizeof name, "%.*s", (int)(bytes - sizeof host), (const char *)body + sizeof host);
		error = add_host(run, &host, name, &p);
		if (error || !run->o->cluster)
			answer_host(run, host.host, HOST_LAUNCHED, error ? EAGAIN : 0, p.line);
		break;
	case HOST_INCLUDED:
		run->launch.loose &= ~(1u << host.host);
		break;
	case HOST_RETIRE:
		launch_let_go(&run->launch, host.host, host.error);
		answer_host(run, host.host, HOST_RETIRED, 0, "");
		break;
	}
	launch_reap(&run->launch);
	tell_ends(run);
}

static void on_hosts(struct run *run, const void *body)
{
	struct msg_hosts hosts;

	memcpy(&hosts, body, sizeof hosts);
	run->hosts = hosts.present;
	checkpoint_hosts(&run->checkpoint, hosts.present);
	report_keep_hosts(&run->report, hosts.present);
	proceed_to_end(run);
}

static void on_child(evutil_socket_t signal_number, short events, void *context)
{
	struct run *run = context;

	(void)signal_number, (void)events;
	if (launch_reap(&run->launch))
		event_add(run->death, &death_pause);
	tell_ends(run);
}

static void on_window_changed(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;
	struct msg_console_size size = { 0 };

	(void)fd, (void)events;
	terminal_size(&size.columns, &size.rows);
	if (run->connected && size.columns)
		client_send(&run->client, MSG_CONSOLE_SIZE, VNODE_IOSRV, &size, sizeof size, NULL, 0);
}

static void on_timeout(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;
	struct problem p;

	(void)fd, (void)events;
	run->forced = true;
	problem(&p, "the command did not end within %u s (--timeout)", run->o->timeout_s);
	end_with(run, EXIT_VMP_FAILURE, p.line);
}

/* Background: the `vmp up` that waits for userland is gone. */
static void on_starter_gone(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;

	(void)fd, (void)events;
	run->forced = true;
	end_with(run, EXIT_VMP_FAILURE, "vmp up did not wait");
}

/* Background: userland is there. From here on the machine lives without its starter. */
static void on_machine_up(struct run *run)
{
	if (!run->starter)
		return;
	event_free(run->starter);
	run->starter = NULL;
	dprintf(2, "%c%s: %u processors on %u host%s, up after %.1f s\n", 0, run->rundir.name, run->o->cpus, run->o->hosts,
		run->o->hosts > 1 ? "s" : "", (now_ns() - run->start_ns) / 1e9);
	dup2(run->log_fd, 2);
}

/* On a terminal, after a while without a sign of life from the guest: one line that is redrawn. */
static void on_tick(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;
	static const struct timeval second = { 1, 0 };
	char doing[200];

	(void)fd, (void)events;
	if (run->output_seen || run->ended)
		return;
	if (*cluster_doing(&run->cluster, doing, sizeof doing))
		dprintf(2, "\r\033[Kvmp: %s, %u s", doing, (unsigned)((now_ns() - run->start_ns) / 1000000000));
	else
		dprintf(2, "\r\033[Kvmp: %u processors on %u host%s: waiting for the first output, %u s", run->o->cpus,
		run->o->hosts, run->o->hosts > 1 ? "s" : "", (unsigned)((now_ns() - run->start_ns) / 1000000000));
	run->progress_shown = true;
	event_add(run->tick, &second);
}

static void see_output(struct run *run)
{
	run->output_seen = true;
	hide_progress(run);
}

/* The shell's console: what is typed goes there until the escape. */
static void on_typed(evutil_socket_t fd, short events, void *context)
{
	struct run *run = context;
	struct msg_console body = { 0 };
	char typed[256], bytes[512];
	ssize_t n = read(fd, typed, sizeof typed);
	size_t count;
	bool quit = false;

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* the end of a script: what Ctrl-D says to a shell */
		event_del(run->typed);
		client_send(&run->client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body, "\004", 1);
		return;
	}
	count = run->raw ? escape_filter(&run->escape, typed, n, bytes, &quit) : (size_t)n;
	client_send(&run->client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body, run->raw ? bytes : typed, count);
	if (quit)
		end_with(run, 0, "");
}

static void write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* a log on a full disk does not stop the machine */
		bytes += done;
		n -= done;
	}
}

static void on_stream(struct run *run, const void *body, size_t bytes)
{
	struct msg_stream stream;
	size_t n = bytes - sizeof stream;
	const char *data = (const char *)body + sizeof stream;

	memcpy(&stream, body, sizeof stream);
	if (n)
		see_output(run);
	if (stream.stream == 0 && stream.eof) /* the guest reads no more */
		stream_in_stop(&run->in);
	else if ((stream.stream != 1 && stream.stream != 2) ||
		 !stream_out_take(stream.stream == 1 ? &run->out : &run->err, data, n))
		end_with(run, EXIT_VMP_FAILURE, "the I/O server broke the rules of the streams; this is a bug in vmp");
}

static void on_console(struct run *run, const void *body, size_t bytes)
{
	size_t skip = sizeof(struct msg_console);

	if (run->interactive)
		write_all(1, (const char *)body + skip, bytes - skip);
	else if (run->log_fd >= 0)
		write_all(run->log_fd, (const char *)body + skip, bytes - skip);
}

/* What a monitor says of a guest that died goes to the log, or else to standard error. */
static void report_death(struct run *run, const char *text, int bytes)
{
	char *state = strndup(text, bytes);
	struct symbols symbols;
	char *report = NULL;
	size_t report_bytes;
	FILE *out = open_memstream(&report, &report_bytes);

	if (!state || !out)
		die("no memory");
	symbols_load(&symbols, run->kernel);
	dump_print(out, state, &symbols);
	fclose(out);
	hide_progress(run);
	write_all(run->o->log || run->o->verbose ? run->log_fd : 2, report, report_bytes);
	symbols_free(&symbols);
	free(report);
	free(state);
}

static void on_log(struct run *run, const void *body, size_t bytes)
{
	struct msg_log log;
	char line[LOG_LINE], cpu[16] = "";
	const char *data = (const char *)body + sizeof log;
	int n, text = bytes - sizeof log;

	memcpy(&log, body, sizeof log);
	if (log.level == LOG_ERROR) {
		report_death(run, data, text);
		return;
	}
	if (run->log_fd < 0)
		return;
	if (log.cpu != ~0u)
		snprintf(cpu, sizeof cpu, " cpu %u", log.cpu);
	while (text && data[text - 1] == '\n')
		text--;
	n = snprintf(line, sizeof line, "node %u%s: %.*s\n", log.node, cpu, text, data);
	write_all(run->log_fd, line, n < (int)sizeof line ? n : (int)sizeof line - 1);
}

static void on_machine_end(struct run *run, const void *body, size_t bytes)
{
	struct msg_machine_end end;
	struct problem p;
	int text = bytes - sizeof end;

	memcpy(&end, body, sizeof end);
	if (end.reason == END_PART_DIED && run->o->checkpoint_ms && !run->ended) {
		/* whoever has died with it is known in a moment */
		run->back.lost |= 1u << ((end.lost ? end.lost - 1 : end.node) % MAX_NODES);
		problem(&run->back.said, "%.*s", text, (const char *)body + sizeof end);
		event_add(run->death, &death_pause);
	} else if (end.reason == END_COMMAND) {
		end_with(run, end.status & 0xff, "");
	} else if (end.reason == END_POWEROFF && (run->interactive || (run->background && !run->starter))) {
		end_with(run, 0, "");
	} else if (end.reason == END_POWEROFF) {
		end_with(run, EXIT_VMP_FAILURE, "the guest was switched off before the command ended");
	} else {
		problem(&p, "%.*s", text, (const char *)body + sizeof end);
		end_with(run, EXIT_VMP_FAILURE, text ? p.line : "the machine ended without saying why; try --log FILE");
	}
}

static void on_snapshot(struct run *run, const void *body)
{
	struct msg_snapshot snapshot;

	memcpy(&snapshot, body, sizeof snapshot);
	if (!run->loads || run->ended)
		return;
	if (snapshot.step == SNAPSHOT_READY)
		load_start(&run->load, &run->client, run->plan.hosts);
	else if (snapshot.step == SNAPSHOT_TAKEN)
		load_taken(&run->load);
}

static void on_gdb_kill(void *context)
{
	end_with(context, EXIT_VMP_FAILURE, "the machine was ended by the debugger's kill");
}

static void on_input_room(struct run *run, const struct msg_stream_room *room)
{
	if (room->stream)
		return;
	if (run->attached) {
		stream_in_room(&run->in, room->bytes);
	} else {
		run->input_room += room->bytes;
		run->input_taken = room->taken;
	}
}

static void on_message(void *context, const struct msg_header *header, const void *body)
{
	struct run *run = context;
	struct msg_command_exit command_exit;
	struct msg_stream_room room;

	switch (header->type) {
	case MSG_HELLO:
		break;
	case MSG_STREAM:
		on_stream(run, body, header->bytes);
		break;
	case MSG_STREAM_ROOM:
		memcpy(&room, body, sizeof room);
		on_input_room(run, &room);
		break;
	case MSG_SNAPSHOT_ITEM:
		checkpoint_on_item(&run->checkpoint, body, header->bytes);
		break;
	case MSG_CONSOLE:
		on_console(run, body, header->bytes);
		break;
	case MSG_LOG:
		on_log(run, body, header->bytes);
		break;
	case MSG_MACHINE_UP:
		on_machine_up(run);
		break;
	case MSG_COMMAND_EXIT:
		memcpy(&command_exit, body, sizeof command_exit);
		end_with(run, command_exit.status & 0xff, "");
		break;
	case MSG_MACHINE_END:
		on_machine_end(run, body, header->bytes);
		break;
	case MSG_SNAPSHOT:
		on_snapshot(run, body);
		break;
	case MSG_HOST:
		on_host(run, body, header->bytes);
		break;
	case MSG_HOSTS:
		on_hosts(run, body);
		break;
	case MSG_DEBUG_ANSWER:
		if (run->gdb.fd >= 0)
			gdbserver_on_answer(&run->gdb, body, header->bytes);
		break;
	case MSG_STATS:
		report_on_stats(&run->report, body, header->bytes);
		proceed_to_end(run);
		break;
	case MSG_PAGES:
		report_on_pages(&run->report, body, header->bytes);
		proceed_to_end(run);
		break;
	default:
		log_warn("unexpected message %s from the node daemon", wire_type_name(header->type));
	}
}

static void on_closed(void *context)
{
	struct run *run = context;

	run->connected = false;
	run->forced |= run->ended;
	if (run->ended)
		proceed_to_end(run);
	else
		event_add(run->death, &death_pause);
}

static void on_drained(void *context)
{
	proceed_to_end(context);
}

static void attach_streams(struct run *run)
{
	if (run->in.client) {
		stream_in_again(&run->in, run->input_taken, run->input_room);
		stream_out_again(&run->out);
		stream_out_again(&run->err);
	} else if (stream_in_start(&run->in, &run->client, run->loads ? run->input_room : STREAM_WINDOW)) {
		die("no memory");
	}
}

/* The machine is there: attach the console, let the streams flow. What the console has said before a machine went back is known. */
static void attach(struct run *run)
{
	struct msg_console_attach attach = { .client = 0, .backlog = run->back.since_ns ? 0 : 1 << 20 };

	client_send(&run->client, MSG_CONSOLE_ATTACH, VNODE_IOSRV, &attach, sizeof attach, NULL, 0);
	on_window_changed(0, 0, run);
	run->attached = true;
	if (!run->interactive)
		attach_streams(run);
	else if (!run->typed)
		run->typed = event_new(run->base, 0, EV_READ | EV_PERSIST, on_typed, run);
	if (run->interactive && (!run->typed || event_add(run->typed, NULL)))
		die("no memory");
	checkpoint_go(&run->checkpoint, &run->client, run->kernel);
}

/* The daemon answers. A machine that is loaded is not there before its devices are. */
static void on_connected(struct run *run)
{
	run->connected = true;
	for (unsigned host = 1; host < MAX_NODES; host++)
		tell_where(run, host);
	if (!run->loads)
		attach(run);
}

/* One line, on the terminal of the machine or in its log. */
static void report_back(struct run *run)
{
	hide_progress(run);
	dprintf(2, "%svmp: %s: the machine went back %.1f s, to its last checkpoint, and goes on on %u host%s after %.1f s%s\n",
		run->raw ? "\r\n" : "", run->back.why.line, (run->back.since_ns - run->checkpoint.kept_cut_ns) / 1e9, run->plan.hosts,
		run->plan.hosts > 1 ? "s" : "", (now_ns() - run->back.since_ns) / 1e9, run->raw ? "\r" : "");
}

static void on_loaded(void *context)
{
	struct run *run = context;

	attach(run);
	if (run->back.since_ns)
		report_back(run);
	run->back.since_ns = 0;
}

static void on_load_failed(void *context, const char *line)
{
	end_with(context, EXIT_VMP_FAILURE, line);
}

static void on_retry(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval pause = { 0, CONNECT_RETRY_MS * 1000 };
	struct run *run = context;
	int error = client_connect(&run->client, run->base, run->rundir.path, CLIENT_RUN);

	(void)fd, (void)events;
	if (!error)
		on_connected(run);
	else if ((error != -ENOENT && error != -ECONNREFUSED) || now_ns() - run->connect_ns > CONNECT_LIMIT_MS * 1000000ull)
		end_with(run, EXIT_VMP_FAILURE, "node daemon 0 does not open its control socket; try --log FILE");
	else
		event_add(run->retry, &pause);
}

static void on_checkpoint_begins(void *context)
{
	struct run *run = context;

	stream_in_mark(&run->in);
}

static void on_checkpoint_cut(void *context)
{
	struct run *run = context;

	stream_out_mark(&run->out);
	stream_out_mark(&run->err);
}

static void on_checkpoint_kept(void *context)
{
	struct run *run = context;

	stream_in_kept(&run->in);
	stream_out_kept(&run->out);
	stream_out_kept(&run->err);
}

static void on_checkpoint_trouble(void *context, const char *line)
{
	struct run *run = context;

	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: no checkpoint: %s\n", line);
}

static void on_much_output(void *context)
{
	struct run *run = context;

	checkpoint_soon(&run->checkpoint);
}

static int make_checkpoints(struct run *run)
{
	struct checkpoint *c = &run->checkpoint;

	if (!run->o->checkpoint_ms)
		return 0;
	c->context = run;
	c->on_begin = on_checkpoint_begins;
	c->on_cut = on_checkpoint_cut;
	c->on_kept = on_checkpoint_kept;
	c->on_trouble = on_checkpoint_trouble;
	run->in.keeps = run->out.holds = run->err.holds = true;
	run->out.on_much = run->err.on_much = on_much_output;
	run->load.context = run;
	run->load.on_loaded = on_loaded;
	run->load.on_failed = on_load_failed;
	return checkpoint_start(c, run->base, run->o->checkpoint_ms);
}

/* All events exist before the daemons do: from here on, every end goes through the loop. */
static int make_events(struct run *run, struct problem *p)
{
	static const int quitting[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	size_t n = 0;

	run->base = client_new_loop();
	if (!run->base)
		return problem(p, "no memory");
	run->client = (struct client){ .base = run->base, .fd = -1, .context = run, .on_message = on_message,
				       .on_closed = on_closed };
	for (size_t i = 0; i < ARRAY_LEN(quitting); i++)
		run->signals[n++] = evsignal_new(run->base, quitting[i], on_signal, run);
	run->signals[n++] = evsignal_new(run->base, SIGCHLD, on_child, run);
	run->signals[n++] = evsignal_new(run->base, SIGWINCH, on_window_changed, run);
	for (size_t i = 0; i < n; i++)
		if (!run->signals[i] || event_add(run->signals[i], NULL))
			return problem(p, "no memory");
	run->retry = evtimer_new(run->base, on_retry, run);
	run->tick = evtimer_new(run->base, on_tick, run);
	run->limit = evtimer_new(run->base, on_limit, run);
	run->death = evtimer_new(run->base, on_death, run);
	run->gdb.on_kill = on_gdb_kill;
	run->gdb.context = run;
	if (run->gdb.fd >= 0 && gdbserver_start(&run->gdb, run->base, &run->client, run->o->cpus, run->held))
		return problem(p, "no memory");
	if (run->background) {
		run->starter = event_new(run->base, 2, EV_READ, on_starter_gone, run);
		if (!run->starter || event_add(run->starter, NULL))
			return problem(p, "no memory");
	}
	if (!run->retry || !run->tick || !run->limit || !run->death || make_checkpoints(run) ||
	    stream_out_start(&run->out, &run->client, 1, 1) || stream_out_start(&run->err, &run->client, 2, 2))
		return problem(p, "no memory");
	run->out.on_drained = run->err.on_drained = on_drained;
	run->out.context = run->err.context = run;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	return 0;
}

static void free_events(struct run *run)
{
	load_close(&run->load);
	checkpoint_close(&run->checkpoint);

	struct event *events[] = { run->retry, run->tick, run->limit, run->death, run->typed, run->starter };

	for (size_t i = 0; i < ARRAY_LEN(run->signals); i++)
		if (run->signals[i])
			event_free(run->signals[i]);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	stream_in_free(&run->in);
	stream_out_stop(&run->out);
	stream_out_stop(&run->err);
	gdbserver_end(&run->gdb, run->status);
	client_close(&run->client);
	if (run->base)
		event_base_free(run->base);
}

static int open_log(struct run *run, struct problem *p)
{
	const char *path = run->o->log;

	if (!path && !run->o->verbose)
		run->log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	else if (!path || !strcmp(path, "-"))
		run->log_fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
	else
		run->log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (run->log_fd < 0)
		return problem(p, "cannot write the log %s: %s", path ? path : "", strerror(errno));
	if (!hostcpu_has_cpuid_faulting())
		dprintf(run->log_fd, "vmp: this processor cannot make CPUID trap: the guest's programs see the host's own CPUID; "
			"the guest kernel manages all the state that it names\n");
	return 0;
}

/* The guest kernel's command line; guest-patches/README.md says what each word is for. */
static int command_line(const struct run *run, char *line, size_t bytes, struct problem *p)
{
	bool quiet = !run->o->log && !run->o->verbose;
	/* The serial port costs two traps a byte: kernel messages go there only where somebody sees them. */
	/* Linux looks for six disks, a tenth of a second each; there is one at most. */
	int n = snprintf(line, bytes, "pata_legacy.probe_mask=%d%s%s%s%s%s", run->o->disk ? 1 : 0,
			 run->interactive || run->background ? " console=ttyS0" : "", quiet ? " loglevel=3" : "",
			 run->o->hosts == 1 ? " vmp_ahead=2" : "", run->o->append ? " " : "", run->o->append ? run->o->append : "");

	if (n >= MAX_CMDLINE)
		return problem(p, "--append: the kernel's command line would be longer than %d characters", MAX_CMDLINE - 1);
	return 0;
}

static bool runs_direct(const struct run *run) { return !strcmp(run->o->engine, "direct"); }

/* Two hosts may always become three. One is a case of its own, which costs less than one of several: what is started in the
 * background can grow, if this computer can have more than one. */
static bool can_grow(const struct run *run, const struct launch_plan *plan)
{
	struct problem ignored;

	return plan->hosts > 1 || run->o->checkpoint_ms || (run->background && !hostcpu_check(true, &ignored));
}

static void plan_cluster(struct run *run, struct launch_plan *plan)
{
	if (!run->o->cluster)
		return;
	plan->cluster = &run->cluster;
	cluster_file_place(&run->cluster.file, plan->hosts, plan->cpus, plan->place);
}

/* A saved machine does not name its engine: either loads what the other saved. */
static int start_saved(struct run *run, uint32_t hosts, struct problem *p)
{
	const struct saved_machine *saved = &run->load.saved;
	struct machine_info info = { run->o->cpus, hosts, run->o->mem_mib, getpid(), run->o->checkpoint_ms, "" };
	struct launch_plan plan = {
		.rundir = run->rundir.path, .hosts = hosts, .cpus = run->o->cpus, .mem_mib = run->o->mem_mib,
		.host_mem_mib = run->o->host_mem_mib,
		.log_fd = run->log_fd, .command_line = saved->command_line, .disk = run->o->disk, .verbose = run->o->verbose,
		.restore = true, .direct = runs_direct(run), .strict = run->o->strict, .hold = run->held,
	};

	run->kernel = run->kernel ? run->kernel : saved->kernel;
	snprintf(info.kernel, sizeof info.kernel, "%s", run->kernel);
	rundir_write_info(&run->rundir, &info);
	plan.grows = can_grow(run, &plan);
	plan_cluster(run, &plan);
	plan.policy = run->o->policy ? (enum policy)policy_of_name(run->o->policy) : POLICY_FIXED;
	run->plan = plan;
	run->plan.kernel = run->plan.image = run->plan.appended = run->plan.command_line = run->plan.disk = NULL;
	run->connect_ns = now_ns();
	return launch_start(&run->launch, &plan, p);
}

static int start_machine(struct run *run, const struct host_files *files, struct problem *p)
{
	struct machine_info info = { run->o->cpus, run->o->hosts, run->o->mem_mib, getpid(), run->o->checkpoint_ms, "" };
	char line[MAX_CMDLINE], archive[64];
	struct launch_plan plan = {
		.rundir = run->rundir.path, .hosts = run->o->hosts, .cpus = run->o->cpus, .mem_mib = run->o->mem_mib,
		.host_mem_mib = run->o->host_mem_mib,
		.log_fd = run->log_fd, .kernel = files->kernel, .image = files->image, .appended = archive,
		.command_line = line, .disk = run->o->disk, .verbose = run->o->verbose,
		.direct = runs_direct(run), .strict = run->o->strict, .hold = run->held,
	};

	/* The daemon opens our memory file by this name: nothing is left behind, whoever dies. */
	snprintf(archive, sizeof archive, "/proc/%d/fd/%d", getpid(), run->archive_fd);
	if (command_line(run, line, sizeof line, p))
		return -1;
	run->kernel = files->kernel;
	snprintf(info.kernel, sizeof info.kernel, "%s", run->kernel);
	rundir_write_info(&run->rundir, &info);
	plan.grows = can_grow(run, &plan);
	plan_cluster(run, &plan);
	plan.policy = run->o->policy ? (enum policy)policy_of_name(run->o->policy) : POLICY_FIXED;
	run->plan = plan;
	run->plan.kernel = run->plan.image = run->plan.appended = run->plan.command_line = run->plan.disk = NULL;
	run->connect_ns = now_ns();
	return launch_start(&run->launch, &plan, p);
}

/* --- a host is lost -------------------------------------------------------------------------------------------------- */

/* Nothing is left of the machine but its checkpoint, its console and its streams. */
static void leave_machine(struct run *run)
{
	checkpoint_stop(&run->checkpoint);
	stream_in_lost(&run->in);
	stream_out_lost(&run->out);
	stream_out_lost(&run->err);
	if (run->typed)
		event_del(run->typed);
	event_del(run->death);
	event_del(run->retry);
	launch_end(&run->launch, 0); /* before node 0 can tell anybody that its owner has gone */
	client_close(&run->client);
	run->connected = run->attached = false;
	run->input_room = run->input_taken = 0;
}

/* The same path as that of `vmp snapshot load`, with another source. */
static int start_again(struct run *run, uint32_t hosts, struct problem *p)
{
	load_kept(&run->load, run->checkpoint.kept);
	run->loads = true;
	run->held = false;
	run->hosts = hosts < MAX_NODES ? (1u << hosts) - 1 : ~0u;
	if (start_saved(run, hosts, p))
		return -1;
	on_retry(-1, 0, run);
	return 0;
}

/* True: the machine is on its way back. Otherwise it ends; with checkpoints, a line says why it cannot go back. */
static bool go_back(struct run *run, const char *died)
{
	uint32_t lost = run->back.lost | launch_killed(&run->launch), left;
	struct problem p, why;

	if (!run->o->checkpoint_ms || run->ended)
		return false;
	if (!lost) { /* the others have ended by themselves: they hear nothing of it, and nobody else could have told us */
		lost = 1;
		died = "nothing is heard from its daemon";
	}
	left = run->hosts & ~lost;
	if (!run->back.since_ns)
		run->back.since_ns = now_ns();
	problem(&run->back.why, "host %d is lost (%.300s)", __builtin_ctz(lost), run->back.said.line[0] ? run->back.said.line : died);
	run->back.said.line[0] = 0;
	run->back.lost = 0;
	if (left && checkpoint_machine(&run->checkpoint)) {
		leave_machine(run);
		if (!start_again(run, (uint32_t)__builtin_popcount(left), &p))
			return true;
	} else {
		problem(&p, "%s", left ? "there is no checkpoint yet to go back to" : "no other host is left");
	}
	problem(&why, "%.400s; %.200s", run->back.why.line, p.line);
	end_with(run, EXIT_VMP_FAILURE, why.line);
	return true;
}

/* From the first daemon to the last: `p` is filled in if the machine could not be started. */
static int run_loop(struct run *run, struct problem *p)
{
	const struct timeval timeout = { run->o->timeout_s, 0 }, first_tick = { PROGRESS_MS / 1000, 0 };
	struct msg_machine_end end = { .reason = END_USER };

	if (run->o->timeout_s && event_base_once(run->base, -1, EV_TIMEOUT, on_timeout, run, &timeout))
		return problem(p, "no memory");
	if (!run->interactive && isatty(2))
		event_add(run->tick, &first_tick);
	if (run->interactive) {
		run->raw = terminal_raw();
		if (run->raw)
			dprintf(2, "Ctrl-] then q quits.\r\n");
	}
	on_retry(-1, 0, run);
	event_base_dispatch(run->base);
	hide_progress(run);
	client_send(&run->client, MSG_MACHINE_END, VNODE_CLI, &end, sizeof end, NULL, 0);
	client_flush(&run->client, 100);
	launch_end(&run->launch, GRACE_MS);
	terminal_restore();
	return 0;
}

static int run_prepared(struct run *run, const struct host_files *files, struct problem *p)
{
	int result = -1;

	if (make_events(run, p) || rundir_claim(&run->rundir, run->o->name, p))
		goto free_events;
	if (run->o->cluster && prepare_cluster(run, p))
		goto end_processes;
	if (run->ended) { /* before it began */
		result = 0;
		goto end_processes;
	}
	if (run->loads ? start_saved(run, run->o->hosts, p) : start_machine(run, files, p))
		goto end_processes;
	result = run_loop(run, p);
end_processes:
	launch_end(&run->launch, 0);
	rundir_release(&run->rundir);
free_events:
	free_events(run);
	return result;
}

/* The port is taken before anything is started; who is to connect reads where. */
static int open_gdb(struct run *run, const char *kernel, struct problem *p)
{
	struct gdb_address address;
	char line[4200];

	if (!run->o->gdb)
		return 0;
	if (gdb_address_parse(run->o->gdb, &address, p) || gdbserver_listen(&run->gdb, &address, p))
		return -1;
	run->held = !address.nowait;
	gdbserver_describe(&run->gdb, kernel, line, sizeof line);
	dprintf(2, "vmp: %s %s\n", run->held ? "waiting for" : "listening for", line);
	return 0;
}

/* The machine's hosts are those of the file, or the first of them. */
static int open_cluster(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	uint32_t lines, memory_mib = 0;
	bool limited = true;

	if (!o->cluster)
		return 0;
	if (cluster_open(&run->cluster, o->cluster, p))
		return -1;
	lines = run->cluster.file.n;
	if (o->hosts > lines)
		return problem(p, "--hosts %u: %s names %u", o->hosts, o->cluster, lines);
	if (!o->hosts)
		o->hosts = lines;
	if (!o->cpus)
		o->cpus = cluster_file_cpus(&run->cluster.file, o->hosts);
	if (o->cpus > MAX_CPUS)
		o->cpus = MAX_CPUS;
	if (o->hosts > o->cpus)
		return problem(p, "%u hosts are more than %u processors: each host needs one; see --hosts", o->hosts, o->cpus);
	for (uint32_t i = 0; i < o->hosts; i++) {
		const struct cluster_host *host = &run->cluster.file.host[i];

		limited &= host->memory_mib || o->host_mem_mib;
		memory_mib += host->memory_mib ? host->memory_mib : o->host_mem_mib;
	}
	if (limited && memory_mib < o->mem_mib)
		return problem(p, "all hosts together may hold %uM, less than --mem %uM", memory_mib, o->mem_mib);
	return 0;
}

static int prepare(struct run *run, struct host_files *files, struct problem *p)
{
	struct image image;

	if (open_cluster(run, p))
		return -1;
	if (checks_before_boot(run->o, files, p) || open_log(run, p) || open_gdb(run, files->kernel, p))
		return -1;
	if (image_load(&image, files->image, p))
		return -1;
	run->archive_fd = guestprog_archive(run->o, &image, p);
	image_free(&image);
	return run->archive_fd < 0 ? -1 : 0;
}

static int prepare_saved(struct run *run, struct problem *p)
{
	struct options *o = &run->loaded;
	const struct snapshot_machine *machine = &run->load.saved.machine;

	if (load_open(&run->load, o->file, p))
		return -1;
	if (o->cluster && machine->tsc_khz)
		return problem(p, "%s: the saved guest reads this computer's time-stamp counter as its clock, so it can go on on this "
			       "computer alone; a machine that was started with --cluster can be loaded on any", o->file);
	if (!o->hosts && !o->cluster)
		o->hosts = machine->hosts < machine->cpus ? machine->hosts : machine->cpus; /* some may have had no processor */
	if (o->hosts > machine->cpus)
		return problem(p, "--hosts %u is more than the saved machine's %u processors: each host needs one", o->hosts,
			       machine->cpus);
	if (o->checkpoint_ms && o->hosts < 2)
		return problem(p, "--checkpoint needs --hosts 2 or more: when the only host is lost, none is left to go on");
	o->cpus = machine->cpus;
	o->mem_mib = machine->mem_mib;
	if (open_cluster(run, p))
		return -1;
	o->disk = saved_disk(&run->load.saved, run->disk, sizeof run->disk);
	run->interactive = saved_is_interactive(&run->load.saved);
	return checks_before_load(o, p) || open_log(run, p) || open_gdb(run, run->load.saved.kernel, p) ? -1 : 0;
}

static int run_to_the_end(struct run *run)
{
	static struct host_files files;
	struct problem p = { "" };
	int error;

	run->start_ns = now_ns();
	run->log_fd = run->archive_fd = run->client.fd = run->gdb.fd = -1;
	error = (run->loads ? prepare_saved(run, &p) : prepare(run, &files, &p)) || run_prepared(run, &files, &p);
	load_close(&run->load);
	cluster_close(&run->cluster);
	if (error) {
		log_error("%s", p.line);
		return EXIT_VMP_FAILURE;
	}
	if (run->why.line[0])
		log_error("%s", run->why.line);
	else if (run->report_asked)
		report_write(&run->report, run->o, run->start_ns, run->status);
	if (run->o->summary && !run->why.line[0])
		checkpoint_report(&run->checkpoint);
	report_free(&run->report);
	return run->status;
}

static struct run the_run; /* large: the streams' buffers */

int run_machine(const struct options *o)
{
	the_run = (struct run){ .o = &the_run.loaded, .loaded = *o, .interactive = !o->command, .background = o->verb == VERB_UP };
	return run_to_the_end(&the_run);
}

int run_saved(const struct options *o)
{
	the_run = (struct run){ .o = &the_run.loaded, .loaded = *o, .loads = true };
	the_run.load.context = &the_run;
	the_run.load.on_loaded = on_loaded;
	the_run.load.on_failed = on_load_failed;
	return run_to_the_end(&the_run);
}
