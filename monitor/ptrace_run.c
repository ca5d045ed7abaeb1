/* ptrace_run.c - the trap loop: guest code runs until something stops it, and each kind of stop has its handler here.
 *
 * The four kinds of memory stop of the thesis (section 5.3, around its figure 5.6):
 *   SIGSEGV with an address     the guest's own page fault, or a host mapping that is not made yet, or device memory
 *   SIGSEGV without an address  an instruction to emulate, a marker, or a user segment's limit
 *   SIGBUS with an address      a page that this host does not hold
 *   SIGBUS without an address   the stack segment's limit
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/killed.h"
#include "base/log.h"

uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

enum time_kind time_switch(struct monitor *m, enum time_kind to)
{
	uint64_t now = monotonic_ns();
	enum time_kind from = m->time_kind;

	if (!m->direct_engine) /* which keeps its own account */
		atomic_fetch_add_explicit(&m->slot->time_ns[from], now - m->time_mark_ns, memory_order_relaxed);
	m->time_mark_ns = now;
	m->time_kind = to;
	return from;
}

/* What fails since a VM process was killed is that death: with checkpoints the machine goes back. */
static bool vm_process_died(void)
{
	siginfo_t child = { 0 };

	return !waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) && child.si_pid;
}

void monitor_end(struct monitor *m, enum end_reason reason, unsigned status, const char *format, ...)
{
	bool died = reason == END_FAILURE && vm_process_died();
	struct msg_machine_end end = { .reason = died ? END_PART_DIED : reason, .status = status, .node = m->shm->node };
	char line[512];
	va_list args;
	int n;

	if (m->ending)
		return;
	m->ending = true;
	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n >= (int)sizeof line)
		n = sizeof line - 1;
	channel_send(m, MSG_MACHINE_END, VNODE_DAEMON(m->shm->node), &end, sizeof end, line, n);
}

/* The CPU as it died, for who started the machine: who has the guest kernel's names. */
static void tell_state(struct monitor *m)
{
	static char text[MAX_MSG_PAYLOAD];
	struct msg_log line = { .level = LOG_ERROR, .node = m->shm->node, .cpu = m->cpu };

	channel_send(m, MSG_LOG, VNODE_CLI, &line, sizeof line, text, vcpu_dump(&m->vcpu, text, sizeof text));
}

/* --- what arrives from outside -------------------------------------------------------------------------------------- */

void send_dump(struct monitor *m)
{
	static char text[3 * MAX_MSG_PAYLOAD];
	struct msg_dump dump = { .cpu = m->cpu, .seq = m->dump_seq };
	unsigned n = vcpu_dump(&m->vcpu, text, sizeof text), at = 0, part;

	m->dump_wanted = false;
	for (; at < n; at += part) {
		part = n - at < MAX_MSG_PAYLOAD ? n - at : MAX_MSG_PAYLOAD;
		channel_send(m, MSG_DUMP, VNODE_CLI, &dump, sizeof dump, text + at, part);
	}
	channel_send(m, MSG_DUMP, VNODE_CLI, &dump, sizeof dump, NULL, 0);
}

void serve_posts(struct monitor *m, uint32_t posts)
{
	if (posts & POST_MESSAGE)
		channel_drain(m);
	if (m->dump_wanted)
		send_dump(m);
}

/* Take in everything that was posted to this CPU, and its own timer. */
void collect_posts(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;

	for (unsigned word = 0; word < 8; word++) {
		uint32_t bits;

		if (!atomic_load_explicit(&m->slot->irr[word], memory_order_relaxed))
			continue;
		for (bits = atomic_exchange(&m->slot->irr[word], 0); bits; bits &= bits - 1)
			apic_post(&v->apic, word * 32 + __builtin_ctz(bits));
	}
	if (atomic_load_explicit(&m->slot->post, memory_order_relaxed)) {
		uint32_t post = atomic_exchange(&m->slot->post, 0);

		if (post & POST_NMI)
			v->nmi_pending = true;
		serve_posts(m, post);
	}
	if (apic_deadline(&v->apic) != UINT64_MAX)
		apic_tick(&v->apic, m->env.now_ns(m));
}

static bool posts_waiting(struct monitor *m)
{
	for (unsigned word = 0; word < 8; word++)
		if (atomic_load(&m->slot->irr[word]))
			return true;
	return atomic_load(&m->slot->post) & (POST_MESSAGE | POST_NMI);
}

