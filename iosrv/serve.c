/* serve.c - handles the messages to the I/O server: an access of a chip, bytes for one, a step of a
 * snapshot.
 *
 * Between SAVE and THAW the server is frozen.  Messages that arrive meanwhile are queued and served
 * after the thaw, since they are not part of the saved state.  The same holds for what arrives
 * while a saved state is loaded: that state would take the place of what came before it.
 */
#include "iosrv/iosrv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "iosrv/virtio.h"

static struct {
	bool still, loads;
	unsigned cpu;		     /* the CPU whose access is being served */
	bool holds;		     /* that access is not answered yet */
	uint32_t held;		     /* CPUs whose accesses are not answered yet */
	struct msg_io_reply held_reply[MAX_CPUS];
	bool due[N_CHIPS];	     /* chips whose timer has expired while frozen */
	struct msg_header **waiting; /* each with its body behind it */
	size_t count;
} server;

void iosrv_fail(const char *format, ...)
{
	struct msg_machine_end end = { .reason = END_FAILURE, .status = EXIT_VMP_FAILURE };
	char line[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n >= (int)sizeof line)
		n = sizeof line - 1;
	iosrv_send(MSG_MACHINE_END, VNODE_DAEMON(0), &end, sizeof end, line, n);
}

void iosrv_raise(unsigned line)
{
	ioapic_raise(line);
}

void iosrv_interrupt(uint32_t cpus, uint8_t vector, bool nmi)
{
	for (; cpus; cpus &= cpus - 1) { /* one message per CPU: each may be on another host */
		unsigned cpu = __builtin_ctz(cpus);
		struct msg_interrupt body = { .cpu_mask = 1u << cpu, .vector = vector,
					      .kind = nmi ? INTERRUPT_NMI : INTERRUPT_FIXED };

		iosrv_send(MSG_INTERRUPT, VNODE_CPU(cpu), &body, sizeof body, NULL, 0);
	}
}

bool serve_stands_still(void) { return server.still; }
unsigned serve_cpu(void) { return server.cpu; }
void serve_hold(void) { server.holds = true; }

void serve_release(void)
{
	for (; server.held; server.held &= server.held - 1) {
		unsigned cpu = __builtin_ctz(server.held);

		iosrv_send(MSG_IO_REPLY, VNODE_CPU(cpu), &server.held_reply[cpu],
			   sizeof server.held_reply[cpu], NULL, 0);
	}
}

/* Serve an access.  A malformed request ends the machine: its CPU would wait for ever. */
void serve_io_request(void *none, const struct message *m, const struct msg_io_request *q)
{
	struct msg_io_reply reply;
	uint8_t data[PAGE_BYTES];
	size_t bytes = (size_t)q->size * q->count;
	bool in, string;

	(void)none;
	if (q->cpu >= iosrv_cpus() || (q->size != 1 && q->size != 2 && q->size != 4) || !q->count ||
	    q->count > PAGE_BYTES / q->size || q->kind > IO_MMIO_WRITE) {
		iosrv_fail("CPU %u sent a malformed I/O request (%u x %u bytes, kind %u); "
			   "this is a bug in vmp",
			   q->cpu, q->count, q->size, q->kind);
		return;
	}
	in = q->kind == IO_PORT_IN || q->kind == IO_MMIO_READ;
	string = q->count > 1;
	if (!in && string && m->payload_bytes != bytes) {
		iosrv_fail(
			"an I/O request of CPU %u carries %u bytes for %zu; this is a bug in vmp",
			q->cpu, m->payload_bytes, bytes);
		return;
	}
	if (!in && string)
		memcpy(data, m->payload, bytes);
	reply = (struct msg_io_reply){ .cpu = q->cpu, .seq = q->seq, .count = q->count };
	server.cpu = q->cpu;
	server.holds = false;
	reply.value = chips_access(q, data);
	if (server.holds) { /* it is a write: no bytes go back */
		server.held |= 1u << q->cpu;
		server.held_reply[q->cpu] = reply;
		return;
	}
	iosrv_send(MSG_IO_REPLY, VNODE_CPU(q->cpu), &reply, sizeof reply, data,
		   in && string ? bytes : 0);
}

void serve_virtio_ask(void *none, const struct message *m, const struct msg_virtio *ask)
{
	(void)none;
	virtio_on_ask(ask, m->payload, m->payload_bytes);
}

void serve_stream(void *none, const struct message *m, const struct msg_stream *stream)
{
	(void)none;
	stream_input(stream, m->payload, m->payload_bytes);
}

void serve_stream_room(void *none, const struct message *m, const struct msg_stream_room *room)
{
	(void)none, (void)m;
	stream_room(room);
}

