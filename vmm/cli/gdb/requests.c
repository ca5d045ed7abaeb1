/* requests.c - what GDB asks of a machine that stands: how each request begins, and how it
 * continues with the CPUs' answers. */
#include "vmm/cli/gdb/gdb_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "vmm/cli/gdb/registers.h"

/* ---- features and threads ---- */

static bool is_thread(const struct gdb_session *s, int32_t thread)
{
	return thread > 0 && (uint32_t)thread <= s->n_cpus;
}

static void on_supported(struct gdb_session *s)
{
	s->swbreak = strstr(s->command.rest, "swbreak+");
	gdb_reply(s, "PacketSize=%x;QStartNoAckMode+;qXfer:features:read+;vContSupported+;swbreak+",
		  RSP_MAX_TEXT);
}

static void on_features(struct gdb_session *s)
{
	size_t at = s->command.address, all = gdb_target_xml_bytes, n = s->command.length,
	       room = RSP_MAX_TEXT - 1;

	if (at > all) {
		gdb_reply_error(s, EINVAL);
		return;
	}
	n = n < room ? n : room;
	n = n < all - at ? n : all - at;
	gdb_reply(s, "%c%.*s", at + n < all ? 'm' : 'l', (int)n, gdb_target_xml + at);
}

static void on_thread(struct gdb_session *s, unsigned *which)
{
	if (s->command.thread > 0 && !is_thread(s, s->command.thread)) {
		gdb_reply_error(s, EINVAL);
		return;
	}
	if (s->command.thread > 0)
		*which = s->command.thread - 1;
	gdb_reply_ok(s);
}

static void on_threads(struct gdb_session *s)
{
	char text[8 * MAX_CPUS + 1];
	size_t n = 0;

	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
		n += sprintf(text + n, "%c%x", cpu ? ',' : 'm', cpu + 1);
	gdb_reply(s, "%s", text);
}

static void on_thread_text(struct gdb_session *s)
{
	char text[64], hex[2 * sizeof text + 1];
	uint32_t state;

	if (!is_thread(s, s->command.thread)) {
		gdb_reply_error(s, EINVAL);
		return;
	}
	state = s->cpu_state[s->command.thread - 1];
	int n = snprintf(text, sizeof text, "CPU#%d [host %u%s]", s->command.thread - 1,
			 state >> DEBUG_CPU_HOST_SHIFT,
			 state & DEBUG_CPU_UNSTARTED ? ", not started"
			 : state & DEBUG_CPU_HALTED  ? ", halted"
						     : "");
	rsp_hex(text, (size_t)n, hex);
	gdb_reply(s, "%s", hex);
}

/* ---- memory ---- */

static void on_get_memory(struct gdb_session *s)
{
	s->done = 0;
	s->bytes = s->command.length < GDB_MAX_BYTES ? s->command.length : GDB_MAX_BYTES;
	if (s->bytes)
		gdb_ask(s, DEBUG_READ, s->command.address, s->bytes, NULL, 0);
	else
		gdb_reply(s, "%s", "");
}

static void read_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
		    size_t n)
{
	char hex[2 * GDB_MAX_BYTES + 1];

	if (answer->error && !s->done) {
		gdb_reply_error(s, answer->error);
		return;
	}
	n = n < s->bytes - s->done ? n : s->bytes - s->done;
	memcpy(s->data + s->done, payload, n);
	gdb_hide_breakpoints(s->breakpoint, answer->address, s->data + s->done, n);
	s->done += n;
	if (!answer->error && n && s->done < s->bytes) {
		gdb_ask(s, DEBUG_READ, s->command.address + s->done, s->bytes - s->done, NULL, 0);
		return;
	}
	rsp_hex(s->data, s->done, hex);
	gdb_reply(s, "%s", hex);
}

static void on_set_memory(struct gdb_session *s)
{
	s->done = 0;
	s->bytes = rsp_unhex(s->command.rest, s->data, sizeof s->data);
	if (s->bytes != s->command.length || s->command.rest[2 * s->bytes])
		gdb_reply_error(s, EINVAL);
	else if (s->bytes)
		/* to learn its physical address */
		gdb_ask(s, DEBUG_READ, s->command.address, s->bytes, NULL, 0);
	else
		gdb_reply_ok(s);
}

/* Continues a write.  READ's answer says the physical address, and how much of the text is in this
 * page; WRITE's answer says that this part is written. */
