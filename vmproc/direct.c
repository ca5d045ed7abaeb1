/* direct.c - the direct engine: signal handlers, and the gate (gate.S), that run the virtual CPU (direct.h).
 *
 * From one signal, or one call of the gate, to the way out the guest stands still and struct vcpu holds its registers.  Kicks
 * that come meanwhile are noted, and looked at when guest code would run.  Segment registers need not be saved: this code uses
 * none of them.  FPU and vector registers are in the signal frame, or, in the gate, where they were: this code uses none of
 * these either.  A handler does not return, but leaves by the gate: the host's rt_sigreturn takes a microsecond.
 */
#include "vmproc/direct.h"

#include <asm/ldt.h>
#include <linux/futex.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>
#include <linux/mman.h>
#include "base/hostshm.h"
#include "vcpu/shadow.h"
#include "vcpu/state.h"
#include "vcpu/window.h"
#include "vmproc/direct_env.h"
#include "vmproc/gate.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

enum { FLAGS_NATIVE = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF | EFLAGS_TF | EFLAGS_DF | EFLAGS_OF | EFLAGS_AC |
		      EFLAGS_NT | EFLAGS_ID };
#define SIGNAL_CODE_KERNEL 0x80
#define TRAP_IS_TRACE 2
#define TRAP_IS_WATCH 4 /* TRAP_HWBKPT */
enum { BUS_ALIGNMENT = 1, BUS_ADDRESS = 2, FPE_DIVIDE = 1, SIGNALS = 64 };

struct direct direct;
_Atomic uint32_t direct_kicked; /* a kick came while the guest stood still */

/* --- registers ------------------------------------------------------------------------------------------------------ */

#define READ_SEGMENT(name) ({ uint16_t value_; __asm__ volatile("mov %%" #name ", %0" : "=r"(value_)); value_; })
#define WRITE_SEGMENT(name, value) __asm__ volatile("mov %0, %%" #name : : "r"((uint32_t)(value)))

/* A guest kernel that was entered with AC set must not run with it.
 * (TRICKS: user-ac) */
static uint32_t native_flags(const struct vcpu *v)
{
	return v->cpl == 3 ? FLAGS_NATIVE : FLAGS_NATIVE & ~EFLAGS_AC;
}

static void segments_in(struct vcpu *v)
{
	v->seg[SEG_DS] = READ_SEGMENT(ds);
	v->seg[SEG_ES] = READ_SEGMENT(es);
	v->seg[SEG_FS] = READ_SEGMENT(fs);
	v->seg[SEG_GS] = READ_SEGMENT(gs);
	__builtin_memcpy(direct.entered_with, v->seg, sizeof direct.entered_with);
}

static void registers_in(struct vcpu *v, const struct sigcontext *r)
{
	uint32_t native;

	if (r->cs & VMPROC_SEL_TABLE) {
		v->cpl = r->cs >> 3 == VMP_GDT_USER_CS ? 3 : 0;
		v->seg[SEG_CS] = v->cpl ? r->cs : r->cs & ~VMPROC_SEL_RPL;
		v->seg[SEG_SS] = r->ss;
	}
	native = native_flags(v);
	v->gpr[EAX] = r->rax, v->gpr[ECX] = r->rcx, v->gpr[EDX] = r->rdx, v->gpr[EBX] = r->rbx;
	v->gpr[ESP] = r->rsp, v->gpr[EBP] = r->rbp, v->gpr[ESI] = r->rsi, v->gpr[EDI] = r->rdi;
	v->eip = r->rip;
	v->eflags = (v->eflags & ~(native | EFLAGS_RF)) | (r->eflags & native) | EFLAGS_FIXED;
	segments_in(v);
	window_close(direct.window, v);
}