void serve_exec(void *none, const struct message *m, const struct msg_exec *exec)
{
	(void)none;
	agent_request(exec, m->payload, m->payload_bytes);
}

void serve_console(void *none, const struct message *m, const struct msg_console *console)
{
	(void)none, (void)console;
	uart_input(m->payload, m->payload_bytes);
}

void serve_console_size(void *none, const struct message *m, const struct msg_console_size *size)
{
	(void)none, (void)m;
	stream_window(size->columns, size->rows);
}

void serve_console_attach(void *none, const struct message *m,
			  const struct msg_console_attach *attach)
{
	(void)none, (void)m;
	uart_attach(attach->client, attach->backlog);
}

/* --- a snapshot of the machine: frozen between SAVE and THAW --- */

static void put_aside(const struct message *m)
{
	struct msg_header *copy = malloc(sizeof *copy + m->header.bytes);

	server.waiting = reallocarray(server.waiting, server.count + 1, sizeof *server.waiting);
	if (!copy || !server.waiting)
		die("no memory for what arrives during a snapshot");
	*copy = m->header;
	memcpy(copy + 1, m->body, m->header.bytes);
	server.waiting[server.count++] = copy;
}

static void serve_waiting(struct msg_header **waiting, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct message m = packet_message(waiting[i], waiting[i] + 1);

		serve(&m);
		free(waiting[i]);
	}
	free(waiting);
}

static void go_on(void)
{
	struct msg_header **waiting = server.waiting;
	size_t count = server.count;
	bool due[N_CHIPS];

	memcpy(due, server.due, sizeof due);
	memset(&server, 0, sizeof server);
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (due[i])
			chips[i]->on_timer();
	net_start();
	serve_waiting(waiting, count);
}

/* The saved state has been loaded; what waited for it comes after it. */
static void on_loaded(void)
{
	struct msg_header **waiting = server.waiting;
	size_t count = server.count;

	server.loads = false;
	server.waiting = NULL;
	server.count = 0;
	serve_waiting(waiting, count);
}

static bool is_thaw(const struct message *m)
{
	struct msg_snapshot snapshot;

	if (m->header.type != MSG_SNAPSHOT)
		return false;
	memcpy(&snapshot, m->body, sizeof snapshot);
	return snapshot.step == SNAPSHOT_THAW;
}

void serve_timer(const struct chip *chip)
{
	if (server.still)
		server.due[chips_number(chip)] = true;
	else
		chip->on_timer();
}

void serve_snapshot(void *none, const struct message *m, const struct msg_snapshot *body)
{
	struct msg_snapshot snapshot = *body;

	(void)none, (void)m;
	switch (snapshot.step) {
	case SNAPSHOT_SAVE:
		/* a flush of the disk: its interrupt belongs to the saved state */
		iosrv_finish_work();
		snapshot.result = (uint32_t)-snapshot_capture(snapshot.result);
		snapshot.step = SNAPSHOT_SAVED;
		iosrv_send(MSG_SNAPSHOT, VNODE_DAEMON(0), &snapshot, sizeof snapshot, NULL, 0);
		server.still = true;
		return;
	case SNAPSHOT_END:
		snapshot_forget();
		return;
	case SNAPSHOT_THAW: /* of a machine that was loaded */
		return;
	default:
		iosrv_fail("the I/O server was sent step %u of a snapshot; this is a bug in vmp",
			   snapshot.step);
	}
}

void serve_snapshot_pull(void *none, const struct message *m, const struct msg_snapshot_pull *pull)
{
	(void)none, (void)m;
	snapshot_pull(pull);
}

void serve_snapshot_item(void *none, const struct message *m, const struct msg_snapshot_item *item)
{
	(void)none;
	snapshot_load(item, m->payload, m->payload_bytes);
	if (item->kind == SNAPSHOT_LAST && server.loads)
		on_loaded();
}

static bool dispatch(const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_IOSRV(name, how, handler) SERVE_##how(NULL, m, name, handler)
#include "base/msg.def"
	}
	return false;
}

void serve(const struct message *m)
{
	bool goes_on_elsewhere = m->header.type == MSG_SNAPSHOT_PULL;
	bool loads = m->header.type == MSG_SNAPSHOT_ITEM;

	if (server.still && is_thaw(m))
		go_on();
	else if ((server.still && !goes_on_elsewhere) || (server.loads && !loads))
		put_aside(m);
	else
		bug_on(!dispatch(m)); /* iosrv_main.c has refused what is not for the I/O server */
}

void serve_start(bool loads)
{
	for (size_t i = 0; i < server.count; i++)
		free(server.waiting[i]);
	free(server.waiting);
	memset(&server, 0, sizeof server);
	server.loads = loads;
	snapshot_forget();
	chips_reset();
}
