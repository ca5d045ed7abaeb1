/* user.c - the user process of --strict on the direct engine (user.h): its start, and its signals.
 *
 * A signal is a stop of the program.  Its handler writes the report, and goes to the loop in
 * user_stub.S; a system call comes there without a signal.  The program may have changed all memory
 * of this process that is not read-only, and may have jumped here: the kernel process relies on
 * nothing but the loop's system calls.
 */
#include "vmproc/user.h"

#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/signal.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>
#include "vmproc/direct_env.h"
#include "vmproc/filter.h"
#include "vmproc/gate.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

enum { EINTR = 4, SIGNALS = 64, SOFTWARE_SIZE_AT = 480 };

#define HIDDEN __attribute__((visibility("hidden")))
extern HIDDEN const char user_window[], user_window_end[], user_report_even_at[],
	user_report_odd_at[], user_order_at[], user_call_at[], user_permit_at[], user_check[],
	user_iretq[], user_bytes[];
void user_report(void) __attribute__((noreturn)) HIDDEN;
/* The general registers, as user_resume() takes them. */
struct user_resumed {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx;
	uint64_t rip, cs, rflags, rsp, ss;
};
void user_resume(const struct user_resumed *r, const void *fpstate)
	__attribute__((noreturn)) HIDDEN;
void user_was_kicked(void), user_done(void);

_Atomic uint32_t user_kicked HIDDEN; /* a kick arrived while no program ran */

static struct user_report *const report = (struct user_report *)USER_REPORT_ADDRESS;
static const struct user_order *const order = (const struct user_order *)USER_ORDER_ADDRESS;

/* --- stops ------------------------------------------------------------------------------------ */

