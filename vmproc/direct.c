/* direct.c - the direct engine: signal handlers, and the gate (gate.S), that enter and leave guest
 * code (direct.h).  What a stop means, and what happens before guest code runs again, is
 * engine/'s; what engine/ asks for is in direct_ops.c.
 *
 * From a signal, or a call of the gate, until the way out, the guest is stopped and struct vcpu
 * holds its registers.  Kicks that arrive meanwhile are recorded, and checked before guest code
 * runs.  Segment registers need not be saved: this code uses none of them.  FPU and vector
 * registers are in the signal frame; in the gate they stay in the processor, since this code
 * does not use them either.  A handler does not return, but leaves by the gate: the host's
 * rt_sigreturn takes a microsecond.
 */
#include "vmproc/direct.h"

#include <linux/signal.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>
#include <linux/mman.h>
#include "base/hostshm.h"
#include "vcpu/state.h"
#include "vcpu/window.h"
#include "vmproc/direct_env.h"
#include "vmproc/gate.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

#define TRAP_IS_WATCH 4 /* TRAP_HWBKPT */
enum { SIGNALS = 64 };

struct direct direct;
_Atomic uint32_t direct_kicked;

/* --- registers -------------------------------------------------------------------------------- */

#define READ_SEGMENT(name) \
	({ \
		uint16_t value_; \
		__asm__ volatile("mov %%" #name ", %0" : "=r"(value_)); \
		value_; \
	})
#define WRITE_SEGMENT(name, value) __asm__ volatile("mov %0, %%" #name : : "r"((uint32_t)(value)))

/* A guest kernel that was entered with AC set must not run with AC. (TRICKS: user-ac) */
static uint32_t native_flags(const struct vcpu *v)
{
	return v->cpl == 3 ? DIRECT_FLAGS_NATIVE : DIRECT_FLAGS_NATIVE & ~EFLAGS_AC;
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
	native = native_flags(v) | EFLAGS_RF;
	v->gpr[EAX] = r->rax, v->gpr[ECX] = r->rcx, v->gpr[EDX] = r->rdx, v->gpr[EBX] = r->rbx;
	v->gpr[ESP] = r->rsp, v->gpr[EBP] = r->rbp, v->gpr[ESI] = r->rsi, v->gpr[EDI] = r->rdi;
	v->eip = r->rip;
	v->eflags = (v->eflags & ~native) | (r->eflags & native) | EFLAGS_FIXED;
	segments_in(v);
	window_close(direct.window, v);
}

static void registers_out(struct vcpu *v, struct sigcontext *r)
{
	r->rax = v->gpr[EAX], r->rcx = v->gpr[ECX], r->rdx = v->gpr[EDX], r->rbx = v->gpr[EBX];
	r->rsp = v->gpr[ESP], r->rbp = v->gpr[EBP], r->rsi = v->gpr[ESI], r->rdi = v->gpr[EDI];
	r->rip = v->eip;
	r->eflags = (v->eflags & (native_flags(v) | EFLAGS_RF)) | EFLAGS_FIXED | EFLAGS_IF;
	r->cs = vmproc_selector(v->seg[SEG_CS]);
	r->ss = vmproc_selector(v->seg[SEG_SS]);
	/* Unchanged segment registers are still loaded, or the host has cleared them with their
	 * descriptors. */
	if (v->seg[SEG_DS] != direct.entered_with[SEG_DS])
		WRITE_SEGMENT(ds, vmproc_selector(v->seg[SEG_DS]));
	if (v->seg[SEG_ES] != direct.entered_with[SEG_ES])
		WRITE_SEGMENT(es, vmproc_selector(v->seg[SEG_ES]));
	if (v->seg[SEG_FS] != direct.entered_with[SEG_FS])
		WRITE_SEGMENT(fs, vmproc_selector(v->seg[SEG_FS]));
	if (v->seg[SEG_GS] != direct.entered_with[SEG_GS])
		WRITE_SEGMENT(gs, vmproc_selector(v->seg[SEG_GS]));
	window_open(direct.window, v, (uint64_t)direct_gate,
		    atomic_load_explicit(&direct.slot->spins, memory_order_relaxed),
		    direct.shared->host);
	if (direct.strict || direct.tls_stale || direct.engine.refault.wanted ||
	    direct_bare_awaits(v))
		direct.window->slow_return = true;
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

/* --- from a stop to the way out --------------------------------------------------------------- */

static void note_resumed(void)
{
	if (atomic_load_explicit(&direct.slot->granted, memory_order_relaxed) && direct_is_traced())
		atomic_store_explicit(&direct.slot->fault.resumed_ns, direct_now_ns(),
				      memory_order_relaxed);
}

static void begin_stop(void)
{
	direct.inside = true;
	atomic_store_explicit(&direct.engine.bell->state, SLOT_MONITOR, memory_order_release);
	direct_time_switch(TIME_EMULATION);
}

/* With --strict: the guest's program runs in its user process, until the guest kernel is to run,
 * here. */
static void run_user(struct vcpu *v)
{
	struct engine_stop s;

	while (direct.strict && v->cpl == 3) {
		note_resumed();
		engine_leave(&direct.engine);
		direct_time_switch(TIME_NATIVE);
		direct_user_run(v, &s);
		begin_stop();
		if (!v->dead)
			engine_on_stop(&direct.engine, &s);
		engine_until_ready(&direct.engine);
	}
	direct.engine.shadow = &direct.space.shadow;
	if (direct.fpu_away)
		direct_fpu_in();
}

static void leave(struct vcpu *v, struct sigcontext *r)
{
	engine_until_ready(&direct.engine);
	run_user(v);
	direct_settle_segments(v);
	note_resumed();
	engine_leave(&direct.engine);
	registers_out(v, r);
	if (direct.engine.stepping)
		r->eflags |= EFLAGS_TF;
	direct_time_switch(TIME_NATIVE);
}

/* Convert the registers to the guest's view. */
static struct window_stop guest_stopped(struct vcpu *v, struct sigcontext *r)
{
	if (direct.engine.stepping) /* the flag is not the guest's */
		r->eflags &= ~(uint64_t)EFLAGS_TF | (v->eflags & EFLAGS_TF);
	registers_in(v, r);
	return (struct window_stop){
		.rip = r->rip, .esp = r->rsp, .r8 = r->r8, .r10 = r->r10, .eflags = r->eflags
	};
}

static bool in_window(const struct sigcontext *r)
{
	if (r->cs == VMP_SEL_USER_CS)
		return false;
	return direct_is_bare() ? window_holds_syscall(r->rip) : window_holds(r->rip);
}

static void on_stop(struct vcpu *v, int signal, const siginfo_t *info, struct sigcontext *r)
{
	struct engine_stop s = {
		.signal = signal,
		.code = info->si_code,
		.vector = r->trapno,
		.error = r->err,
		.cs = r->cs,
		.address = signal == SIGBUS ? (uintptr_t)info->si_addr : r->cr2,
		.call = (uint32_t)info->si_syscall,
		.in_guest = r->cs & VMPROC_SEL_TABLE,
		.in_window = in_window(r),
	};

	s.at = guest_stopped(v, r);
	if (signal == SIGUSR1 && direct.shared->many_hosts && s.in_guest)
		direct_note_seen(v);
	engine_on_stop(&direct.engine, &s);
	direct_bare_stopped(v, s.cs == VMP_SEL_USER_CS, signal == SIGALRM);
}

/* Handle the first signal, the int3 of direct_run(): no guest code has run yet. */
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
static void clear_own_ac(void)
{
	__asm__ volatile("pushfq; andl %0, (%%rsp); popfq"
			 :
			 : "i"(~EFLAGS_AC)
			 : "memory", "cc");
}

static bool is_watch(int signal, const siginfo_t *info)
{
	return signal == SIGTRAP && info->si_code == TRAP_IS_WATCH;
}
static bool is_engine(const struct sigcontext *r)
{
	return r->rip >> 32 == (uint64_t)direct_gate_check >> 32;
}

/* True if a kick interrupted the engine itself, which can happen at any instruction: the way out
 * checks for it. (TRICKS: kick-before-iretq) */
static bool kick_in_engine(int signal, struct sigcontext *r)
{
	uint64_t check = (uint64_t)direct_gate_check;

	if ((signal != SIGUSR1 && signal != SIGALRM) || !is_engine(r))
		return false;
	if (signal == SIGALRM)
		direct.engine.timer_armed_ns = UINT64_MAX;
	atomic_store_explicit(&direct_kicked, 1, memory_order_relaxed);
	if (direct.strict)
		direct_user_kick();
	if (r->rip > check && r->rip <= (uint64_t)direct_gate_iretq)
		r->rip = check;
	return true;
}

/* Handle a signal that another process sent: the guest continues as if none had arrived, and the
 * monitor reports it. (TRICKS: sent-signal) */
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
	frame->rip = r->rip, frame->cs = r->cs, frame->eflags = r->eflags, frame->rsp = r->rsp,
	frame->ss = r->ss;
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
		vcpu_kill(v, "the direct engine failed at %x (signal %u, address %x)",
			  (uint32_t)r->rip, (unsigned)signal, (uint32_t)r->cr2);
		direct_call(DIRECT_DEAD, 0, 0, 0, 0);
	}
	begin_stop();
	if (signal == SIGALRM)
		direct.engine.timer_armed_ns = UINT64_MAX;
	direct_fpu_take((uint8_t *)r->fpstate);
	if (direct.started)
		on_stop(v, signal, info, r);
	else
		begin(v);
	leave_gate(v, (struct gate_frame *)GATE_FRAME_ADDRESS);
	direct_gate_leave((struct gate_frame *)GATE_FRAME_ADDRESS, (const uint8_t *)r->fpstate);
}

