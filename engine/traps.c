/* traps.c - what a stop of guest code means.
 *
 * The four kinds of memory stop of the thesis (section 5.3, around its figure 5.6):
 *   SIGSEGV with an address     the guest's own page fault, or a host mapping that is not made
 *                               yet, or device memory
 *   SIGSEGV without an address  an instruction to emulate, a marker, or a user segment's limit
 *   SIGBUS with an address      a page that this host does not hold
 *   SIGBUS without an address   the stack segment's limit
 */
#include "engine/engine.h"

#include <linux/signal.h>

/* si_code of signals that the host's kernel raises (the uapi headers name them for libc alone) */
enum { CODE_KERNEL = 0x80, BUS_ALIGNMENT = 1, BUS_ADDRESS = 2, FPE_DIVIDE = 1 };
enum { TRACE_STEP = 2, TRACE_WATCH = 4 };

enum { HOST_CS32 = 0x23 }; /* the host's own 32-bit code segment */

/* --- memory ----------------------------------------------------------------------------------- */

/* (TRICKS: read-or-write) */
static enum vcpu_access access_of(struct cpu_engine *e, const struct engine_stop *s, gva_t gva)
{
	if (!s->vector)
		return e->ops->guess_access(e, gva);
	if (s->error & PF_WRITE)
		return ACCESS_WRITE;
	return s->error & PF_FETCH ? ACCESS_FETCH : ACCESS_READ;
}

static void on_page_fault(struct cpu_engine *e, gva_t gva, enum vcpu_access access)
{
	struct vcpu *v = e->vcpu;
	struct vcpu_walk walk;

	if (vcpu_walk(v, gva, access, v->cpl == 3, &walk)) {
		engine_count(e, TRAP_GUEST_FAULT);
		e->refault =
			(struct refault){ gva < VMP_USER_LIMIT, v->cpl == 3, v->eip, gva, access };
		v->cr2 = gva;
		vcpu_exception(v, VECTOR_PF, walk.error);
	} else if (ram_has(e->ram_pages, gpa_to_gfn(walk.gpa))) {
		engine_count(e, TRAP_SHADOW_FAULT);
		e->ops->map(e, gva, &walk, access);
	} else {
		engine_count(e, TRAP_MMIO);
		vcpu_emulate_mmio(v, gva, walk.gpa);
	}
}

/* Fetch a page that this host does not hold.  The instruction that needed it runs before an
 * interrupt is delivered. (TRICKS: fetched-runs-first) */
static void on_absent_page(struct cpu_engine *e, const struct engine_stop *s)
{
	gva_t gva = (gva_t)s->address;
	uint32_t entry = s->address <= UINT32_MAX ? shadow_entry(e->shadow, gva) : 0;

	if (!e->many_hosts || !entry) {
		vcpu_kill(e->vcpu, "host bus error at %x", gva);
		return;
	}
	engine_count(e, TRAP_PAGE_FETCH);
	e->ops->admit(e, gva, entry, s->vector ? s->error & PF_WRITE : e->ops->guess_write(e, gva));
	e->vcpu->interrupt_shadow = true;
}

/* --- exceptions and instructions -------------------------------------------------------------- */

/* Raise a trap that the host reports as a general protection fault.  For #OF, EIP is behind the
 * `into`. */
static void raise_trap(struct vcpu *v, unsigned vector)
{
	if (vector == VECTOR_OF)
		vcpu_software_interrupt(v, VECTOR_OF, v->eip - 1);
	else
		vcpu_exception(v, vector, -1);
}

/* (TRICKS: user-limit) */
static bool on_limit_violation(struct cpu_engine *e)
{
	enum vcpu_access access;
	gva_t gva;

	if (e->vcpu->cpl != 3 || !e->ops->beyond_user_limit(e, &gva, &access))
		return false;
	engine_count(e, TRAP_GUEST_FAULT);
	vcpu_beyond_user_limit(e->vcpu, gva, access);
	return true;
}

/* Count an emulated instruction. */
static void count_instruction(void *engine, enum vcpu_trap trap)
{
	static const uint8_t kinds[] = {
		[VCPU_TRAP_PRIVILEGED] = TRAP_PRIVILEGED, [VCPU_TRAP_MARKER] = TRAP_MARKER,
		[VCPU_TRAP_HYPERCALL] = TRAP_HYPERCALL,	  [VCPU_TRAP_SYSCALL] = TRAP_SYSCALL,
	};

	engine_count(engine, kinds[trap]);
}

/* The window's iret failed on the host: it is emulated, and fails as the guest expects. */
static void on_iret(struct cpu_engine *e)
{
	engine_count(e, TRAP_MARKER);
	vcpu_iret(e->vcpu);
}