static void write_on(struct gdb_session *s, const struct msg_debug *answer, size_t n)
{
	uint8_t *at = s->data + s->done;

	if (answer->error) {
		gdb_reply_error(s, answer->error);
	} else if (answer->op == DEBUG_READ) {
		n = n < s->bytes - s->done ? n : s->bytes - s->done;
		gdb_keep_breakpoints(s->breakpoint, answer->address, at, n);
		s->done += n;
		gdb_ask(s, DEBUG_WRITE, answer->address, 0, at, n);
	} else if (s->done < s->bytes) {
		gdb_ask(s, DEBUG_READ, s->command.address + s->done, s->bytes - s->done, NULL, 0);
	} else {
		gdb_reply_ok(s);
	}
}

/* ---- breakpoints ---- */

static void on_insert(struct gdb_session *s)
{
	if (gdb_breakpoint_at(s->breakpoint, s->command.address))
		gdb_reply_ok(s);
	else if (!gdb_breakpoint_free(s->breakpoint))
		gdb_reply_error(s, ENOSPC);
	else
		gdb_ask(s, DEBUG_READ, s->command.address, 1, NULL, 0);
}

static void insert_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
		      size_t n)
{
	struct gdb_breakpoint *b = gdb_breakpoint_at(s->breakpoint, s->command.address), *same;
	uint8_t int3 = GDB_INT3;

	if (answer->op == DEBUG_WRITE || answer->error || n != 1) {
		if (b)
			b->used = !answer->error;
		gdb_reply(s, b && b->used ? "OK" : "E0e");
		return;
	}
	b = gdb_breakpoint_free(s->breakpoint);
	same = gdb_breakpoint_in_memory(s->breakpoint, answer->address);
	*b = (struct gdb_breakpoint){ true, s->command.address, answer->address,
				      same ? same->original : *(const uint8_t *)payload };
	if (same)
		gdb_reply_ok(s);
	else
		gdb_ask(s, DEBUG_WRITE, b->gpa, 0, &int3, 1);
}

static void on_remove(struct gdb_session *s)
{
	struct gdb_breakpoint *b = gdb_breakpoint_at(s->breakpoint, s->command.address);

	if (!b || !gdb_remove_breakpoint(s, b))
		gdb_reply_ok(s);
}

/* ---- watchpoints ---- */

/* Sends the watchpoints in s->watch to one CPU; watch_on() goes on with the next CPU. */
static void tell_watch(struct gdb_session *s, unsigned cpu)
{
	struct debug_watch plan;

	gdb_watch_plan(s->watch, &plan);
	gdb_ask_cpu(s, (struct msg_debug){ .cpu = cpu, .op = DEBUG_WATCH }, &plan, sizeof plan);
}

static struct gdb_watch *watch_like(struct gdb_session *s, const struct gdb_watch *like)
{
	for (unsigned i = 0; i < GDB_MAX_WATCHES; i++)
		if (s->watch[i].bytes == like->bytes && s->watch[i].gva == like->gva &&
		    s->watch[i].reads == like->reads)
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
		gdb_reply_error(s, -error);
		return;
	}
	s->watch_error = 0;
	tell_watch(s, 0);
}

static void on_watch(struct gdb_session *s, bool reads, bool insert)
{
	const struct gdb_watch none = { 0 },
			       wanted = { s->command.length, s->command.address, reads };
	struct gdb_watch *there = watch_like(s, &wanted), *room = watch_like(s, &none);

	if (!wanted.bytes)
		gdb_reply_error(s, EINVAL);
	else if (insert == !!there)
		gdb_reply_ok(s);
	else if (insert && !room)
		gdb_reply_error(s, ENOSPC);
	else
		change_watch(s, insert ? room : there, insert ? wanted : none);
}

/* Continues a change of watchpoints.  If a CPU refuses the new ones, all CPUs go back to the old
 * ones. */
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
		gdb_reply_error(s, s->watch_error);
	else
		gdb_reply_ok(s);
}

/* ---- registers ---- */

/* Replies with the text of all registers or of one, or with an error. */
static void reply_registers(struct gdb_session *s, const struct debug_registers *r)
{
	char text[GDB_REGISTERS_TEXT];

	if (s->command.kind == RSP_GET_REGISTERS)
		gdb_registers_text(r, text);
	else if (gdb_register_text(r, s->command.address, text)) {
		gdb_reply_error(s, EINVAL);
		return;
	}
	gdb_reply(s, "%s", text);
}

static void set_registers(struct gdb_session *s, struct debug_registers *r)
{
	bool one = s->command.kind == RSP_SET_REGISTER;

	if (one ? gdb_register_set(r, s->command.address, s->command.rest)
		: gdb_registers_set(r, s->command.rest))
		gdb_reply_error(s, EINVAL);
	else
		gdb_ask(s, DEBUG_SET_REGISTERS, 0, 0, r, sizeof *r);
}

