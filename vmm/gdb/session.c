/* session.c - see session.h.  One request is under way at a time: on_packet() begins it, gdb_on_answer() carries it on,
 * and reply() ends it.
 */
#include "vmm/gdb/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "vmm/gdb/registers.h"

enum { INT3 = 0xcc, SIGNAL_INTERRUPT = 2, SIGNAL_TRAP = 5, SIGNAL_ABORT = 6 };

static uint32_t all_cpus(const struct gdb_session *s)
{
	return (uint32_t)((1ull << s->n_cpus) - 1);
}

/* --- to GDB --------------------------------------------------------------------------------------------------------- */

static void reply(struct gdb_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void reply(struct gdb_session *s, const char *format, ...)
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

static void reply_error(struct gdb_session *s, unsigned error) { reply(s, "E%02x", error & 0xff); }
static void reply_ok(struct gdb_session *s) { reply(s, "OK"); }

/* The watchpoint that covers gva, or NULL. */
static struct gdb_watch *watch_at(struct gdb_session *s, gva_t gva)
{
	for (unsigned i = 0; i < GDB_MAX_WATCHES; i++)
		if (gva - s->watch[i].gva < s->watch[i].bytes)
			return &s->watch[i];
	return NULL;
}

static void reply_stop(struct gdb_session *s)
{
	const struct gdb_watch *watch = s->at_watch ? watch_at(s, s->watched_at[s->stopped_cpu]) : NULL;
	char why[32] = "";

	if (watch)
		sprintf(why, "%s:%x;", watch->reads ? "awatch" : "watch", s->watched_at[s->stopped_cpu]);
	else if (s->at_breakpoint && s->swbreak)
		strcpy(why, "swbreak:;");
	reply(s, "T%02xthread:%x;%s", s->signal, s->stopped_cpu + 1, why);
}

/* --- to the machine ------------------------------------------------------------------------------------------------- */

static void send(struct gdb_session *s, unsigned cpu, enum debug_op op)
{
	struct msg_debug request = { .cpu = cpu, .op = op };

	s->ops->to_machine(s->ctx, &request, NULL, 0);
}

/* With an answer that gdb_on_answer() waits for. */
static void ask_cpu(struct gdb_session *s, struct msg_debug request, const void *payload, size_t n)
{
	s->busy = true;
	s->asked_cpu = request.cpu;
	s->asked_op = request.op;
	s->ops->to_machine(s->ctx, &request, payload, n);
}

static void ask(struct gdb_session *s, enum debug_op op, uint32_t address, uint32_t bytes, const void *payload, size_t n)
{
	ask_cpu(s, (struct msg_debug){ .cpu = s->current, .op = op, .address = address, .bytes = bytes }, payload, n);
}

static void stop_all(struct gdb_session *s)
{
	s->state = GDB_STOPPING;
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		if (!(s->standing >> cpu & 1))
			send(s, cpu, DEBUG_STOP);
}

static void free_all(struct gdb_session *s)
{
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		send(s, cpu, DEBUG_FREE);
	send(s, 0, DEBUG_DETACH);
	memset(s->watch, 0, sizeof s->watch); /* the CPUs drop theirs */
	s->standing = s->watched = 0;
	s->state = GDB_ALONE;
	s->talked = false;
}

/* --- breakpoints ---------------------------------------------------------------------------------------------------- */

static struct gdb_breakpoint *breakpoint_at(struct gdb_session *s, gva_t gva)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && s->breakpoint[i].gva == gva)
			return &s->breakpoint[i];
	return NULL;
}

/* One of those at a physical address; several linear ones may lead there. */
static struct gdb_breakpoint *breakpoint_in_memory(struct gdb_session *s, gpa_t gpa)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && s->breakpoint[i].gpa == gpa)
			return &s->breakpoint[i];
	return NULL;
}

static struct gdb_breakpoint *breakpoint_free(struct gdb_session *s)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (!s->breakpoint[i].used)
			return &s->breakpoint[i];
	return NULL;
}