/* An instruction to emulate, or a real fault of the guest's.  (TRICKS: trap-without-name) */
static void on_protection(struct cpu_engine *e, const struct engine_stop *s, enum vcpu_vector fault)
{
	struct vcpu *v = e->vcpu;
	unsigned trap;

	if (s->vector == VECTOR_OF || s->vector == VECTOR_BR) {
		raise_trap(v, s->vector);
		return;
	}
	if (s->in_window) {
		on_iret(e);
		return;
	}
	if (vcpu_emulate_run(v, e->debug->step.wanted, count_instruction, e) != VCPU_NOT_MINE ||
	    on_limit_violation(e))
		return;
	trap = s->vector ? 0 : e->ops->guess_vector(e, s->signal);
	if (trap)
		raise_trap(v, trap);
	else
		vcpu_exception(v, fault, 0);
}

static void on_bus_error(struct cpu_engine *e, const struct engine_stop *s)
{
	if (s->code == BUS_ADDRESS)
		on_absent_page(e, s);
	else if (s->code == BUS_ALIGNMENT && !s->in_window)
		vcpu_exception(e->vcpu, VECTOR_AC, 0);
	else /* #SS or #NP */
		on_protection(e, s, VECTOR_SS);
}

static void on_debug_trap(struct cpu_engine *e, const struct engine_stop *s)
{
	struct vcpu *v = e->vcpu;

	engine_count(e, TRAP_EXCEPTION);
	if (s->code == CODE_KERNEL) { /* int3 */
		if (!e->debug->attached || !e->ops->debugger(e, WHY_BREAKPOINT))
			vcpu_software_interrupt(v, VECTOR_BP, v->eip - 1);
		return;
	}
	if (s->code == TRACE_STEP)
		v->dr[6] |= DR6_SINGLE_STEP;
	vcpu_exception(v, VECTOR_DB, -1);
}

static void on_arithmetic(struct cpu_engine *e, const struct engine_stop *s)
{
	engine_count(e, TRAP_EXCEPTION);
	if (s->code == FPE_DIVIDE)
		vcpu_exception(e->vcpu, VECTOR_DE, -1);
	else
		vcpu_exception(e->vcpu, s->vector ? s->vector : e->ops->guess_vector(e, s->signal),
			       -1);
}

/* A guest program stopped at a system call in the host's own 32-bit code segment.  Either it
 * executed `syscall`, which this machine does not have and behind which the host loads that
 * segment, or it jumped into that segment first.  Raise #UD: the program gets a SIGILL.  After
 * `syscall` the host continues at its vDSO and keeps no trace of the instruction's address; EIP is
 * then the one that the host reports. */
static void on_no_syscall(struct vcpu *v, const uint8_t insn[2])
{
	bool known = (insn[0] == 0x0f && insn[1] == 0x05) || (insn[0] == 0xcd && insn[1] == 0x80);

	v->cpl = 3;
	v->seg[SEG_CS] = VMP_SEL_USER_CS;
	v->seg[SEG_SS] = VMP_SEL_USER_DS;
	v->eip -= known ? 2 : 0;
	vcpu_exception(v, VECTOR_UD, -1);
}

/* The jail refused a system call: it is a guest program's own call to the guest kernel, or an
 * attack on the jail.  In the host's 32-bit segment it is a guest program's: the guest kernel makes
 * none there. */
static void on_system_call(struct cpu_engine *e, const struct engine_stop *s)
{
	struct vcpu *v = e->vcpu;
	uint32_t error, cr2 = v->cr2;
	uint8_t insn[2] = { 0 };

	vcpu_read(v, v->eip - 2, insn, 2, v->cpl == 3, &error);
	v->cr2 = cr2;
	if (s->in_guest && insn[0] == 0xcd && insn[1] == 0x80) {
		engine_count(e, TRAP_SYSCALL);
		vcpu_software_interrupt(v, 0x80, v->eip - 2);
	} else if (s->cs == HOST_CS32) {
		engine_count(e, TRAP_EXCEPTION);
		on_no_syscall(v, insn);
	} else {
		vcpu_kill(v, "guest code tried host system call %u from code segment %x at %x: "
			  "refused", s->call, (unsigned)s->cs, v->eip);
	}
}

/* --- stops ------------------------------------------------------------------------------------ */

static bool is_kick(const struct engine_stop *s)
{
	return s->signal == SIGUSR1 || s->signal == SIGALRM;
}
static bool is_watch(const struct engine_stop *s)
{
	return s->signal == SIGTRAP && s->code == TRACE_WATCH;
}
static bool is_trace(const struct engine_stop *s)
{
	return s->signal == SIGTRAP && s->code == TRACE_STEP;
}

/* End the interrupt shadow if its instruction has run. */
static void end_shadow(struct cpu_engine *e)
{
	if (e->vcpu->interrupt_shadow && e->vcpu->eip != e->left_eip)
		e->vcpu->interrupt_shadow = false;
}

/* The guest stopped in the window.  True: the operation that was under way has been completed;
 * false: the guest is at the window's iret. */