static void registers_out(struct vcpu *v, struct sigcontext *r)
{
	r->rax = v->gpr[EAX], r->rcx = v->gpr[ECX], r->rdx = v->gpr[EDX], r->rbx = v->gpr[EBX];
	r->rsp = v->gpr[ESP], r->rbp = v->gpr[EBP], r->rsi = v->gpr[ESI], r->rdi = v->gpr[EDI];
	r->rip = v->eip;
	r->eflags = (v->eflags & native_flags(v)) | EFLAGS_FIXED | EFLAGS_IF;
	r->cs = vmproc_selector(v->seg[SEG_CS]);
	r->ss = vmproc_selector(v->seg[SEG_SS]);
	/* Those that were not changed stand there still, or the host has emptied them with their descriptors. */
	if (v->seg[SEG_DS] != direct.entered_with[SEG_DS])
		WRITE_SEGMENT(ds, vmproc_selector(v->seg[SEG_DS]));
	if (v->seg[SEG_ES] != direct.entered_with[SEG_ES])
		WRITE_SEGMENT(es, vmproc_selector(v->seg[SEG_ES]));
	if (v->seg[SEG_FS] != direct.entered_with[SEG_FS])
		WRITE_SEGMENT(fs, vmproc_selector(v->seg[SEG_FS]));
	if (v->seg[SEG_GS] != direct.entered_with[SEG_GS])
		WRITE_SEGMENT(gs, vmproc_selector(v->seg[SEG_GS]));
	window_open(direct.window, v, (uint64_t)direct_gate,
		    atomic_load_explicit(&direct.slot->spins, memory_order_relaxed));
	if (direct.tls_stale || direct.refault.wanted || direct_bare_awaits(v))
		direct.window->slow_return = true;
}

/* --- time and posts ------------------------------------------------------------------------------------------------- */

static void count(enum trap_kind kind)
{
	atomic_store_explicit(&direct.slot->traps[kind],
			      atomic_load_explicit(&direct.slot->traps[kind], memory_order_relaxed) + 1, memory_order_relaxed);
}

enum time_kind direct_time_switch(enum time_kind to)
{
	uint64_t now = __builtin_ia32_rdtsc(), ticks = now - direct.time_mark;
	enum time_kind from = direct.time_kind;
	_Atomic uint64_t *sum = &direct.slot->time_ns[from];

	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) +
			      ticks * 1000000 / direct.shared->host_tsc_khz, memory_order_relaxed);
	direct.time_mark = now;
	direct.time_kind = to;
	return from;
}

static bool posts_waiting(void)
{
	for (unsigned word = 0; word < 8; word++)
		if (atomic_load(&direct.slot->irr[word]))
			return true;
	return atomic_load(&direct.slot->post) & (POST_MESSAGE | POST_NMI);
}

/* The monitor, or a debugger through it, sees all of the CPU, and may change it. */
static int64_t show(enum direct_call call, uint64_t what)
{
	int64_t result;

	direct_fpu_out();
	result = direct_call(call, what, 0, 0, 0);
	if (direct.shared->debug.attached)
		direct_fpu_in();
	return result;
}

/* Take in everything that was posted to this CPU. True: the monitor has been asked, and the slot's state
 * may have changed. */
static bool collect_posts(struct vcpu *v)
{
	bool asked = false;

	for (unsigned word = 0; word < 8; word++) {
		uint32_t bits;

		if (!atomic_load_explicit(&direct.slot->irr[word], memory_order_relaxed))
			continue;
		for (bits = atomic_exchange(&direct.slot->irr[word], 0); bits; bits &= bits - 1)
			apic_post(&v->apic, word * 32 + __builtin_ctz(bits));
	}
	if (atomic_load_explicit(&direct.slot->post, memory_order_relaxed)) {
		uint32_t post = atomic_exchange(&direct.slot->post, 0);

		if (post & POST_NMI)
			v->nmi_pending = true;
		if (post & ~(uint32_t)POST_NMI) {
			show(DIRECT_POSTS, post);
			spaces_catch_up(&direct.shared->spaces, &direct.space); /* it may have been saved */
			asked = true;
		}
	}
	return asked;
}

static void tick(struct vcpu *v)
{
	if (apic_deadline(&v->apic) != UINT64_MAX)
		apic_tick(&v->apic, direct_now_ns());
}