#define SELECTOR(name) \
	({ \
		uint16_t value_; \
		__asm__ volatile("mov %%" #name ", %0" : "=r"(value_)); \
		value_; \
	})

/* Report the state in which the program was to run: a kick came first.  Called by user_stub.S. */
void user_was_kicked(void)
{
	struct user_report *r = report;

	user_kicked = 0;
	__builtin_memcpy(r->gpr, order->gpr, sizeof r->gpr);
	r->gpr[ESP] = order->rsp;
	r->rip = order->rip, r->rflags = order->rflags, r->cs = order->cs, r->ss = order->ss;
	r->ds = order->ds, r->es = order->es, r->fs = order->fs, r->gs = order->gs;
	r->signal = SIGUSR1;
	__builtin_memcpy(r->xsave, order->xsave, order->xsave_bytes);
	user_report();
}

/* Report that the order's calls are made.  Called by user_stub.S. */
void user_done(void)
{
	report->signal = 0;
	user_report();
}

static bool is_engine(uint64_t rip) { return rip >> 32 == (uint64_t)user_check >> 32; }

/* Go on where a signal has interrupted the loop, or the program.  A kick is recorded. */
static void go_on(const struct ucontext *u)
{
	const struct sigcontext *c = &u->uc_mcontext;
	uint64_t check = (uint64_t)user_check;
	bool late = c->rip > check && c->rip <= (uint64_t)user_iretq;
	struct user_resumed back = {
		c->r8, c->r9, c->r10, c->r11, c->r12, c->r13, c->r14, c->r15, c->rdi, c->rsi,
		c->rbp, c->rbx, c->rdx, c->rax, c->rcx, late ? check : c->rip, c->cs, c->eflags,
		c->rsp, c->ss,
	};

	user_kicked = 1;
	user_resume(&back, c->fpstate);
}

static void report_stop(int signal, const siginfo_t *info, const struct sigcontext *c)
{
	struct user_report *r = report;
	const uint8_t *fpstate = (const uint8_t *)c->fpstate;
	uint32_t bytes = *(const uint32_t *)(fpstate + SOFTWARE_SIZE_AT);

	r->gpr[EAX] = c->rax, r->gpr[ECX] = c->rcx, r->gpr[EDX] = c->rdx, r->gpr[EBX] = c->rbx;
	r->gpr[ESP] = c->rsp, r->gpr[EBP] = c->rbp, r->gpr[ESI] = c->rsi, r->gpr[EDI] = c->rdi;
	r->rip = c->rip, r->rflags = c->eflags, r->r8 = c->r8, r->r10 = c->r10;
	r->cs = c->cs, r->ss = c->ss;
	r->ds = SELECTOR(ds), r->es = SELECTOR(es), r->fs = SELECTOR(fs), r->gs = SELECTOR(gs);
	__asm__ volatile("rdfsbase %0" : "=r"(r->fs_base));
	__asm__ volatile("rdgsbase %0" : "=r"(r->gs_base));
	r->signal = (uint32_t)signal, r->code = (uint32_t)info->si_code;
	r->vector = (uint32_t)c->trapno, r->error = (uint32_t)c->err;
	r->call = (uint32_t)info->si_syscall;
	r->address = signal == SIGBUS ? (uintptr_t)info->si_addr : c->cr2;
	__builtin_memcpy(r->xsave, fpstate, bytes < sizeof r->xsave ? bytes : sizeof r->xsave);
}

/* A kick that interrupts the loop finds no program that runs.  It may find the loop where it waits
 * for an order, or for a permit; the kernel's process knows whether it should.
 * (TRICKS: waits-without-report, permit-behind-call) */
static void on_signal(int signal, siginfo_t *info, void *context)
{
	const struct ucontext *u = context;
	const struct sigcontext *c = &u->uc_mcontext;

	__asm__ volatile("pushq $2; popfq" : : : "memory", "cc");
	if (info->si_code <= 0 && signal != SIGUSR1) /* another process sent it */
		go_on(u);
	if ((int64_t)c->rax == -EINTR &&
	    (c->rip == (uint64_t)user_order_at || c->rip == (uint64_t)user_permit_at))
		report->waited++;
	if (is_engine(c->rip) && signal == SIGUSR1)
		go_on(u);
	user_kicked = 0;
	report_stop(signal, info, c);
	user_report();
}

/* A signal that another process sent: as if none had arrived. (TRICKS: sent-signal) */
static void on_sent(int signal, siginfo_t *info, void *context)
{
	const struct ucontext *u = context;

	(void)signal, (void)info;
	__asm__ volatile("pushq $2; popfq" : : : "memory", "cc");
	go_on(u);
}

/* --- the start -------------------------------------------------------------------------------- */

static long install_signals(void)
{
	static const int stops[] = { SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGSYS, SIGUSR1 };
	struct {
		void *at;
		int flags, pad;
		uint64_t bytes;
	} stack = { (void *)GATE_STACK_ADDRESS, 0, 0, GATE_STACK_BYTES };
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = { (void *)on_sent, SA_SIGINFO | SA_ONSTACK | SA_NODEFER | 0x04000000, NULL, 0 };
	long error = host_call(__NR_mmap, GATE_STACK_ADDRESS, GATE_STACK_BYTES + GATE_FRAME_BYTES,
			       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			       0);

	if (error >= 0)
		error = host_call(__NR_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
	for (int signal = 1; signal <= SIGNALS; signal++)
		host_call(__NR_rt_sigaction, signal, (long)&action, 0, 8, 0, 0);
	action.handler = (void *)on_signal;
	for (unsigned i = 0; i < ARRAY_LEN(stops) && error >= 0; i++)
		error = host_call(__NR_rt_sigaction, stops[i], (long)&action, 0, 8, 0, 0);
	return error;
}

/* Put code of this program in the place of the window's.  Nothing can change it later: the jail
 * allows no call that would make the page writable. */
static long map_window(void)
{
	long error = host_call(__NR_mmap, VMP_STUB_SYSCALL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (error < 0)
		return error;
	__builtin_memcpy((void *)VMP_STUB_SYSCALL, user_window,
			 (size_t)(user_window_end - user_window));
	return host_call(__NR_mprotect, VMP_STUB_SYSCALL, PAGE_BYTES, PROT_READ | PROT_EXEC, 0, 0,
			 0);
}

/* Map the two mailboxes, and the page of set_thread_area's argument in the window's place, where
 * nothing is accessible but during that call. */
static long map_mail(const struct vmproc_start *start)
{
	uint64_t at = STUB_FD_MAIL + start->space * USER_MAIL_BYTES;
	long error = host_call(__NR_mmap, USER_REPORT_ADDRESS, USER_MAILBOX_BYTES,
			       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD,
			       (long)at);

	if (error >= 0)
		error = host_call(__NR_mmap, USER_ORDER_ADDRESS, USER_MAILBOX_BYTES, PROT_READ,
				  MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD,
				  (long)(at + USER_MAILBOX_BYTES));
	if (error >= 0)
		error = host_call(__NR_mmap, VMP_WINDOW, PAGE_BYTES, PROT_NONE,
				  MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD, (long)(at + USER_TLS_AT));
	return error < 0 ? error : map_window();
}

/* The jail: four system calls, each from its place alone, and i386's set_thread_area of what the
 * kernel process has written. */
static long close_jail(void)
{
#define REFUSE SECCOMP_RET_TRAP
#define REPORT(odd) /* of an order with an even number, or an odd one: 19 instructions */ \
	LOAD(nr), MUST_BE(__NR_write), LOAD_LOW(0), MUST_BE(USER_REPORT_FD), \
	ADDRESS(1, (uint64_t)user_bytes + (odd)), ADDRESS(2, 1), GIVE(SECCOMP_RET_ALLOW)
	uint64_t even_at = (uint64_t)user_report_even_at, odd_at = (uint64_t)user_report_odd_at,
		 order_at = (uint64_t)user_order_at, permit_at = (uint64_t)user_permit_at,
		 call_at = (uint64_t)user_call_at;
	struct sock_filter filter[] = {
		LOAD(arch),
		IF(AUDIT_ARCH_I386, 7),
		LOAD(nr), MUST_BE(USER_SET_THREAD_AREA), LOAD_LOW(0), MUST_BE(DIRECT_TLS_ARGUMENT),
		GIVE(SECCOMP_RET_ALLOW),
		LOAD(arch), MUST_BE(AUDIT_ARCH_X86_64),
		FROM_UPPER(even_at),
		IF(even_at, 19), REPORT(0),
		IF(odd_at, 19), REPORT(1),
		IF(order_at, 1), BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		IF(permit_at, 19),
		LOAD(nr), MUST_BE(__NR_read), LOAD_LOW(0), MUST_BE(USER_ORDER_FD),
		ADDRESS(1, USER_REPORT_ADDRESS + USER_REPORT_BYTE), ADDRESS(2, 1),
		GIVE(SECCOMP_RET_ALLOW),
		MUST_BE(call_at),
		LOAD(nr),
		IF(__NR_mmap, 16), /* below 4 GiB, the RAM, shared and fixed */
		BELOW_4_GIB(0), BELOW_4_GIB(1), LOAD_LOW(3), MUST_BE(MAP_SHARED | MAP_FIXED),
		BELOW_4_GIB(3), LOAD_LOW(4), MUST_BE(VMPROC_RAM_FD), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_munmap, 7),
		BELOW_4_GIB(0), BELOW_4_GIB(1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_mprotect, 17),
		ADDRESS(0, VMP_WINDOW), ADDRESS(1, PAGE_BYTES), LOAD_LOW(2),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)PROT_READ), MUST_BE(0),
		GIVE(SECCOMP_RET_ALLOW),
		MUST_BE(__NR_modify_ldt), /* of a descriptor in the order */
		LOAD_LOW(0), MUST_BE(0x11), LOAD_HIGH(1), MUST_BE(USER_ORDER_ADDRESS >> 32),
		LOAD_LOW(1), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)(PAGE_MASK)),
		MUST_BE(USER_ORDER_ADDRESS), LOAD_LOW(2), MUST_BE(sizeof(struct user_desc)),
		GIVE(SECCOMP_RET_ALLOW),
		GIVE(REFUSE),
	};

	return vmproc_install_filter(filter, sizeof filter / sizeof *filter);