/* --- the gate --------------------------------------------------------------------------------- */

void direct_gate_enter(struct gate_frame *frame), direct_gate_again(struct gate_frame *frame);

/* Called from gate.S: code of the window requests the engine. */
void direct_gate_enter(struct gate_frame *frame)
{
	struct vcpu *v = &direct.shared->vcpu;

	struct window_stop at;

	begin_stop();
	direct.fpu = NULL;
	at = guest_stopped(v, &frame->context);
	engine_on_call(&direct.engine, &at);
	leave_gate(v, frame);
}

/* Called from gate.S: a kick arrived before guest code ran. */
void direct_gate_again(struct gate_frame *frame)
{
	struct vcpu *v = &direct.shared->vcpu;

	begin_stop();
	direct.fpu = NULL;
	engine_count(&direct.engine, TRAP_KICK);
	segments_in(v);
	window_close(direct.window, v);
	leave_gate(v, frame);
}

/* --- the start -------------------------------------------------------------------------------- */

extern __attribute__((visibility("hidden"))) const char direct_return[];
/* the host's rt_sigreturn */
__asm__(".text\n.hidden direct_return\ndirect_return:\n	mov	$15, %eax\n	syscall\n");

static long install(int signal, void (*function)(int, siginfo_t *, void *), uint64_t blocked)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = {
		(void *)function,
		SA_SIGINFO | SA_ONSTACK | SA_NODEFER | 0x04000000 /* SA_RESTORER */,
		(void *)direct_return,
		blocked,
	};

	return host_call(__NR_rt_sigaction, signal, (long)&action, 0, 8, 0, 0);
}