static void sleep_halted(struct vcpu *v)
{
	enum time_kind before = direct_time_switch(TIME_IDLE);

	while (v->halted && !vcpu_wakes(v) && !v->dead) {
		uint32_t wake = atomic_load(&direct.slot->wake);
		uint64_t deadline = apic_deadline(&v->apic), now = direct_now_ns();
		struct __kernel_timespec wait = { 0 };

		atomic_store(&direct.slot->state, SLOT_HALTED);
		if (!posts_waiting() && (deadline == UINT64_MAX || deadline > now)) {
			wait.tv_sec = (deadline - now) / 1000000000;
			wait.tv_nsec = (deadline - now) % 1000000000;
			host_call(__NR_futex, (long)&direct.slot->wake, FUTEX_WAIT, wake,
				  deadline == UINT64_MAX ? 0 : (long)&wait, 0, 0);
		}
		atomic_store(&direct.slot->state, SLOT_MONITOR);
		collect_posts(v);
		tick(v);
	}
	vcpu_wake(v);
	direct_time_switch(before);
}

static void arm_timer(const struct vcpu *v)
{
	uint64_t deadline = apic_deadline(&v->apic), at;
	struct __kernel_itimerspec when = { 0 };

	if (deadline == direct.timer_armed_ns)
		return;
	direct.timer_armed_ns = deadline;
	if (deadline != UINT64_MAX) {
		at = direct_when_ns(deadline);
		if (direct_is_bare())
			at = computing_due_ns(at, apic_timer_ns(&v->apic), direct.host_tick_ns);
		when.it_value.tv_sec = at / 1000000000;
		when.it_value.tv_nsec = at % 1000000000;
	}
	host_call(__NR_timer_settime, direct.timer, 1 /* TIMER_ABSTIME */, (long)&when, 0, 0, 0);
}

void direct_disarm_timer(void)
{
	static const struct __kernel_itimerspec never;

	if (direct.timer_armed_ns == UINT64_MAX)
		return;
	direct.timer_armed_ns = UINT64_MAX;
	host_call(__NR_timer_settime, direct.timer, 0, (long)&never, 0, 0, 0);
}

/* --- traps ---------------------------------------------------------------------------------------------------------- */

/* So the host maps what is there of 16 pages at once, not just the one that is written to. */
static void map(struct vcpu *v, gva_t gva, const struct vcpu_walk *walk, enum vcpu_access access)
{
	if (shadow_map(&direct.space.shadow, v, gva, walk, access) && !direct.shared->many_hosts)
		(void)*(const volatile uint8_t *)(uintptr_t)gva;
}

static void on_page_fault(struct vcpu *v, gva_t gva, enum vcpu_access access)
{
	struct vcpu_walk walk;

	if (vcpu_walk(v, gva, access, v->cpl == 3, &walk)) {
		count(TRAP_GUEST_FAULT);
		direct.refault = (struct refault){ gva < VMP_USER_LIMIT, v->cpl == 3, v->eip, gva, access };
		v->cr2 = gva;
		vcpu_exception(v, VECTOR_PF, walk.error);
	} else if (gpa_to_gfn(walk.gpa) < direct.shared->ram_pages) {
		count(TRAP_SHADOW_FAULT);
		map(v, gva, &walk, access);
	} else {
		count(TRAP_MMIO);
		vcpu_emulate_mmio(v, gva, walk.gpa);
	}
}

/* The guest has served a fault on the user's half, and the instruction is to run again: what it needs is mapped before it asks.
 * Nothing is marked as accessed or dirty, since the instruction may be another one at the same place.
 * (TRICKS: map-before-return) */
static void map_what_faulted(struct vcpu *v)
{
	const struct refault *r = &direct.refault;
	struct vcpu_walk walk;
	bool used;

	direct.refault.wanted = false;
	if (v->eip != r->eip || (v->cpl == 3) != r->user || vcpu_peek(v, r->gva, &walk, &used) || !used)
		return;
	if ((walk.user || !r->user) && (walk.writable || r->access != ACCESS_WRITE) && gpa_to_gfn(walk.gpa) < direct.shared->ram_pages &&
	    shadow_entry(&direct.space.shadow, r->gva) != shadow_entry_of(&direct.space.shadow, &walk))
		map(v, r->gva, &walk, r->access);
}

