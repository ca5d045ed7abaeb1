/* engine.c - the loop of both engines (engine/loop.c), and what each kind of stop means
 * (engine/traps.c), by an engine that only counts what it is asked for.
 */
#include <signal.h>
#include <stdio.h>

#include "engine/engine.h"
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

enum { VECTOR = 0x31, INT80 = 0x80, PAGE_AT = 0x80000, PAGE_GONE = 0x81000 };
enum { BEYOND_LIMIT = VMP_USER_LIMIT + 16 };
enum { KERNEL_CODE = 0x80, BUS_ALIGNED = 1, BUS_ADDRESS = 2, DIVIDE = 1, STEP = 2, WATCH = 4 };

static struct vcpu_slot slot;
static struct shadow shadow;
static uint32_t entries[LINEAR_PAGES];
static struct engine_debug debug;
static struct cpu_engine e;

/* What the engine was asked for, and what it answers. */
static struct {
	unsigned prepares, serves, deaths, stands, sleeps, timers, maps, admits;
	uint32_t posts, wake;
	enum debug_why why;
	uint64_t slept_ns, timer_ns;
	gva_t gva;
	enum vcpu_access access;
	bool write;
	/* answers: */
	unsigned ends_at;	/* prepare() says that the machine ends, from this call on */
	unsigned unprepared;	/* so many times is_prepared() says no */
	bool own_int3, watched, beyond, guessed_write;
	unsigned guessed_vector;
	void (*while_asleep)(void);
	unsigned watches, checks;
	uint32_t hits;		/* answer */
} asked;

static bool op_prepare(struct cpu_engine *engine)
{
	CU_ASSERT_PTR_EQUAL(engine, &e);
	CU_ASSERT_NOT_EQUAL(atomic_load(&slot.state), SLOT_RUNNING);
	return ++asked.prepares != asked.ends_at;
}

static bool op_is_prepared(struct cpu_engine *engine)
{
	(void)engine;
	if (!asked.unprepared)
		return true;
	asked.unprepared--;
	return false;
}

static void op_serve(struct cpu_engine *engine, uint32_t posts)
{
	(void)engine;
	asked.serves++;
	asked.posts = posts;
}

static void op_died(struct cpu_engine *engine)
{
	(void)engine;
	asked.deaths++;
	asked.ends_at = asked.prepares + 1;
}

static bool op_debugger(struct cpu_engine *engine, enum debug_why why)
{
	(void)engine;
	asked.stands++;
	asked.why = why;
	if (why == WHY_STEP)
		debug.step.wanted = false;
	return why == WHY_BREAKPOINT ? !asked.own_int3 : why == WHY_WATCH ? asked.watched : true;
}

static void op_watch(struct cpu_engine *engine, const struct debug_watch *watch)
{
	(void)engine;
	asked.watches++;
	debug.guest = *watch;
}

static uint32_t op_watch_hits(struct cpu_engine *engine)
{
	(void)engine;
	asked.checks++;
	return asked.hits;
}

static enum time_kind op_time_switch(struct cpu_engine *engine, enum time_kind to)
{
	static enum time_kind now;
	enum time_kind before = now;

	(void)engine;
	now = to;
	return before;
}

static void op_sleep(struct cpu_engine *engine, uint32_t wake, uint64_t at_most_ns)
{
	(void)engine;
	CU_ASSERT_EQUAL(atomic_load(&slot.state), SLOT_HALTED);
	asked.sleeps++;
	asked.wake = wake;
	asked.slept_ns = at_most_ns;
	if (asked.while_asleep)
		asked.while_asleep();
}

static void op_set_timer(struct cpu_engine *engine, uint64_t deadline_ns)
{
	(void)engine;
	asked.timers++;
	asked.timer_ns = deadline_ns;
}

static void op_map(struct cpu_engine *engine, gva_t gva, const struct vcpu_walk *walk,
		   enum vcpu_access access)
{
	(void)engine, (void)walk;
	asked.maps++;
	asked.gva = gva;
	asked.access = access;
}

static void op_admit(struct cpu_engine *engine, gva_t gva, uint32_t entry, bool write)
{
	(void)engine;
	CU_ASSERT_EQUAL(entry, entries[gva >> PAGE_BITS]);
	asked.admits++;
	asked.gva = gva;
	asked.write = write;
}