/* What was read at gpa as the guest has it. */
static void hide_breakpoints(struct gdb_session *s, gpa_t gpa, uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && s->breakpoint[i].gpa - gpa < n)
			bytes[s->breakpoint[i].gpa - gpa] = s->breakpoint[i].original;
}

/* What is to be written at gpa: breakpoints stay, and remember it. */
static void keep_breakpoints(struct gdb_session *s, gpa_t gpa, uint8_t *bytes, size_t n)
{
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && s->breakpoint[i].gpa - gpa < n)
			s->breakpoint[i].original = bytes[s->breakpoint[i].gpa - gpa];
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && s->breakpoint[i].gpa - gpa < n)
			bytes[s->breakpoint[i].gpa - gpa] = INT3;
}

/* True: an answer will come. */
static bool remove_breakpoint(struct gdb_session *s, struct gdb_breakpoint *b)
{
	uint8_t original = b->original;

	b->used = false;
	if (breakpoint_in_memory(s, b->gpa))
		return false;
	ask(s, DEBUG_WRITE, b->gpa, 0, &original, 1);
	return true;
}

/* --- a debugger comes and goes -------------------------------------------------------------------------------------- */

/* Whatever can be done now of what a leaving debugger has left to do. */
static void leave(struct gdb_session *s)
{
	if (!s->leaving || s->busy)
		return;
	if (s->state == GDB_RUNNING)
		stop_all(s);
	if (s->state != GDB_STANDING)
		return;
	for (unsigned i = 0; i < GDB_MAX_BREAKPOINTS; i++)
		if (s->breakpoint[i].used && remove_breakpoint(s, &s->breakpoint[i]))
			return;
	free_all(s);
	s->leaving = false;
	if (s->command.kind == RSP_DETACH)
		reply_ok(s);
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
	leave(s);
}

static void attach(struct gdb_session *s)
{
	s->state = GDB_ASKING;
	send(s, 0, DEBUG_ATTACH);
}

