/* engine_traps.c - tests of what each kind of stop means (engine/traps.c). */
#include <signal.h>
#include <stdio.h>
#include "tests/unit/engine_fake.h"

enum { INT80 = 0x80, KERNEL_CODE = 0x80, BUS_ALIGNED = 1, BUS_ADDRESS = 2, DIVIDE = 1, WATCH = 4 };

static unsigned counted(enum trap_kind kind) { return (unsigned)atomic_load(&slot.traps[kind]); }

enum { NO_VECTOR = -1 };

/* A stop of user code at CODE, and what must have come of it. */
static const struct row {
	const char *name;
	int signal, code;
	uint64_t address;
	unsigned vector, error;
	unsigned guessed;    /* what the instruction is read to be; for vector 0 */
	int raised;	     /* the exception that the guest gets */
	enum trap_kind kind; /* what it counts as */
	unsigned maps, admits;
	bool dead;
} rows[] = {
	{ "a kick", SIGUSR1, 0, 0, 0, 0, 0, NO_VECTOR, TRAP_KICK, 0, 0, false },
	{ "the timer", SIGALRM, 0, 0, 0, 0, 0, NO_VECTOR, TRAP_KICK, 0, 0, false },
	{ "a mapping that is not made", SIGSEGV, 1, PAGE_AT, VECTOR_PF, PF_USER, 0, NO_VECTOR,
	  TRAP_SHADOW_FAULT, 1, 0, false },
	{ "the same, to a tracer", SIGSEGV, 1, PAGE_AT, 0, 0, 0, NO_VECTOR, TRAP_SHADOW_FAULT, 1, 0,
	  false },
	{ "the guest's page fault", SIGSEGV, 1, PAGE_GONE, VECTOR_PF, PF_USER, 0, VECTOR_PF,
	  TRAP_GUEST_FAULT, 0, 0, false },
	{ "the same, to a tracer", SIGSEGV, 1, PAGE_GONE, 0, 0, 0, VECTOR_PF, TRAP_GUEST_FAULT, 0,
	  0, false },
	{ "beyond 4 GiB", SIGSEGV, 1, 1ull << 32, VECTOR_PF, 0, 0, NO_VECTOR, 0, 0, 0, true },
	{ "a privileged instruction", SIGSEGV, KERNEL_CODE, 0, VECTOR_GP, 0, 0, VECTOR_GP,
	  TRAP_PRIVILEGED, 0, 0, false },
	{ "into", SIGSEGV, KERNEL_CODE, 0, VECTOR_OF, 0, 0, VECTOR_OF, 0, 0, 0, false },
	{ "bound", SIGSEGV, KERNEL_CODE, 0, VECTOR_BR, 0, 0, VECTOR_BR, 0, 0, 0, false },
	{ "a page that is elsewhere", SIGBUS, BUS_ADDRESS, PAGE_AT, VECTOR_PF, PF_WRITE, 0,
	  NO_VECTOR, TRAP_PAGE_FETCH, 0, 1, false },
	{ "the same, to a tracer", SIGBUS, BUS_ADDRESS, PAGE_AT, 0, 0, 0, NO_VECTOR,
	  TRAP_PAGE_FETCH, 0, 1, false },
	{ "a page that nobody has mapped", SIGBUS, BUS_ADDRESS, PAGE_GONE, VECTOR_PF, 0, 0,
	  NO_VECTOR, 0, 0, 0, true },
	{ "a page beyond 4 GiB", SIGBUS, BUS_ADDRESS, PAGE_AT | 1ull << 32, VECTOR_PF, 0, 0,
	  NO_VECTOR, 0, 0, 0, true },
	{ "an alignment check", SIGBUS, BUS_ALIGNED, 0, VECTOR_AC, 0, 0, VECTOR_AC, 0, 0, 0,
	  false },
	{ "int3", SIGTRAP, KERNEL_CODE, 0, VECTOR_BP, 0, 0, VECTOR_BP, TRAP_EXCEPTION, 0, 0,
	  false },
	{ "the guest's own step", SIGTRAP, STEP, 0, VECTOR_DB, 0, 0, VECTOR_DB, TRAP_EXCEPTION, 0,
	  0, false },
	{ "a watchpoint", SIGTRAP, WATCH, 0, VECTOR_DB, 0, 0, NO_VECTOR, 0, 0, 0, false },
	{ "an unknown instruction", SIGILL, 0, 0, VECTOR_UD, 0, 0, VECTOR_UD, TRAP_EXCEPTION, 0, 0,
	  false },
	{ "a division", SIGFPE, DIVIDE, 0, 0, 0, 0, VECTOR_DE, TRAP_EXCEPTION, 0, 0, false },
	{ "the FPU", SIGFPE, 3, 0, VECTOR_MF, 0, 0, VECTOR_MF, TRAP_EXCEPTION, 0, 0, false },
	{ "SSE", SIGFPE, 3, 0, VECTOR_XM, 0, 0, VECTOR_XM, TRAP_EXCEPTION, 0, 0, false },
	{ "SSE, to a tracer", SIGFPE, 3, 0, 0, 0, VECTOR_XM, VECTOR_XM, TRAP_EXCEPTION, 0, 0,
	  false },
	{ "a refused system call", SIGSYS, 0, 0, 0, 0, 0, NO_VECTOR, 0, 0, 0, true },
};

