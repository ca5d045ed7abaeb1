/* gdb_session.c - see gdb_session.h: a debugger attaches and leaves, CPUs stop, bytes become
 * packets.  One request is served at a time: gdb_packet() begins it, gdb_carry_on() continues it
 * with each answer (requests.c), and gdb_reply() ends it.
 */
#include "vmm/cli/gdb/gdb_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"

enum { SIGNAL_INTERRUPT = 2, SIGNAL_TRAP = 5, SIGNAL_ABORT = 6 };

static uint32_t all_cpus(const struct gdb_session *s)
{
	return (uint32_t)((1ull << s->n_cpus) - 1);
}

/* ---- to GDB ---- */

void gdb_reply(struct gdb_session *s, const char *format, ...)
{
	char text[RSP_MAX_TEXT + 1];
	va_list args;
	int n;

	s->busy = false;
	va_start(args, format);
	n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (s->leaving || n < 0)
		return;
	s->sent_bytes = rsp_frame(text, n < RSP_MAX_TEXT ? n : RSP_MAX_TEXT, s->sent);
	s->ops->to_gdb(s->ctx, s->sent, s->sent_bytes);
}

void gdb_reply_error(struct gdb_session *s, unsigned error) { gdb_reply(s, "E%02x", error & 0xff); }
void gdb_reply_ok(struct gdb_session *s) { gdb_reply(s, "OK"); }

struct gdb_watch *gdb_watch_at(struct gdb_session *s, gva_t gva)
{
	for (unsigned i = 0; i < GDB_MAX_WATCHES; i++)
		if (gva - s->watch[i].gva < s->watch[i].bytes)
			return &s->watch[i];
	return NULL;
}

void gdb_reply_stop(struct gdb_session *s)
{
	const struct gdb_watch *watch = s->at_watch ? gdb_watch_at(s, s->watched_at[s->stopped_cpu])
						    : NULL;
	char why[32] = "";

	if (watch)
		sprintf(why, "%s:%x;", watch->reads ? "awatch" : "watch",
			s->watched_at[s->stopped_cpu]);
	else if (s->at_breakpoint && s->swbreak)
		strcpy(why, "swbreak:;");
	gdb_reply(s, "T%02xthread:%x;%s", s->signal, s->stopped_cpu + 1, why);
}

/* ---- to the machine ---- */

void gdb_send(struct gdb_session *s, unsigned cpu, enum debug_op op)
{
	struct msg_debug request = { .cpu = cpu, .op = op };

	s->ops->to_machine(s->ctx, &request, NULL, 0);
}

/* Sends a request with an answer that gdb_on_answer() waits for. */
void gdb_ask_cpu(struct gdb_session *s, struct msg_debug request, const void *payload, size_t n)
{
	s->busy = true;
	s->asked_cpu = request.cpu;
	s->asked_op = request.op;
	s->ops->to_machine(s->ctx, &request, payload, n);
}

void gdb_ask(struct gdb_session *s, enum debug_op op, uint64_t address, uint32_t bytes,
	     const void *payload, size_t n)
{
	gdb_ask_cpu(s,
		    (struct msg_debug){
			    .cpu = s->current, .op = op, .address = address, .bytes = bytes },
		    payload, n);
}

static void stop_all(struct gdb_session *s)
{
	s->state = GDB_STOPPING;
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		if (!(s->standing >> cpu & 1))
			gdb_send(s, cpu, DEBUG_STOP);
}

static void free_all(struct gdb_session *s)
{
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		gdb_send(s, cpu, DEBUG_FREE);
	gdb_send(s, 0, DEBUG_DETACH);
	memset(s->watch, 0, sizeof s->watch); /* the CPUs drop their watchpoints themselves */
	s->standing = s->watched = 0;
	s->state = GDB_ALONE;
	s->talked = false;
}

/* ---- a debugger attaches and leaves ---- */

bool gdb_remove_breakpoint(struct gdb_session *s, struct gdb_breakpoint *b)
{
	uint8_t original = b->original;

	b->used = false;
	if (gdb_breakpoint_in_memory(s->breakpoint, b->gpa))
		return false;
	gdb_ask(s, DEBUG_WRITE, b->gpa, 0, &original, 1);
	return true;
}

/* Removes one breakpoint after another, each with an answer, and then lets all CPUs run. */
void gdb_leave(struct gdb_session *s)
{
	if (!s->leaving || s->busy)
		return;
	if (s->state == GDB_RUNNING)
		stop_all(s);
	if (s->state != GDB_STANDING)
		return;
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && gdb_remove_breakpoint(s, &s->breakpoint[i]))
			return;
	free_all(s);
	s->leaving = false;
	if (s->command.kind == RSP_DETACH)
		gdb_reply_ok(s);
	s->command.kind = RSP_UNKNOWN;
}

static void reset_connection(struct gdb_session *s)
{
	s->reader.state = RSP_OUTSIDE;
	s->pending = s->no_ack = s->swbreak = s->resumed = s->at_breakpoint = s->at_watch = false;
	s->sent_bytes = 0;
	s->current = s->of_c = 0;
}

void gdb_gone(struct gdb_session *s)
{
	reset_connection(s);
	if (s->state == GDB_ALONE || !s->talked)
		return;
	s->leaving = true;
	s->command.kind = RSP_UNKNOWN;
	gdb_leave(s);
}

static void attach(struct gdb_session *s)
{
	s->state = GDB_ASKING;
	gdb_send(s, 0, DEBUG_ATTACH);
}