/* (TRICKS: user-limit) */
static bool on_limit_violation(struct vcpu *v)
{
	uint64_t fs, gs;

	if (v->cpl != 3)
		return false;
	__asm__("rdfsbase %0" : "=r"(fs));
	__asm__("rdgsbase %0" : "=r"(gs));
	if (!direct_call(DIRECT_BEYOND_LIMIT, fs, gs, 0, 0))
		return false;
	count(TRAP_GUEST_FAULT);
	vcpu_beyond_user_limit(v, direct.shared->arg[0], direct.shared->arg[1]);
	return true;
}

/* User code has run into the guest kernel's addresses, and would have faulted at the first instruction there. */
static void on_stray(struct vcpu *v)
{
	count(TRAP_GUEST_FAULT);
	vcpu_beyond_user_limit(v, v->eip, ACCESS_FETCH);
}

static void count_instruction(void *ctx, enum vcpu_trap trap)
{
	(void)ctx;
	count(trap_kind_of(trap));
}

static void on_general_protection(struct vcpu *v, enum vcpu_vector vector)
{
	if (vcpu_emulate_run(v, direct.shared->debug.step.wanted, count_instruction, NULL) == VCPU_NOT_MINE && !on_limit_violation(v))
		vcpu_exception(v, vector, 0);
}

static void on_protection(struct vcpu *v, bool in_window, enum vcpu_vector vector, unsigned host_vector)
{
	if (host_vector == VECTOR_OF) {
		vcpu_software_interrupt(v, VECTOR_OF, v->eip - 1);
	} else if (host_vector == VECTOR_BR) {
		vcpu_exception(v, VECTOR_BR, -1);
	} else if (in_window) { /* the guest's iret did not succeed: it is carried out here, or fails as the guest expects */
		count(TRAP_MARKER);
		vcpu_iret(v);
	} else {
		on_general_protection(v, vector);
	}
}

/* (TRICKS: fetched-runs-first) */
static void on_bus_error(struct vcpu *v, bool in_window, int code, gva_t gva, bool write)
{
	uint32_t entry = shadow_entry(&direct.space.shadow, gva);

	switch (code) {
	case BUS_ADDRESS:
		if (!direct.shared->many_hosts || !entry)
			break;
		count(TRAP_PAGE_FETCH);
		direct_time_switch(TIME_SHARED_MEMORY);
		direct_call(DIRECT_PAGE_ADMIT, gva, entry & ~(uint32_t)PAGE_MASK, write && entry & SHADOW_WRITE,
			    !!(entry & SHADOW_WRITE));
		v->interrupt_shadow = true; /* what needed the page runs first (TRICKS: fetched-runs-first) */
		direct_time_switch(TIME_EMULATION);
		return;
	case BUS_ALIGNMENT:
		vcpu_exception(v, VECTOR_AC, 0);
		return;
	default: /* #SS or #NP */
		on_protection(v, in_window, VECTOR_SS, VECTOR_SS);
		return;
	}
	vcpu_kill(v, "host bus error at %x", gva);
}

static void on_debug_trap(struct vcpu *v, int code)
{
	count(TRAP_EXCEPTION);
	if (code == SIGNAL_CODE_KERNEL) { /* int3 */
		if (direct.shared->debug.attached && show(DIRECT_DEBUG, WHY_BREAKPOINT))
			return;
		vcpu_software_interrupt(v, VECTOR_BP, v->eip - 1);
		return;
	}
	if (code == TRAP_IS_TRACE)
		v->dr[6] |= DR6_SINGLE_STEP;
	vcpu_exception(v, VECTOR_DB, -1);
}