void gdb_try_again(struct gdb_session *s)
{
	if (s->state == GDB_ASKING)
		send(s, 0, DEBUG_ATTACH);
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

void gdb_init(struct gdb_session *s, const struct gdb_ops *ops, void *ctx, unsigned n_cpus, bool held)
{
	*s = (struct gdb_session){ .ops = ops, .ctx = ctx, .n_cpus = n_cpus, .state = held ? GDB_STOPPING : GDB_ALONE,
				   .signal = SIGNAL_TRAP };
}

/* --- requests ------------------------------------------------------------------------------------------------------- */

static bool is_thread(const struct gdb_session *s, int32_t thread)
{
	return thread > 0 && (uint32_t)thread <= s->n_cpus;
}

static void on_supported(struct gdb_session *s)
{
	s->swbreak = strstr(s->command.rest, "swbreak+");
	reply(s, "PacketSize=%x;QStartNoAckMode+;qXfer:features:read+;vContSupported+;swbreak+", RSP_MAX_TEXT);
}

static void on_features(struct gdb_session *s)
{
	size_t at = s->command.address, all = gdb_target_xml_bytes, n = s->command.length, room = RSP_MAX_TEXT - 1;

	if (at > all) {
		reply_error(s, EINVAL);
		return;
	}
	n = n < room ? n : room;
	n = n < all - at ? n : all - at;
	reply(s, "%c%.*s", at + n < all ? 'm' : 'l', (int)n, gdb_target_xml + at);
}

static void on_thread(struct gdb_session *s, unsigned *which)
{
	if (s->command.thread > 0 && !is_thread(s, s->command.thread)) {
		reply_error(s, EINVAL);
		return;
	}
	if (s->command.thread > 0)
		*which = s->command.thread - 1;
	reply_ok(s);
}

static void on_threads(struct gdb_session *s)
{
	char text[8 * MAX_CPUS + 1];
	size_t n = 0;

	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		n += sprintf(text + n, "%c%x", cpu ? ',' : 'm', cpu + 1);
	reply(s, "%s", text);
}

static void on_thread_text(struct gdb_session *s)
{
	char text[64], hex[2 * sizeof text + 1];
	uint32_t state;

	if (!is_thread(s, s->command.thread)) {
		reply_error(s, EINVAL);
		return;
	}
	state = s->cpu_state[s->command.thread - 1];
	rsp_hex(text, snprintf(text, sizeof text, "CPU#%d [host %u%s]", s->command.thread - 1, state >> DEBUG_CPU_HOST_SHIFT,
			       state & DEBUG_CPU_UNSTARTED ? ", not started" : state & DEBUG_CPU_HALTED ? ", halted" : ""), hex);
	reply(s, "%s", hex);
}

static void on_get_memory(struct gdb_session *s)
{
	s->done = 0;
	s->bytes = s->command.length < GDB_MAX_BYTES ? s->command.length : GDB_MAX_BYTES;
	if (s->bytes)
		ask(s, DEBUG_READ, s->command.address, s->bytes, NULL, 0);
	else
		reply(s, "%s", "");
}

static void on_set_memory(struct gdb_session *s)
{
	s->done = 0;
	s->bytes = rsp_unhex(s->command.rest, s->data, sizeof s->data);
	if (s->bytes != s->command.length || s->command.rest[2 * s->bytes])
		reply_error(s, EINVAL);
	else if (s->bytes)
		ask(s, DEBUG_READ, s->command.address, s->bytes, NULL, 0); /* where is it? */
	else
		reply_ok(s);
}

static void on_insert(struct gdb_session *s)
{
	if (breakpoint_at(s, s->command.address))
		reply_ok(s);
	else if (!breakpoint_free(s))
		reply_error(s, ENOSPC);
	else
		ask(s, DEBUG_READ, s->command.address, 1, NULL, 0);
}

static void on_remove(struct gdb_session *s)
{
	struct gdb_breakpoint *b = breakpoint_at(s, s->command.address);

	if (!b || !remove_breakpoint(s, b))
		reply_ok(s);
}

/* All CPUs get what s->watch has become, one after the other. */
static void tell_watch(struct gdb_session *s, unsigned cpu)
{
	struct debug_watch plan;

	gdb_watch_plan(s->watch, &plan);
	ask_cpu(s, (struct msg_debug){ .cpu = cpu, .op = DEBUG_WATCH }, &plan, sizeof plan);
}

static struct gdb_watch *watch_like(struct gdb_session *s, const struct gdb_watch *like)
{
	for (unsigned i = 0; i < GDB_MAX_WATCHES; i++)
		if (s->watch[i].bytes == like->bytes && s->watch[i].gva == like->gva && s->watch[i].reads == like->reads)
			return &s->watch[i];
	return NULL;
}

static void change_watch(struct gdb_session *s, struct gdb_watch *at, struct gdb_watch to)
{
	struct debug_watch plan;
	int error;

	memcpy(s->watch_before, s->watch, sizeof s->watch);
	*at = to;
	error = gdb_watch_plan(s->watch, &plan);
	if (error) {
		memcpy(s->watch, s->watch_before, sizeof s->watch);
		reply_error(s, -error);
		return;
	}
	s->watch_error = 0;
	tell_watch(s, 0);
}

static void on_watch(struct gdb_session *s, bool reads, bool insert)
{
	const struct gdb_watch none = { 0 }, wanted = { s->command.length, s->command.address, reads };
	struct gdb_watch *there = watch_like(s, &wanted), *room = watch_like(s, &none);

	if (!wanted.bytes)
		reply_error(s, EINVAL);
	else if (insert == !!there)
		reply_ok(s);
	else if (insert && !room)
		reply_error(s, ENOSPC);
	else
		change_watch(s, insert ? room : there, insert ? wanted : none);
}

/* What GDB is told of the machine's stop. */
static void note_stop(struct gdb_session *s, const struct msg_debug *stop)
{
	s->stopped_cpu = s->current = s->of_c = stop->cpu;
	s->signal = stop->why == WHY_DEAD ? SIGNAL_ABORT : SIGNAL_TRAP;
	s->at_breakpoint = stop->why == WHY_BREAKPOINT;
	s->at_watch = stop->why == WHY_WATCH;
	s->watched &= ~(s->at_watch ? 1u << stop->cpu : 0);
}

enum go { STAY, GO, STEP };

/* One that is to go has touched what is watched already, when it was stopped for another one's sake. */
static bool tell_watched(struct gdb_session *s, const enum go *go)
{
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++) {
		if (go[cpu] == STAY || !(s->watched >> cpu & 1))
			continue;
		s->watched &= ~(1u << cpu);
		if (!watch_at(s, s->watched_at[cpu]))
			continue;
		note_stop(s, &(struct msg_debug){ .cpu = cpu, .why = WHY_WATCH });
		reply_stop(s);
		return true;
	}
	return false;
}

