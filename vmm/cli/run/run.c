/* run.c - `vmp run`, and the keeper of `vmp up`: the event loop, and the end.
 *
 * In order: checks, archive, run folder (start.c), daemons (run_hosts.c if they are on other
 * computers), the loop, the end.  The loop has three phases: connecting (the daemons start),
 * running, and ending (output is written, statistics are fetched).  The first reason to end decides
 * the status and the line; see run_end().
 */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "base/undofile.h"
#include "vmm/cli/watch/reportpage.h"

enum {
	CONNECT_RETRY_MS = 5,
	CONNECT_LIMIT_MS = 10000,
	END_LIMIT_MS = 3000, /* for the last output, after the machine's end */
	DEATH_PAUSE_MS = 100,
	GRACE_MS = 1000,     /* for the daemons to end by themselves */
};

uint64_t run_now_ns(void) { return clock_now_ns(); }

void run_hide_progress(struct run *run)
{
	if (run->progress_shown && write(2, "\r\033[K", 4) < 0) {
		/* if the terminal is gone, nothing needs cleaning */
	}
	run->progress_shown = false;
}

bool run_wants_report(const struct run *run)
{
	return run->o->stats || run->o->summary || run->o->trace || run->o->report;
}

/* Leaves the loop when everything is done that the end waits for; called whenever some of it may
 * be. */
void run_proceed_to_end(struct run *run)
{
	if (!run->ended)
		return;
	if (!run->forced && !run->interactive &&
	    !(stream_out_drained(&run->out) && stream_out_drained(&run->err)))
		return;
	if (!run->forced && run->report_expected && !report_is_complete(&run->report) &&
	    run->connected)
		return;
	loop_stop(&run->loop);
}

static void on_limit(void *context)
{
	struct run *run = context;

	run->forced = true;
	run_proceed_to_end(run);
}

/* Ends the run; the first call counts.  `line` may be empty; status 125 always comes with one. */
void run_end(struct run *run, int status, const char *line)
{
	if (run->ended)
		return;
	run->ended = true;
	run->status = status;
	run_tell_over(run); /* before the machine's processes there have ended */
	names_explain(&run->cluster.names, line, run->why.line, sizeof run->why.line);
	run->why.line[strcspn(run->why.line, "\r\n")] = 0;
	printable_line(run->why.line); /* the guest may have chosen a part of it */
	run->report_expected = run_wants_report(run) && !run->why.line[0] && !run->forced;
	if (run->report_expected)
		report_expect(&run->report, run->hosts);
	checkpoint_stop(&run->checkpoint);
	keptfile_stop(&run->keptfile);
	stream_out_release(&run->out);
	stream_out_release(&run->err);
	loop_after(run->limit, (run->report_expected ? STATS_LIMIT_MS : END_LIMIT_MS) *
		   (uint64_t)LOOP_MS);
	run_proceed_to_end(run);
}

static void quit(struct run *run, int signal_number)
{
	run->forced = true;
	run_end(run, 128 + signal_number, "");
	loop_stop(&run->loop);
}

static void on_int(void *context) { quit(context, SIGINT); }
static void on_term(void *context) { quit(context, SIGTERM); }
static void on_hup(void *context) { quit(context, SIGHUP); }
static void on_quit(void *context) { quit(context, SIGQUIT); }

/* A daemon has died, or closed the connection.  Waits a moment, since node 0 may be about to say
 * why, and knows better. */
void run_look_for_deaths(struct run *run) { loop_after(run->death, DEATH_PAUSE_MS * LOOP_MS); }

static void on_death(void *context)
{
	struct run *run = context;
	struct problem p;

	launch_reap(&run->launch);
	launch_describe(&run->launch, &p);
	if (run_go_back(run, p.line))
		return;
	run->forced |= !run->connected;
	run_end(run, EXIT_VMP_FAILURE, p.line);
	run_proceed_to_end(run);
}

static void on_child(void *context)
{
	struct run *run = context;

	if (launch_reap(&run->launch))
		run_look_for_deaths(run);
	run_tell_ends(run);
}

