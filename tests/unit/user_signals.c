/* user_signals.c - --strict on the direct engine: what a signal in the user process becomes: a
 * report, or nothing but a record, where it finds the process in its own loop.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <asm/unistd_64.h>
#include "tests/unit/unit.h"

#undef EINTR /* the user process has its own */
#define sigset_t kernel_sigset_t /* the host's; the C library has one, too */
#define _LINUX_TIME_H
#define VMPROC_HOST_H
static long host_call(long number, long a, long b, long c, long d, long e, long f)
{
	(void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	CU_FAIL_FATAL("a call of the host's");
	return 0;
}
#include "vmproc/user.c" /* build/vmproc is a program, not a folder of objects */

/* The loop's places, in its order. */
#define PLACE(name) ".globl " #name "\n.hidden " #name "\n" #name ": .byte 0\n"
__asm__(".pushsection .rodata\n"
	PLACE(user_window) PLACE(user_window_end) PLACE(user_report_even_at)
	PLACE(user_report_odd_at) PLACE(user_order_at) PLACE(user_call_at) PLACE(user_permit_at)
	PLACE(user_check) PLACE(user_iretq) PLACE(user_bytes)
	".byte 0\n.popsection\n");
struct direct direct;
void direct_setup_done(enum direct_setup step) { (void)step; }
long vmproc_install_filter(struct sock_filter *filter, unsigned short length)
{
	(void)filter;
	return length;
}

enum outcome { REPORTED = 1, WENT_ON };
static jmp_buf back;
static uint64_t resumed_at;
void user_report(void) { longjmp(back, REPORTED); }
void user_resume(const struct user_resumed *r, const void *fpstate)
{
	(void)fpstate;
	resumed_at = r->rip;
	longjmp(back, WENT_ON);
}

static enum outcome signalled(int signal, int code, uint64_t rip, int64_t rax)
{
	static uint8_t fpstate[4096];
	struct ucontext context = {
		.uc_mcontext = { .rip = rip, .rax = (uint64_t)rax, .cs = 0x33,
				 .fpstate = (void *)fpstate }
	};
	siginfo_t info = { .si_signo = signal, .si_code = code };
	int outcome = setjmp(back);

	if (!outcome)
		on_signal(signal, &info, &context);
	return (enum outcome)outcome;
}

/* A kick that finds the loop is recorded, and the loop goes on where it was, whatever it waits for:
 * the permits may be on their way.  The kernel's process counts those that find it waiting. */
static void kick_in_the_loop(void)
{
	const struct { const char *at; int rax; unsigned waits; } row[] = {
		{ user_order_at, -4, 1 }, { user_permit_at, -4, 1 }, { user_order_at, 1, 0 },
		{ user_permit_at, 1, 0 }, { user_call_at, 0, 0 }, { user_report_odd_at, -4, 0 },
		/* from here on user_check looks again */
		{ user_check, 0, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		report->waited = user_kicked = 0;
		CU_ASSERT_EQUAL(signalled(SIGUSR1, SI_TKILL, (uintptr_t)row[i].at, row[i].rax),
				WENT_ON);
		CU_ASSERT_EQUAL(resumed_at, (uintptr_t)row[i].at);
		CU_ASSERT_EQUAL(report->waited, row[i].waits);
		CU_ASSERT_EQUAL(user_kicked, 1);
	}
}

static void fault_in_the_loop(void)
{
	CU_ASSERT_EQUAL(signalled(SIGTRAP, TRAP_TRACE, (uintptr_t)user_permit_at, 1), REPORTED);
	CU_ASSERT_EQUAL(report->signal, SIGTRAP);
	CU_ASSERT_EQUAL(report->cs, 0x33);
}

static void program_stops(void)
{
	enum { AT = 0x8048000 };

	CU_ASSERT_EQUAL(signalled(SIGUSR1, SI_TKILL, AT, -4), REPORTED);
	CU_ASSERT(report->signal == SIGUSR1 && report->rip == AT && !user_kicked);
	CU_ASSERT_EQUAL(signalled(SIGSEGV, SI_KERNEL, AT, 0), REPORTED);
	CU_ASSERT_EQUAL(report->signal, SIGSEGV);
	CU_ASSERT_EQUAL(signalled(SIGSEGV, SI_USER, AT, 0), WENT_ON);
	CU_ASSERT_EQUAL(resumed_at, AT);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "a kick in the loop", kick_in_the_loop },
		{ "a fault in the loop", fault_in_the_loop },
		{ "the program stops", program_stops },
		UNIT_END
	};

	if (mmap((void *)USER_REPORT_ADDRESS, USER_MAILBOX_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	return UNIT_RUN("signals of a user process", tests);
}