static void resume(struct gdb_session *s, const enum go *go)
{
	if (tell_watched(s, go))
		return;
	s->state = GDB_RUNNING;
	s->resumed = true;
	s->at_breakpoint = s->at_watch = false;
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		if (go[cpu] != STAY) {
			s->standing &= ~(1u << cpu);
			s->cpu_state[cpu] &= ~(uint32_t)(DEBUG_CPU_HALTED | DEBUG_CPU_UNSTARTED);
			send(s, cpu, go[cpu] == STEP ? DEBUG_STEP : DEBUG_GO);
		}
}

/* For each CPU the first action that names it. */
static void on_resume(struct gdb_session *s)
{
	const char *rest = s->command.rest;
	enum go go[MAX_CPUS] = { STAY };
	struct rsp_action action;
	bool any = false;

	while (rsp_next_action(&rest, &action))
		for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
			if (go[cpu] == STAY && (action.thread <= 0 || (uint32_t)action.thread == cpu + 1)) {
				go[cpu] = action.step ? STEP : GO;
				any = true;
			}
	if (*rest || !any)
		reply_error(s, EINVAL);
	else
		resume(s, go);
}

static void on_old_resume(struct gdb_session *s, bool step)
{
	enum go go[MAX_CPUS];

	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		go[cpu] = step && cpu == s->of_c ? STEP : GO;
	resume(s, go);
}

static void on_kill(struct gdb_session *s)
{
	reply_ok(s);
	s->ops->end_machine(s->ctx);
}

/* The one dispatch: all CPUs stand. */
static void on_packet(struct gdb_session *s)
{
	s->command = rsp_parse(s->reader.text);
	switch (s->command.kind) {
	case RSP_SUPPORTED: on_supported(s); return;
	case RSP_NO_ACK:
		reply_ok(s);
		s->no_ack = true;
		return;
	case RSP_WHY: reply_stop(s); return;
	case RSP_GET_REGISTERS:
	case RSP_SET_REGISTERS:
	case RSP_GET_REGISTER:
	case RSP_SET_REGISTER: ask(s, DEBUG_REGISTERS, 0, 0, NULL, 0); return;
	case RSP_GET_MEMORY: on_get_memory(s); return;
	case RSP_SET_MEMORY: on_set_memory(s); return;
	case RSP_INSERT: on_insert(s); return;
	case RSP_REMOVE: on_remove(s); return;
	case RSP_WATCH: on_watch(s, false, true); return;
	case RSP_UNWATCH: on_watch(s, false, false); return;
	case RSP_WATCH_ACCESS: on_watch(s, true, true); return;
	case RSP_UNWATCH_ACCESS: on_watch(s, true, false); return;
	case RSP_THREAD_OF_G: on_thread(s, &s->current); return;
	case RSP_THREAD_OF_C: on_thread(s, &s->of_c); return;
	case RSP_THREAD_LIVES: reply(s, is_thread(s, s->command.thread) ? "OK" : "E16"); return;
	case RSP_FIRST_THREADS: on_threads(s); return;
	case RSP_MORE_THREADS: reply(s, "l"); return;
	case RSP_THREAD_TEXT: on_thread_text(s); return;
	case RSP_THREAD_NOW: reply(s, "QC%x", s->current + 1); return;
	case RSP_ATTACHED: reply(s, "1"); return;
	case RSP_FEATURES: on_features(s); return;
	case RSP_RESUMES: reply(s, "vCont;c;C;s;S"); return;
	case RSP_RESUME: on_resume(s); return;
	case RSP_CONTINUE: on_old_resume(s, false); return;
	case RSP_STEP: on_old_resume(s, true); return;
	case RSP_DETACH:
		s->leaving = true;
		leave(s);
		return;
	case RSP_KILL: on_kill(s); return;
	case RSP_UNKNOWN: break;
	}
	reply(s, "%s", "");
}