/* A system call that the host did not serve: the guest's own, or an attempt on the jail. */
static void on_seccomp(struct vcpu *v, const struct sigcontext *r, unsigned number)
{
	uint32_t error, cr2 = v->cr2;
	uint8_t insn[2] = { 0 };

	vcpu_read(v, v->eip - 2, insn, 2, v->cpl == 3, &error);
	v->cr2 = cr2;
	if ((r->cs & VMPROC_SEL_TABLE) && insn[0] == 0xcd && insn[1] == 0x80) {
		count(TRAP_SYSCALL);
		vcpu_software_interrupt(v, 0x80, v->eip - 2);
		return;
	}
	if (r->cs == VMPROC_HOST_CS32) { /* v->cpl is that of the last stop; the guest kernel makes no such call */
		count(TRAP_EXCEPTION);
		vmproc_no_syscall(v, insn);
		return;
	}
	vcpu_kill(v, "guest code tried host system call %u from code segment %x at %x: refused", number, (unsigned)r->cs, v->eip);
}

static void on_signal(struct vcpu *v, int signal, const siginfo_t *info, const struct sigcontext *r, bool in_window)
{
	bool write = r->err & PF_WRITE;

	if (!in_window && !(r->cs & VMPROC_SEL_TABLE) && signal != SIGSYS) {
		vcpu_kill(v, "guest code left its segments: code segment %x at %x (signal %u)", (unsigned)r->cs, v->eip, (unsigned)signal);
		return;
	}
	switch (signal) {
	case SIGSEGV:
		if (info->si_code == SIGNAL_CODE_KERNEL)
			on_protection(v, in_window, VECTOR_GP, r->trapno);
		else if (r->cr2 <= UINT32_MAX)
			on_page_fault(v, (gva_t)r->cr2, write ? ACCESS_WRITE : r->err & PF_FETCH ? ACCESS_FETCH : ACCESS_READ);
		else
			vcpu_kill(v, "page fault beyond 4 GiB at eip %x", v->eip);
		return;
	case SIGBUS:
		on_bus_error(v, in_window, info->si_code, (gva_t)(uintptr_t)info->si_addr, write);
		return;
	case SIGTRAP:
		on_debug_trap(v, info->si_code);
		return;
	case SIGILL:
		count(TRAP_EXCEPTION);
		vcpu_exception(v, VECTOR_UD, -1);
		return;
	case SIGFPE:
		count(TRAP_EXCEPTION);
		if (info->si_code == FPE_DIVIDE)
			vcpu_exception(v, VECTOR_DE, -1);
		else
			vcpu_exception(v, r->trapno == VECTOR_XM ? VECTOR_XM : VECTOR_MF, -1);
		return;
	case SIGSYS:
		on_seccomp(v, r, (unsigned)info->si_syscall);
		return;
	}
}

/* --- from one stretch of guest code to the next --------------------------------------------------------------------- */

/* A debugger wants one instruction, or an interrupt waits for the one in the shadow.
 * (TRICKS: sti-shadow) */
static bool wants_step(const struct vcpu *v)
{
	return direct.shared->debug.step.wanted || (v->interrupt_shadow && vcpu_wakes(v));
}

/* The last thing before guest code: interrupts. During a debugger's step none comes but what wakes a halted CPU, and the
 * window's iret, which would start again and again, is carried out here. False: look again.
 * (TRICKS: step-without-interrupt) */
static bool can_run(struct vcpu *v, bool woken)
{
	const struct debug_step *step = &direct.shared->debug.step;

	if (wants_step(v))
		vcpu_step_by_hand(v);
	if (!step->wanted || woken)
		vcpu_deliver_interrupt(v);
	else if (window_holds(v->eip))
		vcpu_iret(v);
	return !v->halted && !v->dead && !(step->wanted && v->eip != step->from_eip);
}

