/* run_messages.c - messages of the daemons: the guest's output, the log, and how the machine
 * ended. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/printable.h"
#include "vmm/cli/query/dumptext.h"

enum { LOG_LINE = 1024 };

/* Userland is there.  In the background the machine lives without its starter from here on, so what
 * the starter must hear is said before. */
void run_on_machine_up(struct run *run, const struct message *m, const struct msg_machine_up *up)
{
	struct problem p;

	(void)m, (void)up;
	run->said.up = true;
	if (run->rebooted)
		dup2(run->log_fd, 2); /* this start's log */
	if (!run->starter)
		return;
	if (!run_log_is_whole(run, &p)) {
		run_end(run, EXIT_VMP_FAILURE, p.line);
		return;
	}
	loop_remove(run->starter);
	run->starter = NULL;
	dprintf(2, "%c%s: %u processor%s on %u host%s, up after %.1f s\n", 0, run->rundir.name,
		run->o->machine.cpus, run->o->machine.cpus > 1 ? "s" : "",
		run->o->machine.hosts, run->o->machine.hosts > 1 ? "s" : "",
		(run_now_ns() - run->start_ns) / 1e9);
	dup2(run->log_fd, 2);
	run_standby_look(run);
}

static void write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return; /* a missing reader does not stop the machine */
		bytes += done;
		n -= done;
	}
}

void run_on_console(struct run *run, const struct message *m, const struct msg_console *console)
{
	(void)console;
	if (run->interactive)
		write_all(1, m->payload, m->payload_bytes);
	else if (run->log_fd >= 0)
		run_log_write(run, m->payload, m->payload_bytes);
}

/* Writes a monitor's report of a guest that died to the log, or else to standard error. */
static void report_death(struct run *run, const char *text, int bytes)
{
	char *state = strndup(text, bytes);
	struct symbols symbols;
	char *report = NULL;
	size_t report_bytes;
	FILE *out = open_memstream(&report, &report_bytes);

	if (!state || !out)
		die("no memory");
	pageheat_load_symbols(&symbols, run->kernel);
	printable_text(state, strlen(state));
	dump_print(out, state, &symbols);
	fclose(out);
	run_hide_progress(run);
	write_all(run->o->log || run->o->machine.verbose ? run->log_fd : 2, report, report_bytes);
	pageheat_free_symbols(&symbols);
	free(report);
	free(state);
}

static const char *where_more(const struct run *run)
{
	return run->o->log || run->o->machine.verbose ? "the log has its messages"
						      : "--log FILE keeps its messages";
}

/* The guest kernel has ended, or cannot go on.  `why` is in its own words, or empty. */
static void end_by_kernel(struct run *run, const char *said, const char *why)
{
	struct problem p;

	problem(&p, "%s%s%s (%s)", said, *why ? ": " : "", why, where_more(run));
	run_end(run, EXIT_VMP_FAILURE, p.line);
}

/* Writes a message to the log.  Each of its lines gets the prefix: a guest's message may contain
 * names with newlines, and must not look like the messages of another part. */