void gdb_try_again(struct gdb_session *s)
{
	if (s->state == GDB_ASKING)
		gdb_send(s, 0, DEBUG_ATTACH);
}

static void on_attached(struct gdb_session *s, uint32_t error)
{
	if (s->state != GDB_ASKING)
		return;
	if (error) {
		s->ops->try_again(s->ctx);
		return;
	}
	s->stopped_cpu = 0;
	s->signal = SIGNAL_TRAP;
	stop_all(s);
}

void gdb_init(struct gdb_session *s, const struct gdb_ops *ops, void *ctx, unsigned n_cpus,
	      bool held)
{
	*s = (struct gdb_session){ .ops = ops,
				   .ctx = ctx,
				   .n_cpus = n_cpus,
				   .state = held ? GDB_STOPPING : GDB_ALONE,
				   .signal = SIGNAL_TRAP };
}

/* ---- CPUs stop ---- */

void gdb_note_stop(struct gdb_session *s, const struct msg_debug *stop)
{
	s->stopped_cpu = s->current = s->of_c = stop->cpu;
	s->signal = stop->why == WHY_DEAD ? SIGNAL_ABORT : SIGNAL_TRAP;
	s->at_breakpoint = stop->why == WHY_BREAKPOINT;
	s->at_watch = stop->why == WHY_WATCH;
	s->watched &= ~(s->at_watch ? 1u << stop->cpu : 0);
}

static void on_stopped(struct gdb_session *s, const struct msg_debug *stop)
{
	bool foreign = stop->why == WHY_BREAKPOINT &&
		       !gdb_breakpoint_in_memory(s->breakpoint, stop->address);

	if (s->standing >> stop->cpu & 1)
		return;
	if (s->state == GDB_RUNNING && foreign) {
		gdb_send(s, stop->cpu, DEBUG_PASS);
		return;
	}
	s->standing |= 1u << stop->cpu;
	s->cpu_state[stop->cpu] = stop->bytes;
	if (stop->why == WHY_WATCH) {
		s->watched |= 1u << stop->cpu;
		s->watched_at[stop->cpu] = stop->address;
	}
	if (s->state == GDB_RUNNING) {
		gdb_note_stop(s, stop);
		stop_all(s);
	}
}

/* The machine stands when all CPUs do, among them those that died before they were asked to
 * stop. */
static void when_all_stand(struct gdb_session *s)
{
	if (s->standing != all_cpus(s) || s->state != GDB_STOPPING)
		return;
	s->state = GDB_STANDING;
	if (s->resumed)
		gdb_reply_stop(s);
	s->resumed = false;
	gdb_leave(s);
	if (s->pending && s->state == GDB_STANDING) {
		s->pending = false;
		gdb_packet(s);
	}
}

void gdb_on_answer(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
		   size_t n)
{
	if (answer->cpu >= s->n_cpus)
		return;
	if (answer->op == DEBUG_ATTACH || answer->op == DEBUG_STOP) {
		if (answer->op == DEBUG_ATTACH)
			on_attached(s, answer->error);
		else
			on_stopped(s, answer);
		when_all_stand(s);
	} else if (s->busy && answer->cpu == s->asked_cpu && answer->op == s->asked_op) {
		gdb_carry_on(s, answer, payload, n);
	} else {
		log_warn("an answer of CPU %u that no debugger waits for", answer->cpu);
	}
}

void gdb_machine_ended(struct gdb_session *s, unsigned status)
{
	if (s->resumed)
		gdb_reply(s, "W%02x", status & 0xff);
	s->resumed = false;
}

/* ---- bytes ---- */

static void on_interrupt(struct gdb_session *s)
{
	if (s->state != GDB_RUNNING)
		return;
	s->stopped_cpu = s->current;
	s->signal = SIGNAL_INTERRUPT;
	s->at_breakpoint = s->at_watch = false;
	stop_all(s);
}

static void on_whole_packet(struct gdb_session *s)
{
	s->talked = true;
	if (!s->no_ack)
		s->ops->to_gdb(s->ctx, "+", 1);
	switch (s->state) {
	case GDB_STANDING:
		gdb_packet(s);
		return;
	case GDB_RUNNING:
		gdb_reply_error(s, EBUSY); /* GDB never sends a packet then */
		return;
	case GDB_ALONE:
		attach(s);
		break;
	case GDB_ASKING:
	case GDB_STOPPING:
		break;
	}
	s->pending = true;
}

/* Reads nothing more while an answer is due, or while CPUs must still stop for the current
 * packet. */
static bool takes_bytes(const struct gdb_session *s)
{
	return !s->busy && !s->pending && !s->leaving && s->state != GDB_ASKING &&
	       (s->state != GDB_STOPPING || !s->talked);
}

size_t gdb_take(struct gdb_session *s, const uint8_t *bytes, size_t n)
{
	size_t at = 0;

	while (at < n && takes_bytes(s))
		switch (rsp_read(&s->reader, bytes[at++])) {
		case RSP_NOTHING:
		case RSP_ACK:
			break;
		case RSP_PACKET:
			on_whole_packet(s);
			break;
		case RSP_INTERRUPT:
			on_interrupt(s);
			break;
		case RSP_NAK:
			s->ops->to_gdb(s->ctx, s->sent, s->sent_bytes);
			break;
		case RSP_DAMAGED:
			s->ops->to_gdb(s->ctx, "-", 1);
			break;
		case RSP_FOREIGN:
			s->ops->hang_up(s->ctx);
			return n;
		}
	return at;
}