static void on_window_changed(void *context)
{
	struct run *run = context;

	if (run->connected)
		terminal_send_size(&run->client);
}

static void on_timeout(void *context)
{
	struct run *run = context;
	struct problem p;
	char limit[16];

	run->forced = true;
	quantity_print_ms(run->o->timeout_ms, limit, sizeof limit);
	problem(&p, "the command did not end within %s (--timeout)", limit);
	run_end(run, EXIT_VMP_FAILURE, p.line);
}

/* In the background: the `vmp up` that waits for userland is gone. */
static void on_starter_gone(void *context)
{
	struct run *run = context;

	run->forced = true;
	run_end(run, EXIT_VMP_FAILURE, "vmp up did not wait");
}

/* On a terminal, shows a line that is redrawn each second, if the guest has written nothing for a
 * while. */
static void on_tick(void *context)
{
	struct run *run = context;
	char doing[200];

	if (run->output_seen || run->ended)
		return;
	if (*cluster_doing(&run->cluster, doing, sizeof doing))
		dprintf(2, "\r\033[Kvmp: %s, %u s", doing,
			(unsigned)((run_now_ns() - run->start_ns) / 1000000000));
	else
		dprintf(2, "\r\033[Kvmp: %u processor%s on %u host%s: waiting for the first "
			"output, %u s", run->o->machine.cpus, run->o->machine.cpus > 1 ? "s" : "",
			run->o->machine.hosts,
			run->o->machine.hosts > 1 ? "s" : "",
			(unsigned)((run_now_ns() - run->start_ns) / 1000000000));
	run->progress_shown = true;
	loop_after(run->tick, LOOP_S);
}

/* Sends what is typed to the console of the shell, until the escape. */
static void on_typed(void *context)
{
	struct run *run = context;
	struct msg_console body = { 0 };
	char typed[256], bytes[512];
	ssize_t n = read(0, typed, sizeof typed);
	size_t count;
	bool quit = false;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* the end of a script: send what Ctrl-D sends to a shell */
		loop_disarm(run->typed);
		client_send(&run->client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body, "\004", 1);
		return;
	}
	count = run->raw ? terminal_filter(&run->escape, typed, n, bytes, &quit) : (size_t)n;
	client_send(&run->client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body,
		    run->raw ? bytes : typed, count);
	if (quit)
		run_end(run, 0, "");
}

static void on_gdb_kill(void *context)
{
	run_end(context, EXIT_VMP_FAILURE, "the machine was ended by the debugger's kill");
}

static void on_closed(void *context)
{
	struct run *run = context;

	run->connected = false;
	if (run->client.wrong[0])
		run_end(run, EXIT_VMP_FAILURE, run->client.wrong);
	run->forced |= run->ended;
	if (run->ended)
		run_proceed_to_end(run);
	else
		run_look_for_deaths(run);
}

static void on_drained(void *context)
{
	run_proceed_to_end(context);
}

/* Some of the command's output is lost, so it must not end with success; not even if the machine
 * has ended already. */
static void on_output_failed(void *context, const char *name, int error)
{
	struct run *run = context;
	char line[100];

	snprintf(line, sizeof line, "cannot write standard %s: %s", name, strerror(error));
	if (run->ended && !run->why.line[0]) {
		run->status = EXIT_VMP_FAILURE;
		problem(&run->why, "%s", line);
	}
	run_end(run, EXIT_VMP_FAILURE, line);
}

/* The machine is there: attaches the console and starts the streams.  After a return to a
 * checkpoint, the console's old text has been printed already. */
static void attach(struct run *run)
{
	struct msg_console_attach attach = { .client = 0,
					     .backlog = run->back.since_ns ? 0 : 1 << 20 };

	client_send(&run->client, MSG_CONSOLE_ATTACH, VNODE_IOSRV, &attach, sizeof attach, NULL, 0);
	on_window_changed(run);
	if (!run->interactive)
		run_attach_streams(run);
	else if (!run->typed)
		run->typed = loop_add(&run->loop, LOOP_READ, 0, on_typed, run);
	if (run->interactive && (!run->typed || loop_watch(run->typed)))
		die("no memory");
	run_parts_look(run);
	checkpoint_go(&run->checkpoint, &run->client, run->kernel);
}

