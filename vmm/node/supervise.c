/* supervise.c - the children of a node daemon, and the end of the machine.
 *
 * The death of any child ends the machine, except that of a monitor in a CPU's move (handover.c).
 * Only the line that names the child differs.  A child that dies has often said why before; so its
 * socket is read to the end before its death is judged.  After that there is only one state:
 * `ending`.  It is entered once, and kills every child.  The loop ends when the last child is
 * reaped, or at the deadline.
 */
#include "vmm/node/node.h"
#include "vmm/node/pages/pagetrace.h"
#include "vmm/node/pages/wants.h"
#include "vmm/shared/presence.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/filepass.h"
#include "base/killed.h"
#include "base/log.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/wire/conn.h"
#include "vmm/shared/stats.h"

enum {
	MAX_ARGUMENTS = 19 + MACHINE_WORDS,
	/* between SIGTERM and SIGKILL, so that the disk image is closed in order */
	IOSRV_GRACE_MS = 300,
	END_LIMIT_MS = 800,	/* `vmp run` kills what is left after a second */
	END_ANSWER_MS = 2000,	/* how long a daemon waits for node 0 to tell all */
	END_ORPHAN_MS = 400,	/* the same, if the process that started it is gone */
	/* how long node 0 waits to report a failure from before `vmp run` was connected */
	CLIENT_LIMIT_MS = 3000,
	END_STEP_MS = 20,
};

/* ---- children ---- */

/* Appends the machine's description to the arguments. */
static void add_words(struct child_program *program, const struct machine_words *words)
{
	for (unsigned i = 0; i < words->n; i++)
		program->arguments[program->n_arguments++] = words->word[i];
}

/* Writes the descriptors of the disks as "N,N,...", with -1 for none, and puts those that there are
 * into `keep`.  Returns their number. */
static unsigned put_files(const struct node *node, char *list, size_t bytes, int *keep)
{
	unsigned kept = 0;
	size_t n = 0;

	for (unsigned i = 0; i < VIRTIO_SLOTS; i++) {
		n += (size_t)snprintf(list + n, bytes - n, i ? ",%d" : "%d", node->device_file[i]);
		if (node->device_file[i] >= 0)
			keep[kept++] = node->device_file[i];
	}
	return kept;
}

int supervise_start_monitor(struct node *node, unsigned cpu, char *why, size_t why_bytes)
{
	struct child *child = &node->monitor[cpu];
	const int fds[] = { node->ram_fd, node->shm_fd, node->cpus_fd, wants_bell(node),
			    node->o.log_fd };
	int keep[ARRAY_LEN(fds) + VIRTIO_SLOTS];
	char number[1 + ARRAY_LEN(fds)][16], files[VIRTIO_SLOTS * 12];
	char *arguments[MAX_ARGUMENTS] = { NULL,	"--cpu",     number[0], "--ram-fd",
					   number[1],	"--shm-fd",  number[2], "--cpus-fd",
					   number[3],	"--bell-fd", number[4], "--log-fd",
					   number[5],	"--device-files", files };
	struct child_program program = { .name = "vmp-monitor",
					 .arguments = arguments,
					 .n_arguments = 3 + 2 * ARRAY_LEN(number),
					 .keep = keep,
					 .n_keep = ARRAY_LEN(fds),
					 .handler = &route_monitor_handler };
	struct machine_words described;
	int error;

	child->role = CHILD_MONITOR;
	child->cpu = cpu;
	child->last_words[0] = 0;
	child->processor = 0;
	snprintf(child->name, sizeof child->name, "monitor of CPU %u on host %u", cpu,
		 node->o.node);
	snprintf(number[0], sizeof number[0], "%u", cpu);
	for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
		snprintf(number[i + 1], sizeof number[i + 1], "%d", keep[i] = fds[i]);
	program.n_keep += put_files(node, files, sizeof files, keep + ARRAY_LEN(fds));
	machine_words(&node->o.machine, MACHINE_MONITOR, &described);
	add_words(&program, &described);
	error = node->outside->start(node, child, &program, why, why_bytes);
	if (fault_on(FAULT_BIND_LATE))
		usleep(fault_on(FAULT_BIND_LATE) * 1000);
	if (!error)
		processors_settle(node);
	return error;
}