static bool op_beyond_user_limit(struct cpu_engine *engine, gva_t *gva, enum vcpu_access *access)
{
	(void)engine;
	*gva = BEYOND_LIMIT;
	*access = ACCESS_READ;
	return asked.beyond;
}

static enum vcpu_access op_guess_access(struct cpu_engine *engine, gva_t gva)
{
	(void)engine, (void)gva;
	return asked.guessed_write ? ACCESS_WRITE : ACCESS_READ;
}

static bool op_guess_write(struct cpu_engine *engine, gva_t gva)
{
	(void)engine, (void)gva;
	return asked.guessed_write;
}

static unsigned op_guess_vector(struct cpu_engine *engine, int signal)
{
	(void)engine, (void)signal;
	return asked.guessed_vector;
}

static const struct engine_ops ops = { ENGINE_OPS(op_) ENGINE_GUESSES(op_) };

static void reset(void)
{
	fake_reset();
	memset(&slot, 0, sizeof slot);
	memset(&asked, 0, sizeof asked);
	memset(&debug, 0, sizeof debug);
	atomic_store(&slot.state, SLOT_MONITOR);
	shadow.entry = entries;
	entries[PAGE_AT >> PAGE_BITS] = PAGE_AT | SHADOW_VALID | SHADOW_WRITE;
	e = (struct cpu_engine){
		.ops = &ops,
		.vcpu = &fake.v,
		.slot = &slot,
		.shadow = &shadow,
		.debug = &debug,
		.ram_pages = RAM_BYTES >> PAGE_BITS,
		.many_hosts = true,
		.timer_armed_ns = UINT64_MAX,
	};
	apic_write(&fake.v, 0xf0, 0x1ff); /* enabled */
	asked.guessed_write = false;
}

static void user(void)
{
	reset();
	fake_user();
}

static void post(unsigned vector) { atomic_fetch_or(&slot.irr[vector / 32], 1u << vector % 32); }

static bool ready(void)
{
	atomic_store(&slot.state, SLOT_MONITOR); /* as after a stop */
	return engine_until_ready(&e);
}

static unsigned counted(enum trap_kind kind) { return (unsigned)atomic_load(&slot.traps[kind]); }

/* --- the loop --------------------------------------------------------------------------------- */

static void nothing_to_do(void)
{
	reset();
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(atomic_load(&slot.state), SLOT_RUNNING);
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	CU_ASSERT_EQUAL(asked.prepares, 1);
	CU_ASSERT_EQUAL(asked.sleeps + asked.serves + asked.stands + asked.deaths, 0);
	atomic_store(&slot.granted, 7);
	engine_leave(&e);
	CU_ASSERT_EQUAL(asked.timers, 0); /* none is set, and none is wanted */
	CU_ASSERT_EQUAL(atomic_load(&slot.granted), 0);
	CU_ASSERT_EQUAL(e.left_eip, CODE);
	CU_ASSERT_FALSE(e.stepping);
}

static void interrupts(void)
{
	user();
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT_EQUAL(asked.serves, 0); /* nobody else is needed */
	CU_ASSERT_EQUAL(atomic_load(&slot.irr[VECTOR / 32]), 0);

	reset(); /* the kernel, with interrupts off */
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	CU_ASSERT(vcpu_interrupt_pending(&fake.v));

	reset();
	atomic_store(&slot.post, POST_NMI);
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR_NMI));
	CU_ASSERT_EQUAL(asked.serves, 0);
}

/* The instruction in the shadow of sti runs alone. */
static void shadows(void)
{
	user();
	fake.v.interrupt_shadow = true;
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	engine_leave(&e);
	CU_ASSERT(e.stepping);
	fake.v.eip++;
	engine_on_stop(&e,
		       &(struct engine_stop){ .signal = SIGTRAP, .code = STEP, .in_guest = true });
	CU_ASSERT_FALSE(fake.v.interrupt_shadow);
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	engine_leave(&e);
	CU_ASSERT_FALSE(e.stepping);
}

static void posts_are_served(void)
{
	reset();
	atomic_store(&slot.post, POST_MESSAGE | POST_NMI);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.serves, 1);
	CU_ASSERT_EQUAL(asked.posts, POST_MESSAGE);
	CU_ASSERT_EQUAL(asked.prepares, 2); /* it may have changed anything */
	CU_ASSERT(in_handler(VECTOR_NMI));
}

