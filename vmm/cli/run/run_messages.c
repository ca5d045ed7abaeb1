/* run_messages.c - what the daemons say: the guest's output, the log, and how the machine ended. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/cli/query/dumptext.h"

enum { LOG_LINE = 1024 };

/* Background: userland is there. From here on the machine lives without its starter. */
static void on_machine_up(struct run *run)
{
	if (!run->starter)
		return;
	event_free(run->starter);
	run->starter = NULL;
	dprintf(2, "%c%s: %u processors on %u host%s, up after %.1f s\n", 0, run->rundir.name, run->o->machine.cpus, run->o->machine.hosts,
		run->o->machine.hosts > 1 ? "s" : "", (run_now_ns() - run->start_ns) / 1e9);
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
			return; /* a log on a full disk does not stop the machine */
		bytes += done;
		n -= done;
	}
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
	run_hide_progress(run);
	write_all(run->o->log || run->o->machine.verbose ? run->log_fd : 2, report, report_bytes);
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
	if (end.reason == END_PART_DIED && run_can_go_back(run) && !run->ended) {
		/* whoever has died with it is known in a moment */
		run->back.lost |= 1u << ((end.lost ? end.lost - 1 : end.node) % MAX_NODES);
		problem(&run->back.said, "%.*s", text, (const char *)body + sizeof end);
		run_look_for_deaths(run);
	} else if (end.reason == END_COMMAND) {
		run_end(run, end.status & 0xff, "");
	} else if (end.reason == END_POWEROFF && (run->interactive || (run->background && !run->starter))) {
		run_end(run, 0, "");
	} else if (end.reason == END_POWEROFF) {
		run_end(run, EXIT_VMP_FAILURE, "the guest was switched off before the command ended");
	} else {
		problem(&p, "%.*s", text, (const char *)body + sizeof end);
		run_end(run, EXIT_VMP_FAILURE, text ? p.line : "the machine ended without saying why; try --log FILE");
	}
}

static void on_snapshot(struct run *run, const void *body)
{
	struct msg_snapshot snapshot;

	memcpy(&snapshot, body, sizeof snapshot);
	if (!run->loads || run->ended)
		return;
	if (snapshot.step == SNAPSHOT_READY) {
		log_debug("all hosts are ready to be loaded");
		load_start(&run->load, &run->client, run->plan.machine.hosts, run->rundir.path);
	} else if (snapshot.step == SNAPSHOT_TAKEN) {
		load_taken(&run->load);
	}
}

void run_on_message(void *context, const struct msg_header *header, const void *body)
{
	struct run *run = context;
	struct msg_command_exit command_exit;

	switch (header->type) {
	case MSG_HELLO:
		break;
	case MSG_STREAM:
		run_on_stream(run, body, header->bytes);
		break;
	case MSG_STREAM_ROOM:
		run_on_stream_room(run, body);
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
		run_end(run, command_exit.status & 0xff, "");
		break;
	case MSG_MACHINE_END:
		on_machine_end(run, body, header->bytes);
		break;
	case MSG_SNAPSHOT:
		on_snapshot(run, body);
		break;
	case MSG_HOST:
		run_on_host(run, body, header->bytes);
		break;
	case MSG_HOSTS:
		run_on_hosts(run, body);
		break;
	case MSG_DEBUG_ANSWER:
		if (run->gdb.fd >= 0)
			gdbserver_on_answer(&run->gdb, body, header->bytes);
		break;
	case MSG_STATS:
		report_on_stats(&run->report, body, header->bytes);
		run_proceed_to_end(run);
		break;
	case MSG_PAGES:
		report_on_pages(&run->report, body, header->bytes);
		run_proceed_to_end(run);
		break;
	default:
		log_warn("unexpected message %s from the node daemon", wire_type_name(header->type));
	}
}