/* Whether the monitors wait for the I/O server, to inherit files of its devices. */
static bool monitors_wait(const struct node *node)
{
	const struct machine *machine = &node->o.machine;

	return node->o.node == 0 &&
	       (machine->disk.n || (machine->net && strcmp(machine->net, "none") != 0));
}

static int start_iosrv(struct node *node, char *why, size_t why_bytes)
{
	struct child *child = &node->iosrv;
	char *arguments[MAX_ARGUMENTS] = { NULL, "--files-socket" }, number[16];
	int keep[2] = { node->o.log_fd }, files[2], error;
	struct child_program program = { .name = "vmp-iosrv",
					 .arguments = arguments,
					 .n_arguments = 1,
					 .keep = keep,
					 .n_keep = 1,
					 .handler = &route_iosrv_handler };
	struct machine_words described;

	child->role = CHILD_IOSRV;
	snprintf(child->name, sizeof child->name, "I/O server");
	if (monitors_wait(node)) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files))
			die("cannot make a socket pair: %s; see ulimit -n", strerror(errno));
		node->files_socket = files[0];
		keep[program.n_keep++] = files[1];
		snprintf(number, sizeof number, "%d", files[1]);
		arguments[2] = number;
		program.n_arguments = 3;
	}
	machine_words(&node->o.machine, MACHINE_IOSRV, &described);
	add_words(&program, &described);
	error = node->outside->start(node, child, &program, why, why_bytes);
	if (monitors_wait(node))
		close(files[1]);
	return error;
}

static void start_monitors(struct node *node)
{
	char why[END_LINE];
	int error = 0;

	for (unsigned cpu = 0; cpu < node->o.machine.cpus && !error && !node->ending; cpu++)
		if (node_has_cpu(node, cpu) && !node->monitor[cpu].pid)
			error = supervise_start_monitor(node, cpu, why, sizeof why);
	if (error)
		node_end(node, END_FAILURE, 0, "%s", why);
}

void supervise_start_children(struct node *node)
{
	char why[END_LINE];

	if (node->o.node == 0 && start_iosrv(node, why, sizeof why))
		node_end(node, END_FAILURE, 0, "%s", why);
	else if (!monitors_wait(node))
		start_monitors(node);
}

void supervise_iosrv_ready(struct node *node)
{
	int error;

	if (!monitors_wait(node) || node->files_socket < 0)
		return;
	error = filepass_receive(node->files_socket, node->device_file, VIRTIO_SLOTS);
	if (error && error != -EAGAIN) /* the monitors go through the I/O server */
		log_warn("no files from the I/O server: %s", strerror(-error));
	close(node->files_socket);
	node->files_socket = -1;
	start_monitors(node);
}

static void send_signal(struct node *node, struct child *child, int signal_number)
{
	if (child->pid > 0)
		node->outside->kill(node, child, signal_number);
}

void supervise_kill(struct node *node, struct child *child)
{
	send_signal(node, child, SIGKILL);
}

void supervise_release(struct node *node, struct child *child)
{
	supervise_kill(node, child);
	if (child->conn)
		conn_close(child->conn);
	child->pid = 0;
	child->conn = NULL;
	child->part = PART_RUNS;
	child->ready = false;
}

void supervise_last_words(struct child *child, const char *line, size_t bytes)
{
	snprintf(child->last_words, sizeof child->last_words, "%.*s", (int)bytes, line);
}