static void until_it_can_run(struct vcpu *v)
{
	const volatile struct debug_step *step = &direct.shared->debug.step;
	bool woken;

	for (;;) {
		atomic_store_explicit(&direct_kicked, 0, memory_order_relaxed); /* what it came for is found here */
		if (v->dead)
			direct_call(DIRECT_DEAD, 0, 0, 0, 0);
		if (step->wanted && (direct.traced || v->eip != step->from_eip))
			show(DIRECT_DEBUG, WHY_STEP);
		direct.traced = false;
		woken = v->halted;
		if (v->halted)
			sleep_halted(v);
		/* From here on a kick is a signal, which comes as soon as guest code runs. */
		atomic_store(&direct.slot->state, SLOT_RUNNING);
		if (!collect_posts(v)) {
			/* Where the host's timer is set for the deadline, its signal comes as soon as guest code runs. */
			if (apic_deadline(&v->apic) != direct.timer_armed_ns)
				tick(v);
			if (can_run(v, woken))
				return;
		}
		atomic_store(&direct.slot->state, SLOT_MONITOR);
	}
}

/* An interrupt may want another place than the program that it interrupts. */
static void until_it_can_run_here(struct vcpu *v)
{
	do {
		atomic_store(&direct.slot->state, SLOT_MONITOR);
		direct_enter_space(v);
		if (direct.refault.wanted && (v->cpl == 3 || v->eip == direct.refault.eip))
			map_what_faulted(v);
		until_it_can_run(v);
	} while (!direct_is_in_place(v));
}

static void leave(struct vcpu *v, struct sigcontext *r)
{
	until_it_can_run_here(v);
	direct_settle_segments(v);
	arm_timer(v);
	registers_out(v, r);
	direct.stepping = wants_step(v);
	if (direct.stepping)
		r->eflags |= EFLAGS_TF;
	direct.left_eip = v->eip;
	atomic_store_explicit(&direct.slot->granted, 0, memory_order_relaxed);
	direct_time_switch(TIME_NATIVE);
}

/* (TRICKS: step-is-made) */
static bool was_step(const struct vcpu *v, int signal, const siginfo_t *info)
{
	return direct.stepping && signal == SIGTRAP && info->si_code == TRAP_IS_TRACE && !(v->eflags & EFLAGS_TF);
}

/* A debugger that has been told of what is watched knows where it is. */
static void step_made(struct vcpu *v, bool watched)
{
	direct.traced = !watched;
	v->interrupt_shadow = false;
}

static bool is_watch(int signal, const siginfo_t *info)
{
	return signal == SIGTRAP && info->si_code == TRAP_IS_WATCH;
}

/* Something that a debugger watches may have been touched, behind the instruction; which of the two a step was the host does not
 * say. The window's iret, rolled back, would touch it again. True: it was, and the CPU has stood.
 * (TRICKS: step-hides-watch) */
static bool on_watch(struct vcpu *v, int signal, const siginfo_t *info, bool at_iret)
{
	if (signal != SIGTRAP || (info->si_code != TRAP_IS_WATCH && info->si_code != TRAP_IS_TRACE) || !direct.shared->debug.watches)
		return false;
	if (at_iret && is_watch(signal, info))
		vcpu_iret(v);
	return show(DIRECT_DEBUG, WHY_WATCH);
}

/* Registers as they are for the guest. True: it was stopped in the window, where what it had called has been carried out. */
static bool guest_stopped(struct vcpu *v, struct sigcontext *r, bool in_window)
{
	struct window_stop at = { .rip = r->rip, .esp = r->rsp, .r8 = r->r8, .r10 = r->r10 };
	enum window_place place;

	if (direct.stepping) /* the flag is not the guest's */
		r->eflags &= ~(uint64_t)EFLAGS_TF | (v->eflags & EFLAGS_TF);
	at.eflags = r->eflags;
	registers_in(v, r);
	if (v->interrupt_shadow && v->eip != direct.left_eip)
		v->interrupt_shadow = false;
	if (!in_window)
		return false;
	place = window_settle(v, &at);
	if (place != WINDOW_IRET)
		count(place == WINDOW_SYSCALL ? TRAP_SYSCALL : TRAP_HYPERCALL);
	return place != WINDOW_IRET;
}