/* The daemon answers.  A machine that is loaded is not there before its devices are. */
static void on_connected(struct run *run)
{
	run->connected = true;
	log_debug("node daemon 0 has taken the connection");
	for (unsigned host = 1; host < MAX_NODES; host++)
		run_tell_where(run, host);
	if (!run->loads) {
		run_happens(run, OWNER_ON_THERE);
		attach(run);
	}
	if (run->o->report && !run->recorder.tick &&
	    recorder_start_own(&run->recorder, run->base, run->rundir.path,
			       run->o->machine.mem_mib))
		die("no memory");
}

/* A machine that was loaded is there. */
void run_on_loaded(void *context)
{
	struct run *run = context;
	enum owner_action action = run_happens(run, OWNER_ON_THERE);

	log_debug("all that was saved is loaded");
	attach(run);
	run_yield_ends(run, action);
	if (run->back.since_ns && run->back.why.line[0])
		run_report_back(run);
	run->back.since_ns = 0;
	run_has_taken_over(run);
	run_standby_look(run);
}

void run_on_load_failed(void *context, const char *line)
{
	run_end(context, EXIT_VMP_FAILURE, line);
}

static void on_retry(void *context)
{
	struct run *run = context;
	int error = client_connect(&run->client, run->base, run->rundir.path, CLIENT_RUN);

	if (!error)
		on_connected(run);
	else if ((error != -ENOENT && error != -ECONNREFUSED) ||
		 run_now_ns() - run->connect_ns > CONNECT_LIMIT_MS * 1000000ull)
		run_end(run, EXIT_VMP_FAILURE, "node daemon 0 does not open its control socket; "
			"try --log FILE");
	else
		loop_after(run->retry, CONNECT_RETRY_MS * LOOP_MS);
}

void run_connect(struct run *run) { on_retry(run); }

/* Makes all events before the daemons start, so that from then on every end goes through the
 * loop. */
static int make_events(struct run *run, struct problem *p)
{
	static const struct { int number; loop_fn fn; } signals[] = {
		{ SIGINT, on_int },   { SIGTERM, on_term },  { SIGHUP, on_hup },
		{ SIGQUIT, on_quit }, { SIGCHLD, on_child }, { SIGWINCH, on_window_changed },
	};

	run->base = client_new_loop();
	if (!run->base)
		return problem(p, "no memory");
	run->loop = loop_on_event_base(run->base);
	run->client = (struct client){ .base = run->base,
				       .loop = run->loop,
				       .fd = -1,
				       .context = run,
				       .link = LINK_NODE_TO_RUN,
				       .on_message = run_on_message,
				       .on_closed = on_closed };
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		run->signals[i] = loop_add(&run->loop, LOOP_SIGNAL, signals[i].number,
					   signals[i].fn, run);
		if (!run->signals[i] || loop_watch(run->signals[i]))
			return problem(p, "no memory");
	}
	run->retry = loop_timer(&run->loop, on_retry, run);
	run->tick = loop_timer(&run->loop, on_tick, run);
	run->limit = loop_timer(&run->loop, on_limit, run);
	run->death = loop_timer(&run->loop, on_death, run);
	run->gdb.on_kill = on_gdb_kill;
	run->gdb.context = run;
	if (run->gdb.fd >= 0 &&
	    gdbserver_start(&run->gdb, run->base, &run->client, run->o->machine.cpus, run->held))
		return problem(p, "no memory");
	if (run->o->verb == VERB_UP && !run->rebooted) {
		run->starter = loop_add(&run->loop, LOOP_READ_ONCE, 2, on_starter_gone, run);
		if (!run->starter || loop_watch(run->starter))
			return problem(p, "no memory");
	}
	if (!run->retry || !run->tick || !run->limit || !run->death || run_make_checkpoints(run) ||
	    run_log_watch(run) || run_standby_open(run) ||
	    stream_out_start(&run->out, &run->client, 1, 1) ||
	    stream_out_start(&run->err, &run->client, 2, 2))
		return problem(p, "no memory");
	run->out.on_drained = run->err.on_drained = on_drained;
	run->out.on_failed = run->err.on_failed = on_output_failed;
	run->out.context = run->err.context = run;
	signal(SIGPIPE, SIG_IGN);
	/* so that a --checkpoint-file beyond the limit is an error, like a full disk */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	return 0;
}

