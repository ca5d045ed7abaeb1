/* watch.c - a debugger inside the guest: hardware watchpoints and breakpoints of another program.
 *
 * The reference machine is not compared with: QEMU's interpreter has debug registers of its own.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

enum { ON_RUN, ON_WRITE, ON_ACCESS = 3, LENGTH_4 = 3, HITS = 0xf };

static volatile uint32_t cells[64] __attribute__((aligned(256)));
static volatile uint32_t result;

static __attribute__((noinline)) void called(void)
{
	result += cells[9];
	__asm__ volatile("");
}

/* The program that is watched: between two of its own stops it does one thing. */
static void child(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (;;) {
		cells[1] = cells[1] + 1; /* write */
		raise(SIGSTOP);
		result = cells[2]; /* read */
		raise(SIGSTOP);
		cells[3] = 3; /* nobody watches it */
		raise(SIGSTOP);
		called();
		raise(SIGSTOP);
	}
}

static long set_register(pid_t pid, unsigned number, uint32_t value)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg) + 4 * number, value);
}

static uint32_t get_register(pid_t pid, unsigned number)
{
	return ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg) + 4 * number, 0);
}

static bool watch(pid_t pid, unsigned number, const volatile void *at, unsigned kind,
		  unsigned length)
{
	uint32_t control = get_register(pid, 7);

	return !set_register(pid, number, (uint32_t)at) &&
	       !set_register(pid, 7, control | 1u << 2 * number |
					     (kind | length << 2) << (16 + 4 * number));
}

/* Continue the child.  Returns which watchpoints it has triggered; 0: it stopped itself; -1:
 * something else. */
static int run(pid_t pid)
{
	uint32_t hits;
	int status;

	ptrace(PTRACE_CONT, pid, 0, 0);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	if (WSTOPSIG(status) == SIGSTOP)
		return 0;
	hits = get_register(pid, 6) & HITS;
	set_register(pid, 6, 0);
	return WSTOPSIG(status) == SIGTRAP ? (int)hits : -1;
}

static pid_t begin(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		child();
	waitpid(pid, &status, 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_data(void)
{
	pid_t pid = begin();

	expect("a write is watched", watch(pid, 0, &cells[1], ON_WRITE, LENGTH_4));
	expect("an access is watched", watch(pid, 2, &cells[2], ON_ACCESS, LENGTH_4));
	expect("the write stops the program", run(pid) == 1);
	expect("the write was done", ptrace(PTRACE_PEEKDATA, pid, &cells[1], 0) == 1);
	expect("it goes on", run(pid) == 0);
	expect("the read stops it", run(pid) == 4);
	expect("it goes on after the read", run(pid) == 0);
	expect("other memory does not stop it", run(pid) == 0 && run(pid) == 0);
	expect("the second round stops it again", run(pid) == 1 && run(pid) == 0);
	expect("the watchpoints are removed", !set_register(pid, 7, 0));
	expect("nothing stops it any more", run(pid) == 0 && run(pid) == 0 && run(pid) == 0);
	end(pid);
}

static void test_code(void)
{
	pid_t pid = begin();
	struct user_regs_struct regs;

	expect("code is watched", watch(pid, 1, (const void *)called, ON_RUN, 0));
	expect("it runs up to there", run(pid) == 0 && run(pid) == 0 && run(pid) == 0);
	expect("it stops there", run(pid) == 2 && !ptrace(PTRACE_GETREGS, pid, 0, &regs) &&
					 (uint32_t)regs.eip == (uint32_t)called);
	expect("it goes on behind it", run(pid) == 0);
	end(pid);
}

/* A step and a watchpoint at once: both are reported. */
static void test_step(void)
{
	enum { STEP = 1 << 14, MOST = 100000 };
	pid_t pid = begin();
	bool both = false;
	int status = 0;

	watch(pid, 3, &cells[1], ON_WRITE, LENGTH_4);
	for (unsigned i = 0; i < MOST && !both; i++) {
		ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
		    WSTOPSIG(status) != SIGTRAP)
			break;
		both = (get_register(pid, 6) & (STEP | HITS)) == (STEP | 8);
		set_register(pid, 6, 0);
	}
	expect("a step over the write reports both", both);
	end(pid);
}

/* Another program runs in between, and must not be stopped. */
static void test_others(void)
{
	pid_t pid = begin(), other;
	int status;

	watch(pid, 0, &cells[1], ON_WRITE, LENGTH_4);
	other = fork();
	if (!other) {
		for (unsigned i = 0; i < 100; i++) {
			cells[1] = i;
			usleep(100);
		}
		_exit(7);
	}
	expect("the watched program stops", run(pid) == 1);
	expect("another program does not",
	       waitpid(other, &status, 0) == other && WIFEXITED(status) &&
		       WEXITSTATUS(status) == 7);
	end(pid);
}

int main(void)
{
	test_data();
	test_code();
	test_step();
	test_others();
	return check_result();
}