/* It is to be saved or moved, or to stand for a debugger, between two instructions. */
static bool stands_still(const struct monitor *m)
{
	return m->freeze_wanted || m->handover.give_wanted || m->debug.stop_wanted;
}

/* Asleep until a kick or the guest's timer. */
static void sleep_halted(struct monitor *m)
{
	enum time_kind before = time_switch(m, TIME_IDLE);

	while (!vcpu_wakes(&m->vcpu) && !m->vcpu.dead && !m->ending && !stands_still(m)) {
		uint32_t wake = atomic_load(&m->slot->wake);
		uint64_t deadline = apic_deadline(&m->vcpu.apic), now = m->env.now_ns(m);
		struct timespec wait, *limit = NULL;

		atomic_store(&m->slot->state, SLOT_HALTED);
		if (!posts_waiting(m) && (deadline == UINT64_MAX || deadline > now)) {
			if (deadline != UINT64_MAX) {
				wait.tv_sec = (deadline - now) / 1000000000;
				wait.tv_nsec = (deadline - now) % 1000000000;
				limit = &wait;
			}
			syscall(SYS_futex, &m->slot->wake, FUTEX_WAIT, wake, limit, NULL, 0);
		}
		atomic_store(&m->slot->state, SLOT_MONITOR);
		collect_posts(m);
	}
	if (!stands_still(m))
		vcpu_wake(&m->vcpu);
	time_switch(m, before);
}

/* This CPU is to run on another host. Absent first: who posts to it from now on sees that, or we see the post. */
void give_away(struct monitor *m)
{
	enum time_kind before = time_switch(m, TIME_IDLE);

	atomic_store(&m->slot->state, SLOT_ABSENT);
	collect_posts(m);
	handover_give(m);
	atomic_store(&m->slot->state, SLOT_MONITOR);
	time_switch(m, before);
}

/* The host's timer stops the guest when its APIC timer is due. */
static void arm_timer(struct monitor *m)
{
	uint64_t deadline = apic_deadline(&m->vcpu.apic);
	struct itimerspec when = { 0 };

	if (deadline == m->timer_armed_ns)
		return;
	m->timer_armed_ns = deadline;
	if (deadline != UINT64_MAX) {
		uint64_t at = hostclock_when(&m->shm->clock, monotonic_ns, deadline);

		when.it_value.tv_sec = at / 1000000000;
		when.it_value.tv_nsec = at % 1000000000;
	}
	timer_settime(m->timer, TIMER_ABSTIME, &when, NULL);
}

/* --- exceptions and instructions ------------------------------------------------------------------------------------ */

/* (TRICKS: read-or-write) */
static void on_page_fault(struct monitor *m, gva_t gva)
{
	struct vcpu *v = &m->vcpu;
	uint32_t entry = shadow_entry(&m->shadow, gva);
	struct vcpu_walk walk;
	enum vcpu_access access;

	/* A page that may be read and still faults was run, or written to. */
	if (v->cpl == 0 && !(entry & SHADOW_EXECUTE) && gva - v->eip < INSN_MAX_BYTES)
		access = ACCESS_FETCH;
	else if (entry && !(entry & SHADOW_WRITE))
		access = ACCESS_WRITE;
	else
		access = insn_writes(m, gva) ? ACCESS_WRITE : ACCESS_READ;
	if (vcpu_walk(v, gva, access, v->cpl == 3, &walk)) {
		count_trap(m, TRAP_GUEST_FAULT);
		v->cr2 = gva;
		vcpu_exception(v, VECTOR_PF, walk.error);
	} else if (gpa_to_gfn(walk.gpa) < m->shm->ram_pages) {
		count_trap(m, TRAP_SHADOW_FAULT);
		shadow_map(&m->shadow, v, gva, &walk, access);
	} else {
		count_trap(m, TRAP_MMIO);
		vcpu_emulate_mmio(v, gva, walk.gpa);
	}
}

/* (TRICKS: user-limit) */
static bool on_limit_violation(struct monitor *m)
{
	enum vcpu_access access;
	gva_t gva;

	if (m->vcpu.cpl != 3 || !insn_beyond_user_limit(m, &gva, &access))
		return false;
	count_trap(m, TRAP_GUEST_FAULT);
	vcpu_beyond_user_limit(&m->vcpu, gva, access);
	return true;
}