/* Ends the recording of --report; the hosts' last figures, if they have come, are its end. */
static void stop_recording(struct run *run)
{
	static struct status_look last;

	if (!run->report_expected || !report_is_complete(&run->report)) {
		recorder_stop(&run->recorder, NULL);
		return;
	}
	last = run->recorder.recording.last; /* hosts and names */
	last.report = run->report;
	last.at_ns = run_now_ns();
	recorder_stop(&run->recorder, &last);
	run->report.heat = last.report.heat; /* sorted */
}

static void free_events(struct run *run)
{
	reserve_end(&run->reserve);
	load_close(&run->load);
	checkpoint_close(&run->checkpoint);
	run_parts_close(run);

	struct loop_event *events[] = { run->retry, run->tick,	   run->limit,	 run->death,
					run->typed, run->starter, run->back.regrouped,
					run->back.grace, run->on_asked, run->log_look };

	for (size_t i = 0; i < ARRAY_LEN(run->signals); i++)
		loop_remove(run->signals[i]);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		loop_remove(events[i]);
	stream_in_free(&run->in);
	stream_out_stop(&run->out);
	stream_out_stop(&run->err);
	gdbserver_end(&run->gdb, run->status);
	client_close(&run->client);
	if (run->base)
		event_base_free(run->base);
}

/* From the first daemon to the last.  `p` is filled in if the machine could not be started. */
static int run_loop(struct run *run, struct problem *p)
{
	struct msg_machine_end end = { .reason = END_USER };

	if (run->o->timeout_ms &&
	    loop_once(&run->loop, run->o->timeout_ms * (uint64_t)LOOP_MS, on_timeout, run))
		return problem(p, "no memory");
	if (!run->interactive && isatty(2))
		loop_after(run->tick, PROGRESS_MS * (uint64_t)LOOP_MS);
	if (run->interactive) {
		run->raw = terminal_raw();
		if (run->raw)
			dprintf(2, "Ctrl-] then q quits.\r\n");
	}
	run_connect(run);
	event_base_dispatch(run->base);
	run_hide_progress(run);
	run_standby_end(run);
	run_parts_close(run);
	client_send(&run->client, MSG_MACHINE_END, VNODE_CLI, &end, sizeof end, NULL, 0);
	client_flush(&run->client, 100);
	launch_end(&run->launch, GRACE_MS, NULL);
	terminal_restore();
	return 0;
}

/* Writes the report of --report, if the machine was there. */
static void write_recording(struct run *run)
{
	struct recording_about about = { .name = run->rundir.name,
					 .kernel = run->kernel,
					 .cpus = run->o->machine.cpus,
					 .mem_mib = run->o->machine.mem_mib,
					 .written = time(NULL) };
	char command[200];
	struct problem p;
	size_t at = 0;

	if (!run->recorder.recording.begin_ns)
		return;
	stop_recording(run);
	command[0] = 0;
	for (char **word = run->o->command; word && *word && at < sizeof command; word++)
		at += (size_t)snprintf(command + at, sizeof command - at, "%s%s", at ? " " : "",
				       *word);
	about.command = command;
	run->report_failed = reportpage_write(run->o->report, &run->recorder.recording, &about, &p);
	if (run->report_failed)
		log_error("%s", p.line);
}