static void judge_death(struct node *node, struct child *child, int status)
{
	bool was_spare = child->part == PART_SPARE;
	char how[sizeof child->last_words + 16];

	child->pid = 0;
	/* Read its last messages first: they may say more than its exit status. */
	if (child->conn)
		conn_drain(child->conn);
	/* its last message may have released it */
	if (node->ending || (was_spare && child->part == PART_RUNS && !child->ready))
		return;
	if (child->last_words[0])
		snprintf(how, sizeof how, "ended (%s)", child->last_words);
	else if (WIFSIGNALED(status))
		snprintf(how, sizeof how, "was killed by signal %d (%s)%s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), killed_why(WTERMSIG(status)));
	else
		snprintf(how, sizeof how, "ended unexpectedly with status %d%s",
			 WEXITSTATUS(status),
			 WEXITSTATUS(status) == EXIT_VMP_FAILURE ? "; its log (--log FILE) says why"
								 : "");
	if (child->part == PART_RUNS)
		node_end(node, END_PART_DIED, 0, "the %s %s", child->name, how);
	else
		handover_child_died(node, child, how);
}

static void on_sigchld(void *arg)
{
	struct node *node = arg;
	int status;
	pid_t pid;

	while ((pid = node->outside->reap(node, &status)) > 0) {
		if (pid == node->iosrv.pid)
			judge_death(node, &node->iosrv, status);
		for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
			if (pid == node->monitor[cpu].pid)
				judge_death(node, &node->monitor[cpu], status);
	}
	if (node->ending)
		supervise_proceed(node);
}

/* ---- the end ---- */

static unsigned children_left(const struct node *node)
{
	unsigned left = node->iosrv.pid > 0;

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		left += node->monitor[cpu].pid > 0;
	return left;
}

/* Continues the end.  Called every END_STEP_MS, and whenever something may have happened for which
 * the end waits. */
void supervise_proceed(struct node *node)
{
	uint64_t now = node_now_ns(node);
	bool waits_for_client = node->o.node == 0 && !node->end_told;
	/* Of a long trace no more leaves at a time than the receiver takes, and its answers come
	 * through the loop. */
	bool waits_for_trace = node->trace && node->o.node != 0 &&
			       !node->outside->has_sent_all(node);
	uint64_t limit_ms = waits_for_trace ||
			    (node->o.machine.report && clients_have_run(node)) ? STATS_LIMIT_MS
									      : CLIENT_LIMIT_MS;
	bool waits = waits_for_client || waits_for_trace;

	if (!node->ending)
		return;
	if (now >= node->end_deadline_ns - (END_LIMIT_MS - IOSRV_GRACE_MS) * 1000000ull)
		supervise_kill(node, &node->iosrv);
	if (!waits && (!children_left(node) || now >= node->end_deadline_ns))
		loop_stop(&node->loop);
	else if (now >= node->end_deadline_ns + (limit_ms - END_LIMIT_MS) * 1000000ull)
		loop_stop(&node->loop);
	else
		loop_after(node->end_timer, END_STEP_MS * LOOP_MS);
}

void node_end_here(struct node *node)
{
	if (node->ending)
		return;
	node->ending = true;
	node->end_deadline_ns = node_now_ns(node) + END_LIMIT_MS * 1000000ull;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		supervise_kill(node, &node->monitor[cpu]);
	/* The console's last bytes are in its socket already: the I/O server sends them before it
	 * answers the CPU. */
	if (node->iosrv.conn)
		conn_drain(node->iosrv.conn);
	send_signal(node, &node->iosrv, SIGTERM);
	if (node->o.machine.report) {
		node_stats_send(node, 0);
		node_pages_send(node, 0);
		trace_send(node);
	}
	loop_after(node->end_timer, 0);
}

/* Node 0 has ordered the end.  A standby on this computer whose connection to the owner broke must
 * not bring the machine back, so it is told.  If a part has died, it is not told: the owner may be
 * about to bring the machine back itself.  (TRICKS: neighbour-tells) */
void node_end_ordered(struct node *node, const struct msg_machine_end *end)
{
	if (node->o.present && end->reason != END_PART_DIED)
		presence_tell(node->o.present);
	node_end_here(node);
}

/* Node 0: ends the machine for the first reason.  Clients get it before any daemon's death can
 * reach them. */
static void end_machine(struct node *node, const struct msg_machine_end *why, const char *line,
			unsigned line_bytes)
{
	struct msg_machine_end *end = &node->end;

	if (node->ending)
		return;
	*end = *why;
	end->silent = node->outside->silent(node);
	snprintf(node->end_line, sizeof node->end_line, "%.*s", (int)line_bytes, line);
	log_info("the machine ends: %s", node->end_line[0] ? node->end_line : "(no line)");
	clients_send_all(node, MSG_MACHINE_END, end, sizeof *end, node->end_line,
			 strlen(node->end_line));
	node_end_here(node);
	/* with a report, `vmp run` leaves when it has the reports of all hosts */
	node->end_told |= clients_have_run(node) && !node->o.machine.report;
	for (unsigned peer = 1; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer) || hosts_joins(node, peer))
			net_send(node->net, VNODE_DAEMON(peer), MSG_MACHINE_END, end, sizeof *end,
				 node->end_line, strlen(node->end_line));
}