/* A handler blocks no signal.  It records kicks; any other signal would be a fault of the engine
 * itself. (TRICKS: nothing-blocked) */
static long install_all(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGTRAP, SIGILL,
				       SIGFPE,  SIGSYS, SIGUSR1, SIGALRM };
	long error = 0;

	for (int signal = 1; signal <= SIGNALS; signal++)
		install(signal, on_sent, ~0ull); /* fails for SIGKILL and SIGSTOP, as it should */
	for (unsigned i = 0; i < ARRAY_LEN(signals) && error >= 0; i++)
		error = install(signals[i], handler, 0);
	return error;
}

long direct_install(void)
{
	struct {
		void *at;
		int flags, pad;
		uint64_t bytes;
	} stack = { (void *)GATE_STACK_ADDRESS, 0, 0, GATE_STACK_BYTES };
	struct {
		uint64_t value;
		int signal, notify;
		uint64_t reserved[6];
	} event = { 0, SIGALRM, SIGEV_SIGNAL, { 0 } };
	int timer;
	long error =
		host_call(__NR_mmap, GATE_STACK_ADDRESS, GATE_STACK_BYTES + GATE_FRAME_BYTES,
			  PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (error >= 0)
		error = host_call(__NR_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
	if (error >= 0)
		error = install_all();
	if (error >= 0)
		error = host_call(__NR_timer_create, 1 /* CLOCK_MONOTONIC */, (long)&event,
				  (long)&timer, 0, 0, 0);
	direct.timer = timer;
	return error < 0 ? error : 0;
}

void direct_run(void)
{
	struct vcpu *v = &direct.shared->vcpu;

	direct_env_init();
	direct_ops_init();
	if (direct.strict)
		direct_user_init();
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