static bool as_expected(const struct row *r)
{
	struct engine_stop s = { .signal = r->signal,
				 .code = r->code,
				 .address = r->address,
				 .vector = r->vector,
				 .error = r->error,
				 .call = 1,
				 .cs = VMP_SEL_USER_CS,
				 .in_guest = true };
	bool right;

	engine_user();
	fake.ram[CODE] = 0xfa; /* cli, where the instruction matters */
	set_pte(PAGE_GONE, 0);
	asked.guessed_vector = r->guessed;
	engine_on_stop(&e, &s);
	right = r->raised == NO_VECTOR ? fake.v.eip == CODE : in_handler((unsigned)r->raised);
	if (r->kind)
		right &= counted(r->kind) == 1;
	return right && asked.maps == r->maps && asked.admits == r->admits &&
	       !fake.v.dead == !r->dead;
}

static void stops_of_user_code(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (!as_expected(&rows[i])) {
			printf("\n  %s\n", rows[i].name);
			CU_FAIL("a stop of user code");
		}
}

/* What a tracer is not told of a general protection fault. */
static void faults_without_name(void)
{
	struct engine_stop s = {
		.signal = SIGSEGV, .code = KERNEL_CODE, .cs = VMP_SEL_USER_CS, .in_guest = true
	};

	engine_user();
	fake.ram[CODE] = 0x90;
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_GP));

	engine_user();
	fake.ram[CODE] = 0x90;
	asked.guessed_vector = VECTOR_BR;
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_BR));

	engine_user();
	fake.ram[CODE] = 0x90;
	asked.beyond = true;
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_PF));
	CU_ASSERT_EQUAL(fake.v.cr2, BEYOND_LIMIT);
}

static void access_to_pages(void)
{
	struct engine_stop s = { .signal = SIGSEGV,
				 .code = 1,
				 .address = PAGE_AT,
				 .vector = VECTOR_PF,
				 .error = PF_WRITE,
				 .cs = VMP_SEL_USER_CS,
				 .in_guest = true };

	engine_user();
	engine_on_stop(&e, &s);
	CU_ASSERT_EQUAL(asked.access, ACCESS_WRITE);
	s.error = PF_FETCH;
	engine_on_stop(&e, &s);
	CU_ASSERT_EQUAL(asked.access, ACCESS_FETCH);
	s.vector = 0;
	s.error = PF_WRITE; /* not valid without a vector */
	engine_on_stop(&e, &s);
	CU_ASSERT_EQUAL(asked.access, ACCESS_READ);
	asked.guessed_write = true;
	engine_on_stop(&e, &s);
	CU_ASSERT_EQUAL(asked.access, ACCESS_WRITE);
	s.signal = SIGBUS;
	s.code = BUS_ADDRESS;
	engine_on_stop(&e, &s);
	CU_ASSERT(asked.write);
	CU_ASSERT(fake.v.interrupt_shadow); /* the instruction runs first */
	e.many_hosts = false;
	engine_on_stop(&e, &s);
	CU_ASSERT(fake.v.dead);
}

static void system_calls(void)
{
	struct engine_stop s = {
		.signal = SIGSYS, .call = 4, .cs = VMP_SEL_USER_CS, .in_guest = true
	};

	engine_user(); /* int $0x80 in the guest's own segment */
	memcpy(&fake.ram[CODE - 2], "\xcd\x80", 2);
	set_gate(INT80, VMP_SEL_KERNEL_CS, HANDLERS + INT80 * 16, GATE_TRAP | GATE_USER);
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(INT80));
	CU_ASSERT_EQUAL(counted(TRAP_SYSCALL), 1);

	engine_user(); /* `syscall`, behind which Linux loads its own segment */
	s.cs = 0x23;
	s.in_guest = false;
	memcpy(&fake.ram[CODE - 2], "\x0f\x05", 2);
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_UD));
	CU_ASSERT_FALSE(fake.v.dead);

	engine_user(); /* from 64-bit code */
	s.cs = 0x33;
	engine_on_stop(&e, &s);
	CU_ASSERT(fake.v.dead);
}