static bool settle(struct cpu_engine *e, const struct window_stop *at)
{
	enum window_place place = window_settle(e->vcpu, at);

	if (place == WINDOW_IRET)
		return false;
	engine_count(e, place == WINDOW_SYSCALL ? TRAP_SYSCALL : TRAP_HYPERCALL);
	return true;
}

void engine_on_call(struct cpu_engine *e, const struct window_stop *at)
{
	end_shadow(e);
	if (settle(e, at))
		return;
	if (window_return(e->vcpu))
		engine_count(e, TRAP_MARKER);
	else
		on_iret(e);
}

/* The host has reported a step or a watchpoint, behind the instruction, and does not say which.
 * Check for the watchpoint.  The window's iret, rolled back, would trigger it again.  True: it
 * was triggered, and the CPU has stopped for the debugger. (TRICKS: step-hides-watch) */
static bool on_watch(struct cpu_engine *e, const struct engine_stop *s, bool at_iret)
{
	if (!e->debug->watches || (!is_watch(s) && !is_trace(s)))
		return false;
	if (at_iret && is_watch(s))
		vcpu_iret(e->vcpu);
	return e->ops->debugger(e, WHY_WATCH);
}

/* The same for the guest's own watchpoints, but for those that the window's code triggers, which
 * the guest does not see.  DR6 then says which were triggered; returns false if none was. */
static bool on_guest_watch(struct cpu_engine *e, const struct engine_stop *s, bool at_iret)
{
	struct vcpu *v = e->vcpu;
	uint32_t hits;

	if (e->debug->watches || !e->debug->guest.control || (!is_watch(s) && !is_trace(s)))
		return false;
	hits = e->ops->watch_hits(e);
	if (at_iret && is_watch(s))
		vcpu_iret(v);
	if (s->in_window || !hits)
		return false;
	v->dr[6] |= hits;
	return true;
}

/* Record a completed step, unless the debugger has been notified of a watchpoint there. */
static void step_made(struct cpu_engine *e, bool watched)
{
	e->traced = !watched;
	e->vcpu->interrupt_shadow = false;
}

static void on_signal(struct cpu_engine *e, const struct engine_stop *s)
{
	struct vcpu *v = e->vcpu;

	switch (s->signal) {
	case SIGSEGV:
		if (s->code == CODE_KERNEL)
			on_protection(e, s, VECTOR_GP);
		else if (s->address <= UINT32_MAX)
			on_page_fault(e, (gva_t)s->address, access_of(e, s, (gva_t)s->address));
		else
			vcpu_kill(v, "page fault beyond 4 GiB at eip %x", v->eip);
		return;
	case SIGBUS:
		on_bus_error(e, s);
		return;
	case SIGTRAP:
		on_debug_trap(e, s);
		return;
	case SIGILL:
		engine_count(e, TRAP_EXCEPTION);
		vcpu_exception(v, VECTOR_UD, -1);
		return;
	case SIGFPE:
		on_arithmetic(e, s);
		return;
	case SIGSYS:
		on_system_call(e, s);
		return;
	}
}

/* Code outside the guest's segments is never resumed, not even after a kick.  On the ptrace engine
 * it may be the mapping stub with a list of calls that the monitor has not written; resumed after
 * each kick, it could make all of them. */
static bool has_left_segments(const struct engine_stop *s)
{
	return !s->in_guest && !s->in_window && s->signal != SIGSYS;
}

/* (TRICKS: step-is-made) */
void engine_on_stop(struct cpu_engine *e, const struct engine_stop *s)
{
	struct vcpu *v = e->vcpu;
	bool carried_out, at_iret, watched, guest_watched;

	end_shadow(e);
	if (v->dead) /* its registers showed that it has left them */
		return;
	if (has_left_segments(s)) {
		vcpu_kill(v, "guest code left its segments: code segment %x at %x (signal %u)",
			  (unsigned)s->cs, v->eip, (unsigned)s->signal);
		return;
	}
	carried_out = s->in_window && settle(e, &s->at);
	at_iret = s->in_window && !carried_out;
	watched = on_watch(e, s, at_iret);
	guest_watched = on_guest_watch(e, s, at_iret);
	if (carried_out || (is_watch(s) && !guest_watched))
		return;
	if (s->cs == VMP_SEL_USER_CS && vcpu_strayed(v) && s->signal != SIGTRAP) {
		engine_count(e, TRAP_GUEST_FAULT);
		vcpu_beyond_user_limit(v, v->eip, ACCESS_FETCH);
	} else if (is_kick(s)) {
		engine_count(e, TRAP_KICK);
	} else if (e->stepping && is_trace(s) && !(v->eflags & EFLAGS_TF)) {
		step_made(e, watched);
		if (guest_watched)
			vcpu_exception(v, VECTOR_DB, -1);
	} else {
		on_signal(e, s);
	}
}