static void preparations(void)
{
	reset();
	asked.unprepared = 2;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.prepares, 3);

	reset();
	asked.ends_at = 1;
	CU_ASSERT_FALSE(ready());

	reset();
	vcpu_kill(&fake.v, "of a test");
	CU_ASSERT_FALSE(ready());
	CU_ASSERT_EQUAL(asked.deaths, 1);
}

static void post_vector(void) { post(VECTOR); }

static void post_message_then_vector(void)
{
	if (asked.sleeps == 1)
		atomic_store(&slot.post, POST_MESSAGE);
	else
		post(VECTOR);
}

static void let_time_pass(void) { fake.now_ns += asked.slept_ns; }

static void halts(void)
{
	user();
	fake.v.halted = true;
	atomic_store(&slot.wake, 5);
	asked.while_asleep = post_vector;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(asked.wake, 5);
	CU_ASSERT_EQUAL(asked.slept_ns, UINT64_MAX);

	user(); /* a message does not wake it */
	fake.v.halted = true;
	asked.while_asleep = post_message_then_vector;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.serves, 1);
	CU_ASSERT_EQUAL(asked.sleeps, 2);
	CU_ASSERT(in_handler(VECTOR));

	user(); /* what has come already: no sleep */
	fake.v.halted = true;
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.sleeps, 0);

	user(); /* the machine ends while it sleeps */
	fake.v.halted = true;
	asked.while_asleep = post_message_then_vector;
	asked.ends_at = 2;
	CU_ASSERT_FALSE(ready());
	CU_ASSERT(fake.v.halted);
}

static void set_timer_of_guest(uint64_t in_ns)
{
	fake.v.apic.lvt_timer = VECTOR;
	fake.v.apic.timer_deadline_ns = fake.now_ns + in_ns;
}

static void timers(void)
{
	user();
	set_timer_of_guest(1000000);
	CU_ASSERT(ready());
	engine_leave(&e);
	CU_ASSERT_EQUAL(asked.timers, 1);
	CU_ASSERT_EQUAL(asked.timer_ns, fake.now_ns + 1000000);
	engine_leave(&e);
	CU_ASSERT_EQUAL(asked.timers, 1); /* it is set already */
	fake.now_ns += 2000000;
	CU_ASSERT(ready());
	CU_ASSERT_FALSE(in_handler(VECTOR)); /* its signal will come, and then: */
	e.timer_armed_ns = UINT64_MAX;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));

	user(); /* a sleep ends with it */
	fake.v.halted = true;
	set_timer_of_guest(300000);
	asked.while_asleep = let_time_pass;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(asked.slept_ns, 300000);
}

static void naps(void)
{
	reset();
	engine_nap(&e);
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(atomic_load(&slot.state), SLOT_MONITOR);
}

/* A debugger's step takes no interrupt, and is told once. */
static void steps(void)
{
	user();
	debug = (struct engine_debug){ .attached = true, .step = { true, CODE } };
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	engine_leave(&e);
	CU_ASSERT(e.stepping);
	engine_on_stop(&e, &(struct engine_stop){
				   .signal = SIGTRAP, .code = STEP, .in_guest = true }); /* jmp . */
	CU_ASSERT(e.traced);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.stands, 1);
	CU_ASSERT_EQUAL(asked.why, WHY_STEP);
	CU_ASSERT(in_handler(VECTOR)); /* the debugger has let it go */

	user(); /* an instruction that was emulated is a step as well */
	debug = (struct engine_debug){ .attached = true, .step = { true, CODE } };
	fake.v.eip += 2;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.stands, 1);

	user(); /* what wakes a halted CPU is delivered */
	debug = (struct engine_debug){ .attached = true, .step = { true, CODE } };
	fake.v.halted = true;
	asked.while_asleep = post_vector;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
}