static void write_log_lines(struct run *run, const struct msg_log *log, const char *text,
			    const char *end)
{
	char line[LOG_LINE], cpu[16] = "";

	if (log->cpu != ~0u)
		snprintf(cpu, sizeof cpu, " cpu %u", log->cpu);
	do {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		int n;

		if (!line_end)
			line_end = end;
		n = snprintf(line, sizeof line, "node %u%s: %.*s\n", log->node, cpu,
			     (int)(line_end - text), text);
		run_log_write(run, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
		text = line_end + 1;
	} while (text < end);
}

void run_on_log(struct run *run, const struct message *m, const struct msg_log *log)
{
	const char *data = m->payload;
	int text = (int)m->payload_bytes;

	if (log->level == LOG_ERROR) {
		report_death(run, data, text);
		return;
	}
	run->said.up |= run->loads; /* it was saved when programs ran */
	if (log->cpu != ~0u)
		last_words_hear(&run->said, data, (size_t)text);
	if (run->said.over) /* so early that it cannot end its machine */
		end_by_kernel(run, "the guest kernel panicked as it began", run->said.panic);
	if (run->log_fd < 0)
		return;
	while (text && data[text - 1] == '\n')
		text--;
	write_log_lines(run, log, data, data + text);
}

/* Returns whether the machine starts again: its guest is a system of its own. */
static bool starts_again(const struct run *run)
{
	return *run->o->root_device && options_root_boots(run->o) && !run->o->no_reboot &&
	       !run->loads && !run->starter;
}

void run_on_machine_end(struct run *run, const struct message *m, const struct msg_machine_end *end)
{
	struct problem p;
	int text = (int)m->payload_bytes;

	if (end->reason == END_PART_DIED && run_can_go_back(run) && !run->ended) {
		/* deaths because of this one will be known in a moment */
		run->back.lost |= 1u << ((end->lost ? end->lost - 1 : end->node) % MAX_NODES);
		run->back.silent |= end->silent;
		problem(&run->back.said, "%.*s", text, (const char *)m->payload);
		run_look_for_deaths(run);
	} else if (end->reason == END_COMMAND) {
		run_end(run, end->status & 0xff, "");
	} else if (end->reason == END_REBOOT && starts_again(run)) {
		run->reboots = !run->ended;
		run_end(run, 0, "");
	} else if ((end->reason == END_POWEROFF || end->reason == END_REBOOT) &&
		   (run->interactive || (run->background && !run->starter))) {
		run_end(run, 0, "");
	} else if (end->reason == END_POWEROFF || end->reason == END_REBOOT) {
		run_end(run, EXIT_VMP_FAILURE,
			"the guest was switched off before the command ended");
	} else if (end->reason == END_PANIC) {
		problem(&p, "%.*s", text, (const char *)m->payload);
		end_by_kernel(run, p.line, run->said.panic);
	} else if (end->reason == END_GUEST_FAULT && *run->said.bug) {
		problem(&p, "%.*s", text, (const char *)m->payload);
		end_by_kernel(run, p.line, run->said.bug);
	} else {
		problem(&p, "%.*s", text, (const char *)m->payload);
		run_end(run, EXIT_VMP_FAILURE,
			text ? p.line : "the machine ended without saying why; try --log FILE");
	}
}

void run_on_snapshot(struct run *run, const struct message *m, const struct msg_snapshot *snapshot)
{
	(void)m;
	if (!run->loads || run->ended)
		return;
	if (snapshot->step == SNAPSHOT_READY) {
		log_debug("all hosts are ready to be loaded");
		load_start(&run->load, &run->client, run->plan.machine.hosts, run->rundir.path);
	} else if (snapshot->step == SNAPSHOT_TAKEN) {
		load_taken(&run->load);
	}
}

void run_on_snapshot_item(struct run *run, const struct message *m,
			  const struct msg_snapshot_item *item)
{
	(void)item;
	checkpoint_on_item(&run->checkpoint, m->body, m->header.bytes);
}

void run_on_command_exit(struct run *run, const struct message *m,
			 const struct msg_command_exit *command_exit)
{
	(void)m;
	run_end(run, command_exit->status & 0xff, "");
}

void run_on_debug_answer(struct run *run, const struct message *m, const struct msg_debug *answer)
{
	(void)answer;
	if (run->gdb.fd >= 0)
		gdbserver_on_answer(&run->gdb, m->body, m->header.bytes);
}

void run_on_stats(struct run *run, const struct message *m, const struct msg_stats *stats)
{
	(void)stats;
	report_on_stats(&run->report, m->body, m->header.bytes);
	run_proceed_to_end(run);
}

void run_on_pages(struct run *run, const struct message *m, const struct msg_pages_here *pages)
{
	(void)pages;
	report_on_pages(&run->report, m->body, m->header.bytes);
	run_proceed_to_end(run);
}

void run_on_trace(struct run *run, const struct message *m, const struct msg_trace *trace)
{
	(void)trace;
	report_on_trace(&run->report, m->body, m->header.bytes);
	run_proceed_to_end(run);
}

static bool dispatch(struct run *run, const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_RUN(name, how, handler) SERVE_##how(run, m, name, handler)
#include "base/msg.def"
	}
	return false;
}

void run_on_message(void *context, const struct message *m)
{
	/* client.c has refused messages that a run client may not receive */
	bug_on(!dispatch(context, m));
}
