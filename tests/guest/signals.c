/* signals.c - handlers, faults with their addresses, alternate stacks, masks, interrupted calls,
 * crashes that are survived. */
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

static volatile sig_atomic_t seen, seen_code, on_other_stack;
static void *volatile seen_address;
static sigjmp_buf back;
static char other_stack[65536];
/* An address that the compiler cannot know. */
static char *at(uintptr_t address)
{
	__asm__ volatile("" : "+r"(address));
	return (char *)address;
}

static void note(int signal, siginfo_t *info, void *context)
{
	char here;

	(void)context;
	seen = signal;
	seen_code = info->si_code;
	seen_address = info->si_addr;
	on_other_stack = &here >= other_stack && &here < other_stack + sizeof other_stack;
}

static void note_and_leave(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	siglongjmp(back, 1);
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigaction(signal, &action, NULL);
	seen = seen_code = 0;
	seen_address = NULL;
}

static void test_kill_self(void)
{
	int all = 0;

	handle(SIGUSR1, note, 0);
	for (int i = 0; i < 500; i++) {
		seen = 0;
		raise(SIGUSR1);
		all += seen == SIGUSR1;
	}
	expect("five hundred signals to oneself, each handled", all == 500);
}

/* Runs `fault` and expects one signal from it, with its code and address. */
#define expect_fault(what, number, code, address, fault) do { \
		handle(number, note_and_leave, 0); \
		if (sigsetjmp(back, 1) == 0) { \
			fault; \
		} \
		expect(what, seen == (number)); \
		expect(what ": its code", seen_code == (code)); \
		expect(what ": its address", seen_address == (void *)(address)); \
	} while (0)

static void test_faults(void)
{
	volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int zero = 0, result;
	char *after;

	expect_fault("a read of an unmapped page", SIGSEGV, SEGV_MAPERR, 0x123,
		     result = *(volatile char *)at(0x123));
	expect_fault("a write to an unmapped page", SIGSEGV, SEGV_MAPERR, 0x1000,
		     *(volatile char *)at(0x1000) = 1);
	expect_fault("a write to a read-only page", SIGSEGV, SEGV_ACCERR, page + 5, page[5] = 1);
	expect_fault("a jump to nowhere", SIGSEGV, SEGV_MAPERR, 0x1234,
		     ((void (*)(void))at(0x1234))());
	handle(SIGFPE, note_and_leave, 0);
	if (sigsetjmp(back, 1) == 0)
		result = 1000 / zero;
	expect("a division by zero", seen == SIGFPE && seen_code == FPE_INTDIV);
	handle(SIGILL, note_and_leave, 0);
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("ud2");
	expect("an undefined instruction", seen == SIGILL && seen_code == ILL_ILLOPN);
	handle(SIGTRAP, note, 0);
	__asm__ volatile("int3; 1: movl $1b, %0" : "=r"(after));
	expect("a breakpoint", seen == SIGTRAP && after);
	handle(SIGSEGV, note_and_leave, 0);
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("hlt");
	expect("a privileged instruction", seen == SIGSEGV && seen_code == SI_KERNEL);
	handle(SIGSEGV, note_and_leave, 0);
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("int $0x81" : : "a"(20));
	expect("an interrupt that is no system call", seen == SIGSEGV && seen_code == SI_KERNEL);
	handle(SIGSEGV, note_and_leave, 0);
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("cli");
	expect("cli in user mode", seen == SIGSEGV);
	handle(SIGSEGV, note_and_leave, 0);
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("inb $0x80, %%al" : : : "eax");
	expect("a port in user mode", seen == SIGSEGV);
	(void)result;
}

/* The trap flag: each instruction of a run raises one SIGTRAP. */
static volatile sig_atomic_t steps;

static void count_step(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	steps++;
}

static void test_single_step(void)
{
	handle(SIGTRAP, count_step, 0);
	steps = 0;
	__asm__ volatile("pushf; orl $0x100, (%%esp); popf; nop; nop; nop; pushf; andl $~0x100, "
			 "(%%esp); popf"
			 :
			 :
			 : "memory", "cc");
	expect("the trap flag steps through six instructions", steps == 6);
}

static void test_other_stack(void)
{
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof other_stack };

	sigaltstack(&stack, NULL);
	handle(SIGUSR2, note, SA_ONSTACK);
	raise(SIGUSR2);
	expect("a handler on the alternate stack", seen == SIGUSR2 && on_other_stack);
	handle(SIGUSR2, note, 0);
	raise(SIGUSR2);
	expect("a handler on the stack itself", seen == SIGUSR2 && !on_other_stack);
}

static int overflow(volatile int depth)
{
	if (depth < 0)
		return 0;
	volatile char space[4096];

	space[depth % 4096] = 1;
	return overflow(depth + 1) + space[depth % 4096];
}

static void test_stack_overflow(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		handle(SIGSEGV, note_and_leave, SA_ONSTACK);
		if (sigsetjmp(back, 1) == 0)
			overflow(0);
		_exit(seen == SIGSEGV && on_other_stack ? 3 : 4);
	}
	waitpid(pid, &status, 0);
	expect("an overflown stack is survived on the other one",
	       WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void test_masks(void)
{
	sigset_t set, old, pending;

	handle(SIGUSR1, note, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGUSR1);
	sigpending(&pending);
	expect("a blocked signal waits", !seen && sigismember(&pending, SIGUSR1));
	sigprocmask(SIG_SETMASK, &old, NULL);
	expect("and arrives when let in", seen == SIGUSR1);
}

static void test_interrupted_call(void)
{
	struct timespec t = { 1000, 0 };
	pid_t parent = getpid(), pid;
	int result, error;

	handle(SIGUSR1, note, 0);
	pid = fork();
	while (pid == 0) { /* one may come before the sleep */
		usleep(50000);
		kill(parent, SIGUSR1);
	}
	result = nanosleep(&t, NULL);
	error = errno;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0)
		;
	expect("a signal interrupts a sleep", result < 0 && error == EINTR && seen == SIGUSR1);
}

/* A busy loop is interrupted many times; none of its registers may change. */
static volatile sig_atomic_t alarms;
static void count_alarm(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context, alarms++;
}

static void test_registers_survive(void)
{
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, 2000000 }, { 0, 2000000 } };
	bool kept = true;

	handle(SIGALRM, count_alarm, 0);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &every, NULL);
	while (alarms < 20) {
		uint32_t a = 0x11111111, b = 0x22222222, c = 2000, d = 0x44444444, s = 0x55555555,
			 t = 0x66666666;

		__asm__ volatile("1: decl %2; jnz 1b"
				 : "+a"(a), "+b"(b), "+c"(c), "+d"(d), "+S"(s), "+D"(t));
		kept = kept && a == 0x11111111 && b == 0x22222222 && d == 0x44444444 &&
		       s == 0x55555555 && t == 0x66666666;
	}
	timer_delete(timer);
	expect("a timer interrupts a busy loop", true);
	expect("the loop's registers survive", kept);
}

static void test_crash(void)
{
	static const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGBUS };

	for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			signal(signals[i], SIG_DFL);
			if (signals[i] == SIGSEGV)
				*(volatile char *)at(8) = 1;
			raise(signals[i]);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		expect("a crash kills its process alone",
		       WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
	}
}

int main(void)
{
	test_kill_self();
	test_faults();
	test_single_step();
	test_other_stack();
	test_stack_overflow();
	test_masks();
	test_interrupted_call();
	test_registers_survive();
	test_crash();
	return check_result();
}
