/* computes.c - programs that compute for a while, and then do something else: they keep their
 * registers, they get signals, they see what others do to their memory, and a wild pointer is a
 * fault with its address.
 *
 * The direct engine assumes that a program computes if ticks have found it running a few times in a
 * row without a system call between them (vmproc/direct_bare.c).  Therefore each part here begins
 * with 60 ms of that.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "base/guest_abi.h"
#include "tests/guest/check.h"

enum { PAGES = 64, WORDS = 1024, KERNEL = VMP_USER_LIMIT + (16 << 20), WHILE_NS = 60000000 };

static sigjmp_buf back;
static void *volatile seen_address;
static volatile unsigned alarms;
static _Thread_local volatile uint32_t own = 0x12345678;

static void compute(void)
{
	int64_t end = check_now_ns() + WHILE_NS; /* reading the clock is no system call */

	while (check_now_ns() < end)
		continue;
}

/* ---- registers ---- */

static struct { uint32_t general[5], vector[4]; uint64_t x87; uint32_t selectors[5]; } seen;

static void hold_registers(uint32_t rounds)
{
	static const uint32_t vector[4] = { 0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10 };
	static const double eighth = 0.125;

	__asm__ volatile("movups %[vector], %%xmm7; fldl %[eighth]\n"
			 "	pushl %%ebp; movl $0x11111111, %%eax; movl $0x22222222, %%edx\n"
			 "	movl $0x33333333, %%esi; movl $0x44444444, %%edi\n"
			 "	movl $0x55555555, %%ebp\n"
			 "1:	decl %%ecx; jnz 1b\n"
			 "	movl %%eax, seen; movl %%edx, seen + 4; movl %%esi, seen + 8\n"
			 "	movl %%edi, seen + 12; movl %%ebp, seen + 16\n"
			 "	popl %%ebp; movups %%xmm7, seen + 20; fstpl seen + 36\n"
			 "	movw %%cs, seen + 44; movw %%ds, seen + 48; movw %%es, seen + 52\n"
			 "	movw %%ss, seen + 56; movw %%gs, seen + 60"
			 : "+c"(rounds) : [vector] "m"(vector), [eighth] "m"(eighth)
			 : "eax", "edx", "esi", "edi", "xmm7", "memory");
}

static void registers(void)
{
	typeof(seen) first;
	int64_t end = check_now_ns() + 4 * WHILE_NS;
	bool same = true;

	_Static_assert(offsetof(typeof(seen), selectors) == 44, "as the assembly has it");
	hold_registers(1);
	first = seen;
	while (check_now_ns() < end) {
		hold_registers(3000000);
		same = same && !memcmp(&first, &seen, sizeof seen) && own == 0x12345678;
	}
	expect("registers stay as they are",
	       same && first.general[4] == 0x55555555 && first.vector[3] == 0x0d0e0f10);
}

/* ---- signals ---- */

static void on_alarm(int signal) { (void)signal, alarms++; }

static void signals(void)
{
	struct itimerval often = { { 0, 7000 }, { 0, 7000 } }, never = { { 0, 0 }, { 0, 0 } };

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	while (alarms < 20)
		continue;
	setitimer(ITIMER_REAL, &never, NULL);
	expect("20 signals came", true);
}

/* ---- memory ---- */

static bool all_are(const volatile uint32_t *pages, uint32_t value)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (pages[i * WORDS] != value)
			return false;
	return true;
}

static void set_all(volatile uint32_t *pages, uint32_t value)
{
	for (unsigned i = 0; i < PAGES; i++)
		pages[i * WORDS] = value;
}

static uint32_t *fresh_pages(void)
{
	return mmap(NULL, PAGES * WORDS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The child must not see what the parent writes after the fork. */
static void copies_on_write(void)
{
	uint32_t *pages = fresh_pages(), wrong = 0;
	int status, go[2];
	char byte = 0;

	for (uint32_t i = 1; i <= 8; i++) {
		set_all(pages, i);
		compute();
		if (pipe(go))
			exit(2);
		if (fork() == 0) {
			if (read(go[0], &byte, 1) != 1)
				_exit(2);
			compute();
			_exit(!all_are(pages, i));
		}
		if (i % 2)
			compute();
		set_all(pages, i + 100);
		wrong += write(go[1], &byte, 1) != 1;
		wrong += wait(&status) < 0 || status || !all_are(pages, i + 100);
		close(go[0]);
		close(go[1]);
	}
	munmap(pages, PAGES * WORDS * sizeof(uint32_t));
	expect("a child has its parent's memory of before", wrong == 0);
}

static uint32_t *volatile shared_pages;
static volatile uint32_t replaced, found;

static void *look(void *unused)
{
	(void)unused;
	for (uint32_t last = 0; last < 5;) {
		uint32_t now = replaced;

		if (now == last)
			continue;
		last = now;
		if (!all_are(shared_pages, now))
			found = 0x80000000;
		found++;
	}
	return NULL;
}

/* Another thread replaces pages that this one keeps reading. */
static void replaced_pages(void)
{
	pthread_t thread;

	shared_pages = fresh_pages();
	pthread_create(&thread, NULL, look, NULL);
	for (uint32_t i = 1; i <= 5; i++) {
		uint32_t *others = fresh_pages();

		set_all(others, i);
		usleep(WHILE_NS / 1000);
		mremap(others, PAGES * WORDS * sizeof(uint32_t), PAGES * WORDS * sizeof(uint32_t),
		       MREMAP_MAYMOVE | MREMAP_FIXED, shared_pages);
		replaced = i;
		while (found < i)
			usleep(1000);
	}
	pthread_join(thread, NULL);
	expect("new pages in the place of others are seen", found == 5);
}

/* ---- wild pointers ---- */

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	seen_address = info->si_addr;
	siglongjmp(back, signal);
}

/* The code gets the address KERNEL in eax, the CPU window's in edx. */
#define WILD(what, address, code) do { \
	uint32_t eax_ = KERNEL; \
	int signal_; \
	compute(); \
	if (!(signal_ = sigsetjmp(back, 1))) \
		__asm__ volatile(code : "+a"(eax_) : "d"(VMP_WINDOW) \
				 : "ecx", "esi", "edi", "cc", "memory"); \
	expect(what, signal_ == SIGSEGV && (uintptr_t)seen_address == (uintptr_t)(address)); \
} while (0)

static void wild_pointers(void)
{
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	WILD("a read", KERNEL, "movl (%%eax), %%eax");
	WILD("a write", KERNEL, "movl %%eax, (%%eax)");
	WILD("a write of the stack's segment", KERNEL,
	     "pushl %%ebp; movl %%eax, %%ebp; movl %%eax, (%%ebp); popl %%ebp");
	WILD("a push", KERNEL - 4,
	     "movl %%esp, %%esi; movl %%eax, %%esp; pushl $1; movl %%esi, %%esp");
	WILD("a string", KERNEL, "movl %%eax, %%edi; movl $8, %%ecx; cld; rep stosl");
	WILD("a locked increment", KERNEL, "lock incl (%%eax)");
	WILD("a read of the CPU window", VMP_WINDOW, "movl (%%edx), %%eax");
	WILD("a write to it", VMP_WINDOW, "movl %%eax, (%%edx)");
	WILD("a jump", KERNEL, "jmp *%%eax");
	expect("system calls go on",
	       syscall(SYS_getpid) > 0 && syscall(SYS_read, 0, (void *)KERNEL, 16) <= 0);
}

int main(void)
{
	registers();
	signals();
	copies_on_write();
	replaced_pages();
	wild_pointers();
	return check_result();
}