/* A tracer is not told that it was #OF or #BR. (TRICKS: trap-without-name) */
static bool on_trap_without_name(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;

	if (insn_is_bound(m)) {
		vcpu_exception(v, VECTOR_BR, -1);
		return true;
	}
	if (!insn_was_into(m))
		return false;
	vcpu_software_interrupt(v, VECTOR_OF, v->eip - 1);
	return true;
}

static void count_instruction(void *ctx, enum vcpu_trap trap) { count_trap(ctx, trap_kind_of(trap)); }

static void on_general_protection(struct monitor *m, enum vcpu_vector vector)
{
	if (vcpu_emulate_run(&m->vcpu, m->debug.step.wanted, count_instruction, m) == VCPU_NOT_MINE && !on_limit_violation(m) &&
	    !on_trap_without_name(m))
		vcpu_exception(&m->vcpu, vector, 0);
}

/* (TRICKS: fetched-runs-first) */
static void on_bus_error(struct monitor *m, const siginfo_t *info)
{
	gva_t gva = (uintptr_t)info->si_addr;

	switch (info->si_code) {
	case BUS_ADRERR:
		if (!m->many_hosts || (uintptr_t)info->si_addr > UINT32_MAX)
			break;
		count_trap(m, TRAP_PAGE_FETCH);
		if (!shadow_entry(&m->shadow, gva))
			bug("CPU %u: SIGBUS at %x, where nothing is mapped", m->cpu, gva);
		pages_admit(m, gva, shadow_entry(&m->shadow, gva), insn_writes(m, gva));
		m->vcpu.interrupt_shadow = true; /* what needed the page runs first (TRICKS: fetched-runs-first) */
		return;
	case BUS_ADRALN:
		vcpu_exception(&m->vcpu, VECTOR_AC, 0);
		return;
	default: /* #SS or #NP */
		on_general_protection(m, VECTOR_SS);
		return;
	}
	vcpu_kill(&m->vcpu, "host bus error at %x", gva);
}

static void on_breakpoint_or_step(struct monitor *m, const siginfo_t *info)
{
	struct vcpu *v = &m->vcpu;

	count_trap(m, TRAP_EXCEPTION);
	if (info->si_code == TRAP_HWBKPT) /* on_watch() */
		return;
	if (info->si_code == SI_KERNEL) { /* int3 */
		if (m->debug.attached && debug_breakpoint(m))
			return;
		vcpu_software_interrupt(v, VECTOR_BP, v->eip - 1);
		return;
	}
	if (info->si_code == TRAP_TRACE)
		v->dr[6] |= DR6_SINGLE_STEP;
	vcpu_exception(v, VECTOR_DB, -1);
}

/* Guest code runs in the LDT's code segments only. */
static bool in_guest_segment(struct monitor *m)
{
	return m->vm.regs.cs & 4;
}

/* A system call that the host did not serve: the guest's own, or an attempt on the jail.
 * (TRICKS: orig-rax) */
static void on_seccomp(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;
	struct user_regs_struct *r = &m->vm.regs;
	uint32_t error, cr2 = v->cr2;
	uint8_t insn[2] = { 0 };

	vcpu_read(v, v->eip - 2, insn, 2, v->cpl == 3, &error);
	v->cr2 = cr2;
	v->gpr[EAX] = r->orig_rax; /* the host has put -ENOSYS there */
	if (in_guest_segment(m) && insn[0] == 0xcd && insn[1] == 0x80) {
		count_trap(m, TRAP_SYSCALL);
		vcpu_software_interrupt(v, 0x80, v->eip - 2);
		return;
	}
	if (v->cpl == 3 && r->cs == VMPROC_HOST_CS32) {
		count_trap(m, TRAP_EXCEPTION);
		vmproc_no_syscall(v, insn);
		return;
	}
	vcpu_kill(v, "guest code tried host system call %u from code segment %x at %x: refused", (unsigned)r->orig_rax,
		  (unsigned)r->cs, v->eip);
}

/* The guest's iret did not succeed: the monitor carries it out, or has it fail as the guest expects. */
static void on_iret_stub(struct monitor *m)
{
	count_trap(m, TRAP_MARKER);
	vcpu_iret(&m->vcpu);
}

