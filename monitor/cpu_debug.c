/* cpu_debug.c - stops a CPU for a debugger, which reads and writes the CPU's registers and memory.
 *
 * The debugger's session (vmm/cli/gdb/gdb_session.c) decides which breakpoints exist, which CPUs
 * run and which are stopped.  Here a CPU stops between two instructions: because of a request,
 * after a single step, at an int3 or at a watchpoint.  It reports the stop, and serves requests
 * until it may go on.  A debugger's memory accesses go through pins, like all others.
 *
 * Paging is off when CPU 0 starts.  Kernel addresses are then translated to where the kernel was
 * loaded, so that breakpoints can be set before the first instruction.
 */
#include "monitor/fpregs.h"
#include "monitor/monitor.h"

#include <errno.h>
#include <string.h>
#include "base/log.h"

enum {
	FLAGS_SETTABLE = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF | EFLAGS_IF |
			 EFLAGS_DF | EFLAGS_OF,
	CORE_EIP = 8,
	CORE_EFLAGS,
	CORE_SEGMENTS
};

static int translate(struct monitor *m, gva_t gva, gpa_t *gpa)
{
	struct vcpu_walk walk;
	bool used;

	const gva_t base = kernel_base(m->shm->ram_pages);

	if (!(m->vcpu.cr0 & CR0_PG) && gva >= base)
		*gpa = gva - base;
	else if (vcpu_peek(&m->vcpu, gva, &walk, &used))
		return -EFAULT;
	else
		*gpa = walk.gpa;
	return ram_has(m->shm->ram_pages, gpa_to_gfn(*gpa)) ? 0 : -EFAULT;
}

static void answer(struct monitor *m, const struct msg_debug *body, const void *payload,
		   size_t bytes)
{
	channel_send(m, MSG_DEBUG_ANSWER, VNODE_CLI, body, sizeof *body, payload, bytes);
}

static uint32_t state(const struct monitor *m)
{
	return (m->vcpu.halted ? DEBUG_CPU_HALTED : 0) | (m->started ? 0 : DEBUG_CPU_UNSTARTED) |
	       m->shm->node << DEBUG_CPU_HOST_SHIFT;
}

static void answer_stop(struct monitor *m, enum debug_why why)
{
	struct msg_debug stop = { .cpu = m->cpu, .op = DEBUG_STOP, .why = why, .bytes = state(m) };

	if (why == WHY_WATCH)
		stop.address = m->debug.watched;
	else if (translate(m, m->vcpu.eip, &stop.address))
		stop.address = ~0ull;
	answer(m, &stop, NULL, 0);
}

/* --- requests --------------------------------------------------------------------------------- */

static void on_read(struct monitor *m, struct msg_debug *body)
{
	uint32_t left = PAGE_BYTES - (body->address & PAGE_MASK),
		 bytes = body->bytes < left ? body->bytes : left;
	static uint8_t data[PAGE_BYTES];
	gpa_t gpa;

	body->error = -translate(m, (gva_t)body->address, &gpa);
	if (body->error)
		bytes = 0;
	if (bytes) {
		memcpy(data,
		       (uint8_t *)guestmem_pin(m, gpa_to_gfn(gpa), PAGE_READ) + (gpa & PAGE_MASK),
		       bytes);
		guestmem_unpin(m, gpa_to_gfn(gpa));
		body->address = gpa;
	}
	body->bytes = bytes;
	answer(m, body, data, bytes);
}

static void on_write(struct monitor *m, struct msg_debug *body, const void *data, size_t bytes)
{
	gfn_t gfn = gpa_to_gfn(body->address);

	body->error = ram_has(m->shm->ram_pages, gfn) &&
				      bytes <= PAGE_BYTES - (body->address & PAGE_MASK)
			      ? 0
			      : EFAULT;
	if (!body->error) {
		memcpy((uint8_t *)guestmem_pin(m, gfn, PAGE_WRITE) + (body->address & PAGE_MASK),
		       data, bytes);
		guestmem_unpin(m, gfn);
	}
	answer(m, body, NULL, 0);
}

static uint32_t segment_base(struct monitor *m, uint16_t selector)
{
	struct vcpu_segment segment;

	return vcpu_segment(&m->vcpu, selector >> 3, &segment) ? 0 : segment.base;
}

static void fpu_get(struct monitor *m, struct debug_registers *r)
{
	static uint8_t state[FPSTATE_MAX_BYTES];

	if (process_fpu_save(m, state) > 0)
		fpregs_get(state + FPSTATE_LEGACY_AT, r);
}

/* 0, or -errno. */
static int fpu_set(struct monitor *m, const struct debug_registers *r)
{
	static uint8_t state[FPSTATE_MAX_BYTES];
	int bytes = process_fpu_save(m, state);
	struct debug_registers now;

	if (bytes < 0)
		return bytes;
	fpregs_get(state + FPSTATE_LEGACY_AT, &now);
	if (fpregs_same(&now, r))
		return 0;
	fpregs_set(state + FPSTATE_LEGACY_AT, r);
	return process_fpu_change(m, state, bytes);
}