/* --- answers -------------------------------------------------------------------------------------------------------- */

static void read_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n)
{
	char hex[2 * GDB_MAX_BYTES + 1];

	if (answer->error && !s->done) {
		reply_error(s, answer->error);
		return;
	}
	n = n < s->bytes - s->done ? n : s->bytes - s->done;
	memcpy(s->data + s->done, payload, n);
	hide_breakpoints(s, answer->address, s->data + s->done, n);
	s->done += n;
	if (!answer->error && n && s->done < s->bytes) {
		ask(s, DEBUG_READ, s->command.address + s->done, s->bytes - s->done, NULL, 0);
		return;
	}
	rsp_hex(s->data, s->done, hex);
	reply(s, "%s", hex);
}

/* READ says where it is, and how much of it is in this page; WRITE that it is done. */
static void write_on(struct gdb_session *s, const struct msg_debug *answer, size_t n)
{
	uint8_t *at = s->data + s->done;

	if (answer->error) {
		reply_error(s, answer->error);
	} else if (answer->op == DEBUG_READ) {
		n = n < s->bytes - s->done ? n : s->bytes - s->done;
		keep_breakpoints(s, answer->address, at, n);
		s->done += n;
		ask(s, DEBUG_WRITE, answer->address, 0, at, n);
	} else if (s->done < s->bytes) {
		ask(s, DEBUG_READ, s->command.address + s->done, s->bytes - s->done, NULL, 0);
	} else {
		reply_ok(s);
	}
}

static void insert_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n)
{
	struct gdb_breakpoint *b = breakpoint_at(s, s->command.address), *same;
	uint8_t int3 = INT3;

	if (answer->op == DEBUG_WRITE || answer->error || n != 1) {
		if (b)
			b->used = !answer->error;
		reply(s, b && b->used ? "OK" : "E0e");
		return;
	}
	b = breakpoint_free(s);
	same = breakpoint_in_memory(s, answer->address);
	*b = (struct gdb_breakpoint){ true, s->command.address, answer->address, same ? same->original : *(const uint8_t *)payload };
	if (same)
		reply_ok(s);
	else
		ask(s, DEBUG_WRITE, b->gpa, 0, &int3, 1);
}

/* A CPU that cannot have them: then all go back to those before. */
static void watch_on(struct gdb_session *s, const struct msg_debug *answer)
{
	unsigned next = answer->cpu + 1;

	if (answer->error && !s->watch_error) {
		s->watch_error = answer->error;
		memcpy(s->watch, s->watch_before, sizeof s->watch);
		next = 0;
	}
	if (next < s->n_cpus)
		tell_watch(s, next);
	else if (s->watch_error)
		reply_error(s, s->watch_error);
	else
		reply_ok(s);
}

/* A text of registers, or why there is none. */
static void reply_registers(struct gdb_session *s, const struct debug_registers *r)
{
	char text[GDB_REGISTERS_TEXT];

	if (s->command.kind == RSP_GET_REGISTERS)
		gdb_registers_text(r, text);
	else if (gdb_register_text(r, s->command.address, text)) {
		reply_error(s, EINVAL);
		return;
	}
	reply(s, "%s", text);
}