static void serve(struct vcpu *v, int signal, const siginfo_t *info, struct sigcontext *r, bool is_user, bool in_window)
{
	bool carried_out = guest_stopped(v, r, in_window), watched = on_watch(v, signal, info, in_window && !carried_out);

	if (carried_out || is_watch(signal, info))
		return;
	if (is_user && vcpu_strayed(v) && signal != SIGTRAP)
		on_stray(v);
	else if (signal == SIGUSR1 || signal == SIGALRM)
		count(TRAP_KICK);
	else if (was_step(v, signal, info))
		step_made(v, watched);
	else
		on_signal(v, signal, info, r, in_window);
}

static void on_stop(struct vcpu *v, int signal, const siginfo_t *info, struct sigcontext *r)
{
	bool is_user = r->cs == VMP_SEL_USER_CS;

	serve(v, signal, info, r, is_user, !is_user && (direct_is_bare() ? window_holds_syscall(r->rip) : window_holds(r->rip)));
	direct_bare_stopped(v, is_user, signal == SIGALRM);
}

/* The first signal is our own. */
static void begin(struct vcpu *v)
{
	direct.started = true;
	direct_fpu_size();
	if (direct.number) {
		direct_take_cpu();
	} else if (direct.loaded) {
		direct_fpu_out();
		direct_call(DIRECT_LOAD_FPU, 0, 0, 0, 0);
		direct_fpu_in();
		vcpu_state_rebuild(v);
	}
}

/* The host enters a handler with the guest's AC, NT and ID. (TRICKS: clear-own-ac) */
static void clear_own_ac(void) { __asm__ volatile("pushfq; andl %0, (%%rsp); popfq" : : "i"(~EFLAGS_AC) : "memory", "cc"); }

static void begin_stop(void)
{
	direct.inside = true;
	atomic_store_explicit(&direct.slot->state, SLOT_MONITOR, memory_order_release);
	direct_time_switch(TIME_EMULATION);
}

static bool is_engine(const struct sigcontext *r) { return r->rip >> 32 == (uint64_t)direct_gate_check >> 32; }

/* Kicks come at any instruction of the engine: its way out looks for them.
 * (TRICKS: kick-before-iretq) */
static bool kick_in_engine(int signal, struct sigcontext *r)
{
	uint64_t check = (uint64_t)direct_gate_check;

	if ((signal != SIGUSR1 && signal != SIGALRM) || !is_engine(r))
		return false;
	if (signal == SIGALRM)
		direct.timer_armed_ns = UINT64_MAX;
	atomic_store_explicit(&direct_kicked, 1, memory_order_relaxed);
	if (r->rip > check && r->rip <= (uint64_t)direct_gate_iretq)
		r->rip = check;
	return true;
}

/* Not for what the code did: it goes on as if nothing had come, and the monitor says so.
 * (TRICKS: sent-signal) */
static void on_sent(int signal, siginfo_t *info, void *context)
{
	(void)context;
	atomic_store_explicit(&direct.shared->sender, info->si_pid, memory_order_relaxed);
	atomic_fetch_or(&direct.shared->sent, 1ull << (signal - 1));
}

static void leave_gate(struct vcpu *v, struct gate_frame *frame)
{
	const struct sigcontext *r = &frame->context;

	leave(v, &frame->context);
	frame->rip = r->rip, frame->cs = r->cs, frame->eflags = r->eflags, frame->rsp = r->rsp, frame->ss = r->ss;
	direct.inside = false;
}

/* (TRICKS: no-segments) */
static void handler(int signal, siginfo_t *info, void *context)
{
	struct sigcontext *r = &((struct ucontext *)context)->uc_mcontext;
	struct vcpu *v = &direct.shared->vcpu;

	clear_own_ac();
	if (kick_in_engine(signal, r) || (is_watch(signal, info) && is_engine(r)))
		return;
	if (info->si_code <= 0 && signal != SIGUSR1 && signal != SIGALRM) {
		on_sent(signal, info, context);
		return;
	}
	if (direct.inside) {
		vcpu_kill(v, "the direct engine failed at %x (signal %u, address %x)", (uint32_t)r->rip, (unsigned)signal, (uint32_t)r->cr2);
		direct_call(DIRECT_DEAD, 0, 0, 0, 0);
	}
	begin_stop();
	if (signal == SIGALRM)
		direct.timer_armed_ns = UINT64_MAX;
	direct.fpu = (uint8_t *)r->fpstate;
	if (direct.started)
		on_stop(v, signal, info, r);
	else
		begin(v);
	leave_gate(v, (struct gate_frame *)GATE_FRAME_ADDRESS);
	direct_gate_leave((struct gate_frame *)GATE_FRAME_ADDRESS, (const uint8_t *)r->fpstate);
}