static void on_registers(struct monitor *m, struct msg_debug *body)
{
	static const enum vcpu_seg segments[] = { SEG_CS, SEG_SS, SEG_DS, SEG_ES, SEG_FS, SEG_GS };
	struct vcpu *v = &m->vcpu;
	struct debug_registers r = { .cr0 = v->cr0, .cr2 = v->cr2, .cr3 = v->cr3, .cr4 = v->cr4 };

	memcpy(r.core, v->gpr, sizeof v->gpr);
	r.core[CORE_EIP] = v->eip;
	r.core[CORE_EFLAGS] = v->eflags;
	for (unsigned i = 0; i < ARRAY_LEN(segments); i++)
		r.core[CORE_SEGMENTS + i] = v->seg[segments[i]];
	r.fs_base = segment_base(m, v->seg[SEG_FS]);
	r.gs_base = segment_base(m, v->seg[SEG_GS]);
	fpu_get(m, &r);
	body->bytes = state(m);
	answer(m, body, &r, sizeof r);
}

/* Selectors are not changed: one that cannot be loaded would end the machine.  A halted CPU whose
 * EIP is changed wakes up. */
static void on_set_registers(struct monitor *m, struct msg_debug *body, const void *data,
			     size_t bytes)
{
	struct vcpu *v = &m->vcpu;
	struct debug_registers r;

	body->error = EINVAL;
	if (bytes == sizeof r) {
		memcpy(&r, data, sizeof r);
		body->error = -fpu_set(m, &r);
	}
	if (!body->error) {
		memcpy(v->gpr, r.core, sizeof v->gpr);
		v->eflags = (v->eflags & ~(uint32_t)FLAGS_SETTABLE) |
			    (r.core[CORE_EFLAGS] & FLAGS_SETTABLE);
		if (m->started && v->eip != r.core[CORE_EIP])
			v->halted = false;
		v->eip = r.core[CORE_EIP];
	}
	body->bytes = state(m);
	answer(m, body, NULL, 0);
}

static void on_watch(struct monitor *m, struct msg_debug *body, const void *data, size_t bytes)
{
	struct debug_watch watch;

	body->error = EINVAL;
	if (bytes == sizeof watch) {
		memcpy(&watch, data, sizeof watch);
		body->error = -watch_set(m, &watch);
	}
	answer(m, body, NULL, 0);
}

/* --- stopping and continuing ------------------------------------------------------------------ */

static void attach(struct monitor *m, bool attached)
{
	m->debug.told.attached = attached;
	m->direct->debug = m->debug.told;
}

static void stop(struct monitor *m)
{
	attach(m, true);
	if (m->debug.standing)
		return;
	m->debug.stop_wanted = true;
	if (m->started)
		return; /* answered when it has stopped, between two instructions */
	m->debug.standing = true;
	answer_stop(m, WHY_ASKED);
}

static void go(struct monitor *m, bool step)
{
	m->debug.stop_wanted = m->debug.standing = false;
	m->debug.told.step = (struct debug_step){ .wanted = step, .from_eip = m->vcpu.eip };
	m->direct->debug = m->debug.told;
}

void debug_on_request(struct monitor *m, const struct message *message,
		      const struct msg_debug *request)
{
	const void *payload = message->payload;
	size_t bytes = message->payload_bytes;
	struct msg_debug body = *request;

	if (body.op != DEBUG_STOP && !m->debug.standing) {
		body.error = EBUSY;
		answer(m, &body, NULL, 0);
		return;
	}
	switch (body.op) {
	case DEBUG_STOP: stop(m); return;
	case DEBUG_GO: go(m, false); return;
	case DEBUG_STEP: go(m, true); return;
	case DEBUG_PASS:
		m->debug.pass = true;
		go(m, m->debug.told.step.wanted);
		return;
	case DEBUG_FREE:
		watch_set(m, &(struct debug_watch){ 0 });
		attach(m, false);
		go(m, false);
		return;
	case DEBUG_READ: on_read(m, &body); return;
	case DEBUG_WRITE: on_write(m, &body, payload, bytes); return;
	case DEBUG_REGISTERS: on_registers(m, &body); return;
	case DEBUG_SET_REGISTERS: on_set_registers(m, &body, payload, bytes); return;
	case DEBUG_WATCH: on_watch(m, &body, payload, bytes); return;
	default: log_warn("CPU %u: unexpected request %u of a debugger", m->cpu, body.op);
	}
}

void debug_stand(struct monitor *m, enum debug_why why)
{
	enum time_kind before = time_switch(m, TIME_IDLE);

	m->debug.stop_wanted = true;
	if (!m->debug.standing)
		answer_stop(m, why);
	m->debug.standing = true;
	while (m->debug.standing && !m->ending)
		channel_serve(m);
	/* Requests that arrived meanwhile wait for an instruction boundary: make the loop check. */
	if (m->freeze_wanted || m->handover.give_wanted || rings_wait())
		hostshm_post(m->shm, m->cpu, POST_MESSAGE);
	time_switch(m, before);
}

/* (TRICKS: breakpoint-met-again) */
bool debug_breakpoint(struct monitor *m)
{
	bool pass;

	m->vcpu.eip--;
	debug_stand(m, WHY_BREAKPOINT);
	pass = m->debug.pass;
	m->debug.pass = false;
	if (pass)
		m->vcpu.eip++;
	return !pass;
}

bool debug_watchpoint(struct monitor *m)
{
	if (!watch_hit(m))
		return false;
	debug_stand(m, WHY_WATCH);
	return true;
}