void node_end_message(struct node *node, const struct msg_machine_end *end, const char *line,
		      unsigned line_bytes)
{
	if (node->ending)
		return;
	if (line_bytes > END_LINE - 1)
		line_bytes = END_LINE - 1;
	if (node->o.node == 0) {
		end_machine(node, end, line, line_bytes);
		return;
	}
	log_info("host %u has a reason to end the machine: %.*s", node->o.node, (int)line_bytes,
		 line);
	if (!node->outside->reaches(node, 0)) {
		/* Node 0 is not connected yet; only the log and the exit status can report this. */
		log_error("%.*s", (int)line_bytes, line);
		node->failed = true;
		node_end_here(node);
		return;
	}
	net_send(node->net, VNODE_DAEMON(0), MSG_MACHINE_END, end, sizeof *end, line, line_bytes);
	loop_after(node->end_timer, END_ANSWER_MS * (uint64_t)LOOP_MS);
}

static void end_saying(struct node *node, struct msg_machine_end end, const char *format,
		       va_list args)
{
	char line[END_LINE];

	end.node = node->o.node;
	vsnprintf(line, sizeof line, format, args);
	node_end_message(node, &end, line, strlen(line));
}

void node_end(struct node *node, enum end_reason reason, uint32_t status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end_saying(node, (struct msg_machine_end){ .reason = reason, .status = status }, format,
		   args);
	va_end(args);
}

void node_end_lost(struct node *node, unsigned host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end_saying(node, (struct msg_machine_end){ .reason = END_PART_DIED, .lost = host + 1 },
		   format, args);
	va_end(args);
}

/* Takes a step of the end; or node 0 has not answered in END_ANSWER_MS. */
static void on_end_timer(void *arg)
{
	struct node *node = arg;

	if (node->ending)
		supervise_proceed(node);
	else
		node_end_here(node);
}

static void stop(struct node *node, int signal_number)
{
	/* vmp-host has sent the signal: its ssh has ended, perhaps together with node 0 */
	if (node->o.secret) {
		node_end(node, END_PART_DIED, 0, "host %u: its ssh connection ended", node->o.node);
		if (!node->ending)
			loop_after(node->end_timer, END_ORPHAN_MS * LOOP_MS);
	} else {
		node_end(node, END_USER, 128 + signal_number,
			 "the daemon of host %u was told to stop by signal %d", node->o.node,
			 signal_number);
	}
}

static void on_term(void *arg) { stop(arg, SIGTERM); }
static void on_int(void *arg) { stop(arg, SIGINT); }

void supervise_start(struct node *node)
{
	node->files_socket = -1;
	for (unsigned i = 0; i < VIRTIO_SLOTS; i++)
		node->device_file[i] = -1;
	node->on_chld = loop_add(&node->loop, LOOP_SIGNAL, SIGCHLD, on_sigchld, node);
	node->on_term = loop_add(&node->loop, LOOP_SIGNAL, SIGTERM, on_term, node);
	node->on_int = loop_add(&node->loop, LOOP_SIGNAL, SIGINT, on_int, node);
	node->end_timer = loop_timer(&node->loop, on_end_timer, node);
	if (!node->on_chld || !node->on_term || !node->on_int || !node->end_timer ||
	    loop_watch(node->on_chld) || loop_watch(node->on_term) ||
	    loop_watch(node->on_int))
		die("no memory for events");
	signal(SIGPIPE, SIG_IGN);
}