/* --- the gate ------------------------------------------------------------------------------------------------------- */

void direct_gate_enter(struct gate_frame *frame), direct_gate_again(struct gate_frame *frame);

/* From gate.S: something of the window's wants the engine. */
void direct_gate_enter(struct gate_frame *frame)
{
	struct vcpu *v = &direct.shared->vcpu;

	begin_stop();
	direct.fpu = NULL;
	if (!guest_stopped(v, &frame->context, true)) {
		count(TRAP_MARKER);
		vcpu_iret(v);
	}
	leave_gate(v, frame);
}

/* A kick came before guest code ran. */
void direct_gate_again(struct gate_frame *frame)
{
	struct vcpu *v = &direct.shared->vcpu;

	begin_stop();
	direct.fpu = NULL;
	count(TRAP_KICK);
	segments_in(v);
	window_close(direct.window, v);
	leave_gate(v, frame);
}

/* --- the start ------------------------------------------------------------------------------------------------------ */

extern __attribute__((visibility("hidden"))) const char direct_return[];
__asm__(".text\n.hidden direct_return\ndirect_return:\n	mov	$15, %eax\n	syscall\n"); /* rt_sigreturn */

static long install(int signal, void (*function)(int, siginfo_t *, void *), uint64_t blocked)
{
	struct { void *handler; unsigned long flags; void *restorer; uint64_t mask; } action = {
		(void *)function, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | 0x04000000 /* SA_RESTORER */, (void *)direct_return, blocked,
	};

	return host_call(__NR_rt_sigaction, signal, (long)&action, 0, 8, 0, 0);
}

/* Nothing is blocked in a handler: kicks are noted, and the others would be our own faults.
 * (TRICKS: nothing-blocked) */
static long install_all(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGSYS, SIGUSR1, SIGALRM };
	long error = 0;

	for (int signal = 1; signal <= SIGNALS; signal++)
		install(signal, on_sent, ~0ull); /* but those that nobody may handle */
	for (unsigned i = 0; i < ARRAY_LEN(signals) && error >= 0; i++)
		error = install(signals[i], handler, 0);
	return error;
}

long direct_install(void)
{
	struct { void *at; int flags, pad; uint64_t bytes; } stack = { (void *)GATE_STACK_ADDRESS, 0, 0, GATE_STACK_BYTES };
	struct { uint64_t value; int signal, notify; uint64_t reserved[6]; } event = { 0, SIGALRM, SIGEV_SIGNAL, { 0 } };
	int timer;
	long error = host_call(__NR_mmap, GATE_STACK_ADDRESS, GATE_STACK_BYTES + GATE_FRAME_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (error >= 0)
		error = host_call(__NR_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
	if (error >= 0)
		error = install_all();
	if (error >= 0)
		error = host_call(__NR_timer_create, 1 /* CLOCK_MONOTONIC */, (long)&event, (long)&timer, 0, 0, 0);
	direct.timer = timer;
	return error < 0 ? error : 0;
}

void direct_run(void)
{
	struct vcpu *v = &direct.shared->vcpu;

	direct.timer_armed_ns = UINT64_MAX;
	direct_env_init();
	direct_wait_for_cpu();
	if (direct.number == 0) {
		direct_begin_cpu(v);
		direct.loaded = direct_call(DIRECT_WAIT_START, 0, 0, 0, 0);
		v->env = &direct.env;
	}
	for (unsigned s = 0; s < SEG_COUNT; s++)
		direct.entered_with[s] = UINT16_MAX; /* nothing of the guest's is loaded yet */
	__asm__ volatile("int3" ::: "memory"); /* the handler returns into the guest */
	__builtin_unreachable();
}
