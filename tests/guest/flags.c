/* flags.c - the flags that a program pushes and pops are its own, wherever pages are fetched and
 * interrupts arrive.  This concerns above all the trap flag, which the machine itself uses for the
 * one instruction that needed a page before an interrupt is delivered.
 *
 * One thread pushes and pops flags on a page that another thread keeps writing, on the other
 * processor if there is one; a timer interrupts it.  At the end it sets the trap flag itself, and
 * must get one trap each time.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include "tests/guest/check.h"

enum { ROUNDS = 3000, ALARMS = 1000, PAGE = 4096, CARRY = 0x1, TRAP = 0x100, DIRECTION = 0x400 };

static uint32_t *page;
static volatile bool over;
static volatile unsigned traps, alarms;
static char other_stack[65536];

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void *keep_writing(void *unused)
{
	(void)unused;
	run_on(1);
	while (!over) {
		__atomic_fetch_add(&page[0], 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void on_trap(int signal) { (void)signal, traps++; }
static void on_alarm(int signal) { (void)signal, alarms++; }

/* Returns what pushf writes on that page. */
static uint32_t pushed(void)
{
	uint32_t flags;

	__asm__ volatile("mov %%esp, %%edi; mov %1, %%esp; pushf; pop %0; mov %%edi, %%esp"
			 : "=&r"(flags) : "r"(page + 512) : "edi", "memory");
	return flags;
}

/* The same after a popf of `flags`. */
static uint32_t popped(uint32_t flags)
{
	__asm__ volatile("mov %%esp, %%edi; mov %1, %%esp; push %0; popf; pushf; pop %0; cld; mov "
			 "%%edi, %%esp"
			 : "+&r"(flags)
			 : "r"(page + 512)
			 : "edi", "memory", "cc");
	return flags;
}

/* Sets and clears the trap flag; the no-operation and the second mov run under it. */
static void trap_twice(void)
{
	__asm__ volatile("mov %%esp, %%edi; mov %0, %%esp; pushf; orl %1, (%%esp); popf; "
			 "nop; pushf; andl %2, (%%esp); popf; mov %%edi, %%esp"
			 : : "r"(page + 512), "i"(TRAP), "i"(~TRAP) : "edi", "memory", "cc");
}

int main(void)
{
	struct sigaction trap = { .sa_handler = on_trap, .sa_flags = SA_ONSTACK };
	struct sigaction alarm = { .sa_handler = on_alarm, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	uint32_t with_trap = 0, wrong = 0;
	unsigned unwanted;
	pthread_t other;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	run_on(0);
	sigaltstack(&stack, NULL);
	sigaction(SIGTRAP, &trap, NULL);
	sigaction(SIGALRM, &alarm, NULL);
	if (!expect("a page", page != MAP_FAILED) ||
	    !expect("a second thread", !pthread_create(&other, NULL, keep_writing, NULL)))
		return check_result();
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned i = 0; alarms < ALARMS; i++) {
		uint32_t want = i & 1 ? CARRY | DIRECTION : 0;

		with_trap += !!(pushed() & TRAP);
		wrong += (popped(want) & (CARRY | DIRECTION | TRAP)) != want;
	}
	unwanted = traps;
	for (unsigned i = 0; i < ROUNDS; i++)
		trap_twice();
	over = true;
	pthread_join(other, NULL);
	expect("pushf shows no trap flag", !with_trap);
	expect("what popf sets pushf shows", !wrong);
	expect("no trap comes that was not asked for", !unwanted);
	/* after nop, pushf, andl and popf */
	expect("each one asked for comes, once", traps - unwanted == 4 * ROUNDS);
	return check_result();
}