/* --- stops ------------------------------------------------------------------------------------ */

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

	user();
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

	user();
	fake.ram[CODE] = 0x90;
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_GP));

	user();
	fake.ram[CODE] = 0x90;
	asked.guessed_vector = VECTOR_BR;
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_BR));

	user();
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

	user();
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

	user(); /* int $0x80 in the guest's own segment */
	memcpy(&fake.ram[CODE - 2], "\xcd\x80", 2);
	set_gate(INT80, VMP_SEL_KERNEL_CS, HANDLERS + INT80 * 16, GATE_TRAP | GATE_USER);
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(INT80));
	CU_ASSERT_EQUAL(counted(TRAP_SYSCALL), 1);

	user(); /* `syscall`, behind which Linux loads its own segment */
	s.cs = 0x23;
	s.in_guest = false;
	memcpy(&fake.ram[CODE - 2], "\x0f\x05", 2);
	engine_on_stop(&e, &s);
	CU_ASSERT(in_handler(VECTOR_UD));
	CU_ASSERT_FALSE(fake.v.dead);

	user(); /* from 64-bit code */
	s.cs = 0x33;
	engine_on_stop(&e, &s);
	CU_ASSERT(fake.v.dead);
}

/* Whatever the signal, code outside the guest's segments ends the machine. */
static void foreign_segments(void)
{
	static const int signals[] = { SIGUSR1, SIGALRM, SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE };

	for (unsigned i = 0; i < ARRAY_LEN(signals); i++) {
		user();
		debug.watches = true;
		e.stepping = true;
		engine_on_stop(&e, &(struct engine_stop){
					   .signal = signals[i], .code = WATCH, .cs = 0x33 });
		CU_ASSERT(fake.v.dead);
		CU_ASSERT_EQUAL(asked.stands, 0);
	}
	user(); /* user code in the kernel's half */
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

	user();
	debug.attached = true;
	engine_on_stop(&e, &int3);
	CU_ASSERT_EQUAL(asked.why, WHY_BREAKPOINT);
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	asked.own_int3 = true;
	engine_on_stop(&e, &int3);
	CU_ASSERT(in_handler(VECTOR_BP));

	user();
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

/* The host's debug registers follow the guest's, before guest code runs. */
static void debug_registers(void)
{
	static const struct {
		uint32_t dr7, control;
		unsigned watches;
	} cases[] = {
		{ 0x400, 0, 0 },	       /* as at reset */
		{ 0xf0400, 0, 0 },	       /* not enabled */
		{ 0xf0401, 0xf0001, 1 },       /* DR0: 4 bytes, accesses; local */
		{ 0xf0402, 0xf0001, 1 },       /* the same, global */
		{ 0x20d0411, 0xd0001, 1 },     /* DR2 on a port: the host has none */
		{ 0x00000404, 0x4, 1 },	       /* DR1: execution */
		{ 0xd0000480, 0xd0000040, 1 }, /* DR3: a write */
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		reset();
		for (unsigned n = 0; n < DEBUG_WATCHES; n++)
			fake.v.dr[n] = 0x1000 * (n + 1);
		fake.v.dr[7] = cases[i].dr7;
		CU_ASSERT(ready());
		CU_ASSERT_EQUAL(asked.watches, cases[i].watches);
		CU_ASSERT_EQUAL(debug.guest.control, cases[i].control);
		for (unsigned n = 0; n < DEBUG_WATCHES; n++)
			CU_ASSERT_EQUAL(debug.guest.address[n],
					cases[i].control >> 2 * n & 1 ? 0x1000 * (n + 1) : 0);
		CU_ASSERT(ready()); /* once */
		CU_ASSERT_EQUAL(asked.watches, cases[i].watches);
		fake.v.dr[7] = 0x400;
		CU_ASSERT(ready());
		CU_ASSERT_EQUAL(asked.watches, 2 * cases[i].watches);
		CU_ASSERT_EQUAL(debug.guest.control, 0);
	}
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

		user();
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
	reset();
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
		UNIT_TEST(nothing_to_do),
		UNIT_TEST(interrupts),
		UNIT_TEST(shadows),
		UNIT_TEST(posts_are_served),
		UNIT_TEST(preparations),
		UNIT_TEST(halts),
		UNIT_TEST(timers),
		UNIT_TEST(naps),
		UNIT_TEST(steps),
		UNIT_TEST(stops_of_user_code),
		UNIT_TEST(faults_without_name),
		UNIT_TEST(access_to_pages),
		UNIT_TEST(system_calls),
		UNIT_TEST(foreign_segments),
		UNIT_TEST(debuggers),
		UNIT_TEST(debug_registers),
		UNIT_TEST(watchpoints_of_the_guest),
		UNIT_TEST(calls_of_the_window),
		UNIT_END
	};

	return UNIT_RUN("engine", tests);
}