static void registers_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
			 size_t n)
{
	struct debug_registers r;

	s->cpu_state[answer->cpu] = answer->bytes;
	if (answer->error) {
		gdb_reply_error(s, answer->error);
	} else if (answer->op == DEBUG_SET_REGISTERS) {
		gdb_reply_ok(s);
	} else if (n != sizeof r) {
		gdb_reply_error(s, EIO);
	} else {
		memcpy(&r, payload, sizeof r);
		if (s->command.kind == RSP_GET_REGISTERS || s->command.kind == RSP_GET_REGISTER)
			reply_registers(s, &r);
		else
			set_registers(s, &r);
	}
}

/* ---- resuming ---- */

enum go { STAY, GO, STEP };

/* Reports a CPU that is about to run and that touched watched memory while it was being stopped for
 * another one.  Returns true if there is one; then no CPU runs. */
static bool tell_watched(struct gdb_session *s, const enum go *go)
{
	for (unsigned cpu = 0; cpu < s->n_cpus; cpu++) {
		if (go[cpu] == STAY || !(s->watched >> cpu & 1))
			continue;
		s->watched &= ~(1u << cpu);
		if (!gdb_watch_at(s, s->watched_at[cpu]))
			continue;
		gdb_note_stop(s, &(struct msg_debug){ .cpu = cpu, .why = WHY_WATCH });
		gdb_reply_stop(s);
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
			gdb_send(s, cpu, go[cpu] == STEP ? DEBUG_STEP : DEBUG_GO);
		}
}

/* For each CPU, the first action that names it counts. */
static void on_resume(struct gdb_session *s)
{
	const char *rest = s->command.rest;
	enum go go[MAX_CPUS] = { STAY };
	struct rsp_action action;
	bool any = false;

	while (rsp_next_action(&rest, &action))
		for (unsigned cpu = 0; cpu < s->n_cpus; cpu++)
			if (go[cpu] == STAY &&
			    (action.thread <= 0 || (uint32_t)action.thread == cpu + 1)) {
				go[cpu] = action.step ? STEP : GO;
				any = true;
			}
	if (*rest || !any)
		gdb_reply_error(s, EINVAL);
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
	gdb_reply_ok(s);
	s->ops->end_machine(s->ctx);
}

/* ---- dispatch ---- */

/* Begins a request.  All CPUs stand. */
void gdb_packet(struct gdb_session *s)
{
	s->command = rsp_parse(s->reader.text);
	switch (s->command.kind) {
	case RSP_SUPPORTED: on_supported(s); return;
	case RSP_NO_ACK:
		gdb_reply_ok(s);
		s->no_ack = true;
		return;
	case RSP_WHY: gdb_reply_stop(s); return;
	case RSP_GET_REGISTERS:
	case RSP_SET_REGISTERS:
	case RSP_GET_REGISTER:
	case RSP_SET_REGISTER: gdb_ask(s, DEBUG_REGISTERS, 0, 0, NULL, 0); return;
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
	case RSP_THREAD_LIVES: gdb_reply(s, is_thread(s, s->command.thread) ? "OK" : "E16"); return;
	case RSP_FIRST_THREADS: on_threads(s); return;
	case RSP_MORE_THREADS: gdb_reply(s, "l"); return;
	case RSP_THREAD_TEXT: on_thread_text(s); return;
	case RSP_THREAD_NOW: gdb_reply(s, "QC%x", s->current + 1); return;
	case RSP_ATTACHED: gdb_reply(s, "1"); return;
	case RSP_FEATURES: on_features(s); return;
	case RSP_RESUMES: gdb_reply(s, "vCont;c;C;s;S"); return;
	case RSP_RESUME: on_resume(s); return;
	case RSP_CONTINUE: on_old_resume(s, false); return;
	case RSP_STEP: on_old_resume(s, true); return;
	case RSP_DETACH:
		s->leaving = true;
		gdb_leave(s);
		return;
	case RSP_KILL: on_kill(s); return;
	case RSP_UNKNOWN: break;
	}
	gdb_reply(s, "%s", "");
}

void gdb_carry_on(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
		  size_t n)
{
	s->busy = false;
	if (s->leaving) {
		gdb_leave(s);
		return;
	}
	switch (s->command.kind) {
	case RSP_GET_MEMORY: read_on(s, answer, payload, n); return;
	case RSP_SET_MEMORY: write_on(s, answer, n); return;
	case RSP_INSERT: insert_on(s, answer, payload, n); return;
	case RSP_REMOVE: gdb_reply_ok(s); return;
	case RSP_WATCH:
	case RSP_UNWATCH:
	case RSP_WATCH_ACCESS:
	case RSP_UNWATCH_ACCESS: watch_on(s, answer); return;
	default: registers_on(s, answer, payload, n);
	}
}