/* Whatever the signal, code outside the guest's segments ends the machine. */
static void foreign_segments(void)
{
	static const int signals[] = { SIGUSR1, SIGALRM, SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE };

	for (unsigned i = 0; i < ARRAY_LEN(signals); i++) {
		engine_user();
		debug.watches = true;
		e.stepping = true;
		engine_on_stop(&e, &(struct engine_stop){
					   .signal = signals[i], .code = WATCH, .cs = 0x33 });
		CU_ASSERT(fake.v.dead);
		CU_ASSERT_EQUAL(asked.stands, 0);
	}
	engine_user(); /* user code in the kernel's half */
	fake.v.eip = VMP_USER_LIMIT + 4;
	engine_on_stop(&e, &(struct engine_stop){
				   .signal = SIGUSR1, .cs = VMP_SEL_USER_CS, .in_guest = true });
	CU_ASSERT(in_handler(VECTOR_PF));
}

static void debuggers(void)
{
	struct engine_stop int3 = { .signal = SIGTRAP, .code = KERNEL_CODE, .in_guest = true };
	struct engine_stop watch = { .signal = SIGTRAP, .code = WATCH, .in_guest = true };
	struct engine_stop step = { .signal = SIGTRAP, .code = STEP, .in_guest = true };

	engine_user();
	debug.attached = true;
	engine_on_stop(&e, &int3);
	CU_ASSERT_EQUAL(asked.why, WHY_BREAKPOINT);
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	asked.own_int3 = true;
	engine_on_stop(&e, &int3);
	CU_ASSERT(in_handler(VECTOR_BP));

	engine_user();
	debug.watches = true;
	asked.watched = true;
	engine_on_stop(&e, &watch);
	CU_ASSERT_EQUAL(asked.why, WHY_WATCH);
	e.stepping = true;
	engine_on_stop(&e, &step); /* the host says one of the two */
	CU_ASSERT_EQUAL(asked.stands, 2);
	CU_ASSERT_FALSE(e.traced);
	asked.watched = false;
	engine_on_stop(&e, &step);
	CU_ASSERT(e.traced);
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
}

/* A debugger inside the guest. */
static void watchpoints_of_the_guest(void)
{
	struct engine_stop watch = { .signal = SIGTRAP, .code = WATCH, .in_guest = true };
	struct engine_stop step = { .signal = SIGTRAP, .code = STEP, .in_guest = true };
	static const struct {
		bool step, own_step, stepping, debugger, in_window;
		uint32_t hits, dr6;
		bool raised;
	} cases[] = {
		{ false, false, false, false, false, 2, 2, true },
		{ false, false, false, false, false, 0, 0, false },
		{ false, false, false, true, false, 2, 0, false },
		{ false, false, false, false, true, 2, 0, false },
		{ true, true, false, false, false, 8, 8 | DR6_SINGLE_STEP, true },
		{ true, true, false, false, false, 0, DR6_SINGLE_STEP, true },
		{ true, false, true, false, false, 1, 1, true },  /* the engine's own step */
		{ true, false, true, false, false, 0, 0, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct engine_stop s = cases[i].step ? step : watch;

		engine_user();
		debug.guest.control = 0xf0001;
		debug.watches = cases[i].debugger;
		asked.hits = cases[i].hits;
		e.stepping = cases[i].stepping;
		fake.v.eflags |= cases[i].own_step ? EFLAGS_TF : 0;
		s.in_window = cases[i].in_window;
		s.at.rip = VMP_STUB_SYSCALL;
		engine_on_stop(&e, &s);
		CU_ASSERT_EQUAL(fake.v.dr[6] & (0xf | DR6_SINGLE_STEP), cases[i].dr6);
		CU_ASSERT_EQUAL(in_handler(VECTOR_DB), cases[i].raised);
		CU_ASSERT_EQUAL(asked.checks, !cases[i].debugger);
	}
}

static void calls_of_the_window(void)
{
	engine_reset();
	fake.v.interrupt_shadow = true;
	e.left_eip = CODE - 1;
	engine_on_call(&e, &(struct window_stop){ .rip = VMP_STUB_IRET,
						  .esp = KERNEL_STACK - 12,
						  .eflags = EFLAGS_FIXED });
	CU_ASSERT_FALSE(fake.v.interrupt_shadow);
	CU_ASSERT_EQUAL(counted(TRAP_MARKER), 1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(stops_of_user_code),
		UNIT_TEST(faults_without_name),
		UNIT_TEST(access_to_pages),
		UNIT_TEST(system_calls),
		UNIT_TEST(foreign_segments),
		UNIT_TEST(debuggers),
		UNIT_TEST(watchpoints_of_the_guest),
		UNIT_TEST(calls_of_the_window),
		UNIT_END
	};

	return UNIT_RUN("what stops mean", tests);
}