/* Nobody goes back to a checkpoint of this machine any more. */
static void remove_undo(const struct run *run)
{
	const struct machine_list *disks = &run->o->machine.disk;
	char path[4096];
	size_t bytes;

	for (unsigned i = 0; run->o->machine.checkpoint_ms && i < disks->n; i++)
		if (options_disk_mode(disks->item[i], &bytes) == DISK_READ_WRITE &&
		    snprintf(path, sizeof path, "%.*s", (int)bytes, disks->item[i]) <
			    (int)sizeof path)
			undofile_remove_unlocked(path);
}

static int run_prepared(struct run *run, const struct host_files *files, struct problem *p)
{
	int result = -1;

	if (make_events(run, p) ||
	    (run->stands_by ? run_stand_by(run, p)
			    : rundir_claim(&run->rundir, run->o->name, RUNDIR_TESTED_MS, p)))
		goto free_events;
	if (run->o->cluster && !run->stands_by && run_prepare_cluster(run, p))
		goto end_processes;
	if (run->ended) { /* before it began */
		result = 0;
		goto end_processes;
	}
	if (run->stands_by ? run_take_over(run, p) :
	    run->loads ? run_start_saved(run, run->o->machine.hosts, p) : run_start(run, files, p))
		goto end_processes;
	result = run_loop(run, p);
end_processes:
	run_standby_end(run);
	launch_end(&run->launch, 0, NULL);
	remove_undo(run);
	write_recording(run); /* before `vmp down` returns */
	rundir_release(&run->rundir);
free_events:
	run_takeover_ends(run, result ? p->line : run->why.line);
	free_events(run);
	return result;
}

static int prepare(struct run *run, struct host_files *files, struct problem *p)
{
	if (run->stands_by) /* a standby does not know yet which machine it will be */
		return 0;
	return run->loads ? run_prepare_saved(run, p) : run_prepare(run, files, p);
}

/* Writes --stats and --trace.  Returns whether all files that were asked for are there; otherwise
 * lines have said which are not. */
static bool say_what_is_missing(struct run *run)
{
	bool whole = !run->report_failed;
	struct problem p;

	if (run->report_expected &&
	    report_write(&run->report, run->o, run->kernel, run->start_ns, run->status))
		whole = false;
	if (run_log_is_whole(run, &p))
		return whole;
	log_error("%s", p.line);
	return false;
}

static int run_to_the_end(struct run *run)
{
	static struct host_files files;
	struct problem p = { "" };
	int error;

	run->start_ns = run_now_ns();
	run->log_fd = run->archive_fd = run->client.fd = run->gdb.fd = run->rundir.lock_fd = -1;
	error = prepare(run, &files, &p) || run_prepared(run, &files, &p);
	load_close(&run->load);
	cluster_close(&run->cluster);
	if (error) {
		log_error("%s", p.line);
		return EXIT_VMP_FAILURE;
	}
	if (run->why.line[0])
		log_error("%s", run->why.line);
	else if (!say_what_is_missing(run) && !run->status)
		run->status = EXIT_VMP_FAILURE;
	if (run->o->summary && !run->why.line[0])
		checkpoint_report(&run->checkpoint);
	recorder_free(&run->recorder);
	report_free(&run->report);
	return run->status;
}

static struct run the_run; /* static, since the streams' buffers are large */

int run_machine(const struct options *o)
{
	bool again = false;
	int status;

	do {
		the_run = (struct run){ .o = &the_run.loaded,
					.loaded = *o,
					.interactive = !o->command,
					.background = o->verb == VERB_UP,
					.rebooted = again };
		status = run_to_the_end(&the_run);
		again = the_run.reboots;
	} while (again);
	return status;
}

int run_saved(const struct options *o)
{
	the_run = (struct run){ .o = &the_run.loaded, .loaded = *o, .loads = true };
	the_run.load.context = &the_run;
	the_run.load.on_loaded = run_on_loaded;
	the_run.load.on_failed = run_on_load_failed;
	return run_to_the_end(&the_run);
}

int run_standby(const struct options *o)
{
	the_run = (struct run){ .o = &the_run.loaded,
				.loaded = *o,
				.loads = true,
				.stands_by = true,
				.background = true };
	return run_to_the_end(&the_run);
}