static void on_signal(struct monitor *m, const struct stop *why)
{
	struct vcpu *v = &m->vcpu;

	if (m->vm.regs.cs == VMP_SEL_USER_CS && vcpu_strayed(v) && why->signal != SIGTRAP) {
		count_trap(m, TRAP_GUEST_FAULT);
		vcpu_beyond_user_limit(v, v->eip, ACCESS_FETCH);
		return;
	}
	/* Before anything is resumed, also after a kick: what runs outside the guest's segments may be the mapping stub with a
	 * list that this monitor has not written, of which a kick would let every call succeed. */
	if (!why->in_window && !in_guest_segment(m)) {
		vcpu_kill(v, "guest code left its segments: code segment %x at %x (signal %u)", (unsigned)m->vm.regs.cs,
			  v->eip, (unsigned)why->signal);
		return;
	}
	if (why->signal == SIGUSR1) {
		count_trap(m, TRAP_KICK);
		return;
	}
	if (why->in_window && why->place != WINDOW_IRET) {
		count_trap(m, why->place == WINDOW_SYSCALL ? TRAP_SYSCALL : TRAP_HYPERCALL);
		return;
	}
	switch (why->signal) {
	case SIGSEGV:
		if (why->info.si_code == SI_KERNEL)
			why->in_window ? on_iret_stub(m) : on_general_protection(m, VECTOR_GP);
		else if ((uintptr_t)why->info.si_addr <= UINT32_MAX)
			on_page_fault(m, (uintptr_t)why->info.si_addr);
		else
			vcpu_kill(v, "page fault beyond 4 GiB at eip %x", v->eip);
		return;
	case SIGBUS:
		if (why->in_window && why->info.si_code != BUS_ADRERR)
			on_iret_stub(m);
		else
			on_bus_error(m, &why->info);
		return;
	case SIGTRAP:
		on_breakpoint_or_step(m, &why->info);
		return;
	case SIGILL:
		count_trap(m, TRAP_EXCEPTION);
		vcpu_exception(v, VECTOR_UD, -1);
		return;
	case SIGFPE:
		count_trap(m, TRAP_EXCEPTION);
		if (why->info.si_code == FPE_INTDIV)
			vcpu_exception(v, VECTOR_DE, -1);
		else
			vcpu_exception(v, insn_is_sse(m) ? VECTOR_XM : VECTOR_MF, -1);
		return;
	}
}

static void on_stop(struct monitor *m, const struct stop *why)
{
	trace("stop %lu: signal %lu at %lx, address %lx", why->kind, why->signal, m->vcpu.eip,
	      why->kind == STOP_SIGNAL ? (uintptr_t)why->info.si_addr : 0);
	switch (why->kind) {
	case STOP_SIGNAL:
		on_signal(m, why);
		return;
	case STOP_SECCOMP:
		on_seccomp(m);
		return;
	case STOP_DIED:
		monitor_end(m, END_PART_DIED, EXIT_VMP_FAILURE, "the VM process of CPU %u was killed by signal %d%s", m->cpu,
			    why->signal, killed_why(why->signal));
		return;
	}
}

/* --- the loop ------------------------------------------------------------------------------------------------------- */

void report_death(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;

	trace_dump(-1);
	tell_state(m);
	if (m->debug.attached)
		debug_stand(m, WHY_DEAD);
	if (v->dead == VCPU_TRIPLE_FAULT)
		monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "triple fault on CPU %u at %x", m->cpu, v->eip);
	else
		monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE, "CPU %u: %s", m->cpu, v->dead_reason);
}

/* A debugger's step has been made, or it wants the CPU to stand. */
static void stand_for_debugger(struct monitor *m, bool traced)
{
	const struct debug_step *step = &m->debug.step;

	if (step->wanted && (traced || m->vcpu.eip != step->from_eip))
		debug_stand(m, WHY_STEP);
	else if (m->debug.stop_wanted)
		debug_stand(m, WHY_ASKED);
}

/* Something that a debugger watches may have been touched, behind the instruction; which of the two a step was the host does not
 * say. The window's iret, rolled back, would touch it again. True: it was, and the CPU has stood. */
