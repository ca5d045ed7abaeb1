/* direct_user.c - --strict on the direct engine: what the kernel process accepts from its user
 * process, whose program may write any report, and any bytes in an order that it chooses.
 *
 * The host's calls are the fake's: two pipes, and a program that does one thing at each kick.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <asm/unistd_64.h>
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#undef EINTR /* the VM process has its own */
#undef EAGAIN
#define _LINUX_SIGNAL_H /* <signal.h> of the C library, which names the same */
#define VMPROC_HOST_H /* host_call() is this file's */
static long host_call(long number, long a, long b, long c, long d, long e, long f);
#include "vmproc/direct_user.c" /* build/vmproc is a program, not a folder of objects */
#include "vmproc/user_take.c"

enum { MOST = 512, EAGAIN = 11, NEVER = -1 };

struct direct direct;
_Atomic uint32_t direct_kicked;
void direct_fpu_copy(uint8_t *xsave) { (void)xsave; }
struct user_desc direct_bare_descriptor(struct user_desc d) { return d; }
void direct_pages_mapped(bool user, gva_t gva, uint32_t bytes, gpa_t gpa)
{
	(void)user, (void)gva, (void)bytes, (void)gpa;
}

/* The user process, and the host. */
static struct {
	uint8_t pipe[16]; /* the report's */
	unsigned in_pipe;
	unsigned interrupts, poll_interrupts; /* how many calls are interrupted */
	bool dead;
	int reports_at, waits_from; /* at which kick it reports, from which one it waits; NEVER */
	uint8_t order[MOST]; /* what has come through the order's pipe */
	unsigned orders, refused; /* this many bytes less are taken of a write, or none: MOST */
	unsigned reads, polls, kicks;
	uint32_t serial, calls; /* as they were in the order at the last write */
	jmp_buf blocked;
} user;
static struct direct_shared shared;
static struct user_report *const the_report = (struct user_report *)USER_REPORT_ADDRESS;
#define V (&shared.vcpu)

static uint8_t right_byte(void) { return order->serial % 2 ? USER_ODD : USER_EVEN; }

static void put(uint8_t byte) { user.pipe[user.in_pipe++] = byte; }

static long read_report(uint8_t *bytes, size_t room)
{
	unsigned n = user.in_pipe < room ? user.in_pipe : (unsigned)room;

	user.reads++;
	if (user.interrupts && user.interrupts--)
		return -EINTR;
	if (!n && !user.dead)
		longjmp(user.blocked, 1);
	memcpy(bytes, user.pipe, n);
	memmove(user.pipe, user.pipe + n, user.in_pipe -= n);
	return n;
}

static long poll_report(const struct pollfd *fd, long fds)
{
	if (!fds)
		longjmp(user.blocked, 1);
	CU_ASSERT(fds == 1 && fd->fd == VMPROC_REPORT_FD && fd->events == POLLIN);
	user.polls++;
	if (user.poll_interrupts && user.poll_interrupts--)
		return -EINTR;
	return user.in_pipe > 0;
}

static long write_order(const uint8_t *bytes, size_t n)
{
	CU_ASSERT_FATAL(n && user.orders + n <= MOST);
	user.serial = order->serial, user.calls = order->calls;
	if (user.refused == MOST)
		return -EAGAIN;
	n -= user.refused;
	memcpy(user.order + user.orders, bytes, n);
	user.orders += (unsigned)n;
	return (long)n;
}

static long kick(void)
{
	int now = (int)user.kicks++;

	if (now == MOST)
		longjmp(user.blocked, 1);
	if (user.waits_from != NEVER && now >= user.waits_from)
		the_report->waited++;
	if (now == user.reports_at)
		put(right_byte());
	return 0;
}

static long host_call(long number, long a, long b, long c, long d, long e, long f)
{
	(void)d, (void)e, (void)f;
	switch (number) {
	case __NR_read: CU_ASSERT_EQUAL_FATAL(a, VMPROC_REPORT_FD);
		return read_report((uint8_t *)b, (size_t)c);
	case __NR_write: CU_ASSERT_EQUAL_FATAL(a, VMPROC_ORDER_FD);
		return write_order((const uint8_t *)b, (size_t)c);
	case __NR_ppoll:
		return poll_report((const struct pollfd *)a, b);
	case __NR_pidfd_send_signal: CU_ASSERT(a == VMPROC_USER_FD && b == SIGUSR1);
		return kick();
	}
	CU_FAIL_FATAL("a call that the jail forbids");
	return 0;
}