#undef REPORT
#undef REFUSE
}

/* The direct engine's memory is mapped only to follow the monitor through the start. */
void user_main(const struct vmproc_start *start)
{
	struct direct_shared *s = (struct direct_shared *)DIRECT_SHARED_ADDRESS;
	long error = host_call(__NR_mmap, DIRECT_SHARED_ADDRESS, sizeof *s, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD, STUB_FD_DIRECT);

	if (error < 0)
		host_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
	direct.shared = s;
	error = map_mail(start);
	if (error >= 0)
		error = install_signals();
	s->setup_error = error < 0 ? (int32_t)error : 0;
	direct_setup_done(SETUP_MAPPED);
	while (atomic_load(&s->setup) == SETUP_MAPPED)
		host_call(__NR_futex, (long)&s->setup, FUTEX_WAIT, SETUP_MAPPED, 0, 0, 0);
	/* It is in its jail before it reads an order, or it is dead. */
	direct_setup_done(SETUP_JAILED);
	host_call(__NR_munmap, DIRECT_SHARED_ADDRESS, sizeof *s, 0, 0, 0, 0);
	host_call(__NR_munmap, STUB_PAGE_ADDRESS, STUB_PAGE_BYTES, 0, 0, 0, 0);
	host_call(__NR_close_range, VMPROC_RAM_FD + 1, ~0u, 0, 0, 0, 0);
	host_call(__NR_close_range, USER_REPORT_FD + 1, VMPROC_RAM_FD - 1, 0, 0, 0, 0);
	if (close_jail() < 0)
		host_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
	user_done();
	__builtin_unreachable();
}