static bool on_watch(struct monitor *m, const struct stop *why)
{
	if (!m->debug.watch.control || why->kind != STOP_SIGNAL || why->signal != SIGTRAP)
		return false;
	if (why->info.si_code == TRAP_HWBKPT && why->in_window && why->place == WINDOW_IRET)
		vcpu_iret(&m->vcpu);
	else if (why->info.si_code != TRAP_HWBKPT && why->info.si_code != TRAP_TRACE)
		return false;
	return debug_watchpoint(m);
}

/* A debugger wants one instruction, or an interrupt waits for the one in the shadow.
 * (TRICKS: sti-shadow) */
static bool wants_step(const struct monitor *m)
{
	return m->debug.step.wanted || (m->vcpu.interrupt_shadow && vcpu_wakes(&m->vcpu));
}

/* During a debugger's step no interrupt comes, but what wakes a halted CPU.
 * (TRICKS: step-without-interrupt) */
static void deliver_interrupt(struct monitor *m, bool woken)
{
	if (!m->debug.step.wanted || woken)
		vcpu_deliver_interrupt(&m->vcpu);
}

/* Guest code until it stops. True: all that it did was one traced instruction.
 * (TRICKS: step-is-made) */
static bool run_native(struct monitor *m, struct stop *why)
{
	struct vcpu *v = &m->vcpu;
	bool step = wants_step(m), traced;
	uint32_t eip = v->eip;

	atomic_store_explicit(&m->slot->granted, 0, memory_order_relaxed);
	time_switch(m, TIME_NATIVE);
	process_enter(m, why, step);
	time_switch(m, TIME_EMULATION);
	atomic_store(&m->slot->state, SLOT_MONITOR);
	if (v->interrupt_shadow && v->eip != eip)
		v->interrupt_shadow = false;
	if (!step || why->kind != STOP_SIGNAL || why->signal != SIGTRAP)
		return false;
	/* The end of a system call that the host did not make: nothing has run. */
	if (why->info.si_code == TRAP_BRKPT && v->eip == eip)
		why->signal = SIGUSR1;
	/* A step out of the guest's segments is no step: on_signal() ends the machine. */
	traced = why->info.si_code == TRAP_TRACE && !(v->eflags & EFLAGS_TF) && (why->in_window || in_guest_segment(m));
	if (traced)
		v->interrupt_shadow = false;
	return traced;
}

/* (TRICKS: kick-is-a-hint) */
void run_guest(struct monitor *m)
{
	struct vcpu *v = &m->vcpu;
	bool traced = false, watched, woken;
	struct stop why;

	m->time_mark_ns = monotonic_ns();
	m->time_kind = TIME_EMULATION;
	while (!v->dead && !m->ending) {
		/* The machine is being saved: stand still. */
		if (m->freeze_wanted)
			freeze_guest(m);
		stand_for_debugger(m, traced);
		traced = false;
		/* A halted CPU sleeps until an interrupt may wake it. */
		woken = v->halted;
		if (v->halted)
			sleep_halted(m);
		/* Mappings first: running the stub may swallow a kick, so posts are looked at after it. */
		process_stub_flush(m);
		if (m->handover.give_wanted)
			give_away(m);
		/* From here on a kick is a signal, which stops guest code as soon as it runs. */
		atomic_store(&m->slot->state, SLOT_RUNNING);
		collect_posts(m);
		if (wants_step(m) && vcpu_step_by_hand(v) && m->debug.step.wanted) {
			atomic_store(&m->slot->state, SLOT_MONITOR);
			continue;
		}
		deliver_interrupt(m, woken);
		if (m->strict && v->cpl == 3)
			shadow_drop_kernel(&m->shadow);
		if (v->halted || v->dead || m->vm.queued || stands_still(m)) {
			atomic_store(&m->slot->state, SLOT_MONITOR);
			continue;
		}
		/* A step through the window's iret would start it again and again. */
		if (m->debug.step.wanted && window_holds(v->eip)) {
			atomic_store(&m->slot->state, SLOT_MONITOR);
			vcpu_iret(v);
			continue;
		}
		arm_timer(m);
		traced = run_native(m, &why);
		watched = on_watch(m, &why);
		/* Why did it stop? */
		if (!traced)
			on_stop(m, &why);
		traced &= !watched; /* the debugger knows where it is */
	}
	if (v->dead)
		report_death(m);
}