/* The order that is carried out has this number, and the program runs. */
static void begin(uint32_t serial)
{
	const size_t bytes = USER_ORDER_ADDRESS - USER_REPORT_ADDRESS + USER_MAIL_BYTES;
	void *at = (void *)USER_REPORT_ADDRESS;

	if (mmap(at, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		abort();
	memset(&user, 0, sizeof user);
	memset(&direct, 0, sizeof direct);
	memset(&shared, 0, sizeof shared);
	user.reports_at = user.waits_from = NEVER;
	direct.shared = &shared;
	direct.user.serial = order->serial = serial;
	direct.user.running = 1;
}

/* False: the kernel process waits for ever. */
static bool goes_on(void (*function)(void))
{
	if (setjmp(user.blocked))
		return false;
	function();
	return true;
}

static void send_calls(void) { send(false); }
static void send_program(void) { send(true); }
static void add_unmap(void) { add_call(__NR_munmap, 0, 0, 0, 0, 0, 0); }
static void run_program(void)
{
	struct engine_stop stop;

	direct_user_run(V, &stop);
}

static bool is_killed(const char *why) { return V->dead && strstr(V->dead_reason, why); }

/* --- tests ------------------------------------------------------------------------------------ */

/* Of all bytes that a program can write, one answers an order, and it comes alone. */
static void answers(void)
{
	static const struct { uint8_t serial, byte[4]; bool right; } row[] = {
		{ 6, { USER_EVEN }, true }, { 7, { USER_ODD }, true },
		{ 6, { USER_ODD }, false }, { 7, { USER_EVEN }, false },
		{ 6, { USER_WAKE }, false }, { 7, { USER_PERMIT }, false },
		{ 6, { USER_EVEN, USER_EVEN }, false }, { 7, { USER_ODD, USER_ODD }, false },
		{ 6, { USER_EVEN, USER_ODD }, false }, { 7, { USER_EVEN, USER_ODD }, false },
		{ 6, { USER_EVEN, USER_ODD, USER_EVEN }, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		begin(row[i].serial);
		for (unsigned k = 0; row[i].byte[k]; k++)
			put(row[i].byte[k]);
		CU_ASSERT_TRUE(goes_on(wait_for_report));
		CU_ASSERT_EQUAL(user.reads, 1);
		CU_ASSERT_EQUAL(!V->dead, row[i].right);
		CU_ASSERT_EQUAL(is_killed("has reported twice"), !row[i].right);
	}
}

/* A process that has died reports nothing: the kernel process never goes on. */
static void dead(void)
{
	begin(6);
	user.dead = true;
	CU_ASSERT_FALSE(goes_on(wait_for_report));
	CU_ASSERT_FALSE(V->dead);
}

/* A signal that is no kick of a program that runs does not end the wait, and kicks nobody. */
static void interrupted(void)
{
	begin(6);
	direct.user.running = 0;
	user.interrupts = 3;
	put(USER_EVEN);
	CU_ASSERT_TRUE(goes_on(wait_for_report));
	CU_ASSERT_FALSE(V->dead);
	CU_ASSERT_EQUAL(user.reads, 4);
	CU_ASSERT_EQUAL(user.polls, 0);
	direct_user_kick();
	CU_ASSERT_EQUAL(user.kicks, 0);
}

/* A program that was kicked: how often it is kicked again, and what becomes of it. */
static void kicked(void)
{
	enum { TRIES = 200, WAITS = 3 };
	static const struct { int reports_at, waits_from; unsigned polls; bool stops; } row[] = {
		{ 0, NEVER, 2, true },
		{ 40, NEVER, 42, true },
		/* the last of many */
		{ TRIES - 2, NEVER, TRIES, true },
		{ NEVER, NEVER, TRIES, false },
		/* it waits for an order that does not come */
		{ NEVER, 0, WAITS + 1, false },
		{ NEVER, 5, WAITS + 6, false },
		/* it was found in front of its order, and took it then */
		{ WAITS - 1, 0, WAITS + 1, true },
		{ 1, 0, 3, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		begin(7);
		the_report->waited = UINT32_MAX; /* of earlier orders */
		user.reports_at = row[i].reports_at, user.waits_from = row[i].waits_from;
		user.interrupts = 1;
		user.poll_interrupts = 1;
		CU_ASSERT_TRUE(goes_on(wait_for_report));
		CU_ASSERT_EQUAL(user.polls, row[i].polls + 1 /* interrupted */);
		CU_ASSERT_EQUAL(!V->dead, row[i].stops);
		CU_ASSERT_EQUAL(is_killed("does not stop"), !row[i].stops);
		CU_ASSERT_EQUAL(user.reads, row[i].stops ? 2 : 1);
	}
}

/* An order has its number when its first byte is sent, and as many permits as calls.  One byte
 * more wakes a process that says that it sleeps. */
static void orders(void)
{
	static const struct { uint8_t calls, sleeps; } row[] = {
		{ 0, 0 }, { 0, 1 }, { 3, 0 }, { 3, 1 }, { USER_CALLS, 1 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		unsigned n = row[i].calls + row[i].sleeps, permits = 0;

		begin(6);
		the_report->sleeps = row[i].sleeps;
		for (unsigned k = 0; k < row[i].calls; k++)
			add_unmap();
		put(USER_ODD);
		CU_ASSERT_TRUE(goes_on(send_program));
		CU_ASSERT_FALSE(V->dead);
		CU_ASSERT_EQUAL(user.orders, n);
		for (unsigned k = 0; k < n; k++)
			permits += user.order[k] == USER_PERMIT;
		CU_ASSERT_EQUAL(permits, row[i].calls);
		CU_ASSERT(!row[i].sleeps || user.order[0] == USER_WAKE);
		CU_ASSERT(!n || (user.serial == 7 && user.calls == row[i].calls));
		CU_ASSERT(order->serial == 7 && order->calls == row[i].calls && order->run);
		CU_ASSERT_EQUAL(direct.user.calls, 0);
	}
}

static void look(int signal)
{
	(void)signal;
	user.serial = order->serial;
	mprotect(the_report, PAGE_BYTES, PROT_READ | PROT_WRITE);
}

/* Whether the process sleeps is read when the order has its number: it says so before it looks. */
static void sleeper(void)
{
	begin(6);
	put(USER_ODD);
	mprotect(the_report, PAGE_BYTES, PROT_NONE);
	signal(SIGSEGV, look);
	CU_ASSERT_TRUE(goes_on(send_program));
	signal(SIGSEGV, SIG_DFL);
	CU_ASSERT_EQUAL(user.serial, 7);
}

/* One call more than an order holds: an order goes out first. */
static void full_order(void)
{
	begin(6);
	for (unsigned k = 0; k < USER_CALLS; k++)
		add_unmap();
	CU_ASSERT_EQUAL(user.orders, 0);
	put(USER_ODD);
	CU_ASSERT_TRUE(goes_on(add_unmap));
	CU_ASSERT_EQUAL(user.orders, USER_CALLS);
	CU_ASSERT_FALSE(order->run);
	CU_ASSERT_EQUAL(direct.user.calls, 1);
}

/* A pipe that takes no byte has bytes that wake; but each call needs its permit. */
static void full_pipe(void)
{
	static const struct { unsigned calls, refused; } row[] = {
		{ 0, MOST }, { 0, 1 }, { 2, MOST }, { 2, 1 }, { 2, 2 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		begin(7);
		the_report->sleeps = 1;
		for (unsigned k = 0; k < row[i].calls; k++)
			add_unmap();
		user.refused = row[i].refused;
		put(USER_EVEN);
		CU_ASSERT_TRUE(goes_on(send_calls));
		CU_ASSERT_EQUAL(!V->dead, !row[i].calls);
		CU_ASSERT_EQUAL(is_killed("takes no permits"), row[i].calls > 0);
	}
}

static void failed_call(void)
{
	begin(6);
	the_report->failed = -12;
	put(USER_ODD);
	CU_ASSERT_TRUE(goes_on(send_calls));
	CU_ASSERT_TRUE(is_killed("cannot map a program's page: error c"));
}

/* A stop of the program answers an order that runs it, but none that has calls alone: these were
 * not made, and their permits are left over.  Nothing is ordered any more. */
static void stop_for_calls(void)
{
	static const struct { bool run; uint32_t signal; bool right; } row[] = {
		{ true, SIGTRAP, true }, { true, 0, true }, { false, 0, true },
		{ false, SIGTRAP, false }, { false, SIGUSR1, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		begin(6);
		add_unmap();
		the_report->signal = row[i].signal;
		put(USER_ODD);
		CU_ASSERT_TRUE(goes_on(row[i].run ? send_program : send_calls));
		CU_ASSERT_EQUAL(!V->dead, row[i].right);
		CU_ASSERT_EQUAL(is_killed("has not made an order's calls"), !row[i].right);
		put(USER_EVEN);
		the_report->signal = 0;
		add_unmap();
		CU_ASSERT_TRUE(goes_on(send_calls));
		CU_ASSERT_EQUAL(user.orders, row[i].right ? 2 : 1);
	}
}

/* The wrong byte of an order that runs the program: its report is not taken. */
static void report_of_none(void)
{
	begin(6);
	V->gpr[EAX] = 1;
	the_report->gpr[EAX] = 2;
	the_report->signal = SIGSYS;
	put(USER_EVEN);
	CU_ASSERT_TRUE(goes_on(run_program));
	CU_ASSERT_TRUE(is_killed("has reported twice"));
	CU_ASSERT_EQUAL(V->gpr[EAX], 1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(answers),
		UNIT_TEST(dead),
		UNIT_TEST(interrupted),
		UNIT_TEST(kicked),
		UNIT_TEST(orders),
		UNIT_TEST(sleeper),
		{ "an order that is full", full_order },
		{ "a pipe that is full", full_pipe },
		{ "a call that failed", failed_call },
		{ "a stop in the place of an order's calls", stop_for_calls },
		{ "a report that answers no order", report_of_none },
		UNIT_END
	};

	return UNIT_RUN("a kernel process and its user process", tests);
}