static void set_registers(struct gdb_session *s, struct debug_registers *r)
{
	bool one = s->command.kind == RSP_SET_REGISTER;

	if (one ? gdb_register_set(r, s->command.address, s->command.rest) : gdb_registers_set(r, s->command.rest))
		reply_error(s, EINVAL);
	else
		ask(s, DEBUG_SET_REGISTERS, 0, 0, r, sizeof *r);
}

static void registers_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n)
{
	struct debug_registers r;

	s->cpu_state[answer->cpu] = answer->bytes;
	if (answer->error) {
		reply_error(s, answer->error);
	} else if (answer->op == DEBUG_SET_REGISTERS) {
		reply_ok(s);
	} else if (n != sizeof r) {
		reply_error(s, EIO);
	} else {
		memcpy(&r, payload, sizeof r);
		if (s->command.kind == RSP_GET_REGISTERS || s->command.kind == RSP_GET_REGISTER)
			reply_registers(s, &r);
		else
			set_registers(s, &r);
	}
}

static void carry_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n)
{
	s->busy = false;
	if (s->leaving) {
		leave(s);
		return;
	}
	switch (s->command.kind) {
	case RSP_GET_MEMORY: read_on(s, answer, payload, n); return;
	case RSP_SET_MEMORY: write_on(s, answer, n); return;
	case RSP_INSERT: insert_on(s, answer, payload, n); return;
	case RSP_REMOVE: reply_ok(s); return;
	case RSP_WATCH:
	case RSP_UNWATCH:
	case RSP_WATCH_ACCESS:
	case RSP_UNWATCH_ACCESS: watch_on(s, answer); return;
	default: registers_on(s, answer, payload, n);
	}
}

/* --- CPUs that come to stand ---------------------------------------------------------------------------------------- */

static void on_stopped(struct gdb_session *s, const struct msg_debug *stop)
{
	bool foreign = stop->why == WHY_BREAKPOINT && !breakpoint_in_memory(s, stop->address);

	if (s->standing >> stop->cpu & 1)
		return;
	if (s->state == GDB_RUNNING && foreign) {
		send(s, stop->cpu, DEBUG_PASS);
		return;
	}
	s->standing |= 1u << stop->cpu;
	s->cpu_state[stop->cpu] = stop->bytes;
	if (stop->why == WHY_WATCH) {
		s->watched |= 1u << stop->cpu;
		s->watched_at[stop->cpu] = stop->address;
	}
	if (s->state == GDB_RUNNING) {
		note_stop(s, stop);
		stop_all(s);
	}
}

/* Those that died before they were asked to stop, too. */
static void when_all_stand(struct gdb_session *s)
{
	if (s->standing != all_cpus(s) || s->state != GDB_STOPPING)
		return;
	s->state = GDB_STANDING;
	if (s->resumed)
		reply_stop(s);
	s->resumed = false;
	leave(s);
	if (s->pending && s->state == GDB_STANDING) {
		s->pending = false;
		on_packet(s);
	}
}

void gdb_on_answer(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n)
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
		carry_on(s, answer, payload, n);
	} else {
		log_warn("an answer of CPU %u that no debugger waits for", answer->cpu);
	}
}

void gdb_machine_ended(struct gdb_session *s, unsigned status)
{
	if (s->resumed)
		reply(s, "W%02x", status & 0xff);
	s->resumed = false;
}

/* --- bytes ---------------------------------------------------------------------------------------------------------- */

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
		on_packet(s);
		return;
	case GDB_RUNNING:
		reply_error(s, EBUSY); /* GDB never does that */
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

/* Nothing more is read while an answer is due, or CPUs are yet to stand for it. */
static bool takes_bytes(const struct gdb_session *s)
{
	return !s->busy && !s->pending && !s->leaving && s->state != GDB_ASKING && (s->state != GDB_STOPPING || !s->talked);
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
