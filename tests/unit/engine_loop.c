/* engine_loop.c - tests of the loop of both engines (engine/loop.c): what is done before guest code
 * runs. */
#include <signal.h>
#include "engine/halt_poll.h"
#include "tests/unit/engine_fake.h"

enum { VECTOR = 0x31 };

static void post(unsigned vector) { atomic_fetch_or(&bell.irr[vector / 32], 1u << vector % 32); }

static bool ready(void)
{
	atomic_store(&bell.state, SLOT_MONITOR); /* as after a stop */
	return engine_until_ready(&e);
}

static void nothing_to_do(void)
{
	engine_reset();
	atomic_store(&slot.kicked, 1); /* by what stopped it */
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(atomic_load(&bell.state), SLOT_RUNNING);
	CU_ASSERT_EQUAL(atomic_load(&slot.kicked), 0);
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
	engine_user();
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT_EQUAL(asked.serves, 0); /* nobody else is needed */
	CU_ASSERT_EQUAL(atomic_load(&bell.irr[VECTOR / 32]), 0);

	engine_reset(); /* the kernel, with interrupts off */
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	CU_ASSERT(vcpu_interrupt_pending(&fake.v));

	engine_reset();
	atomic_store(&slot.post, POST_NMI);
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR_NMI));
	CU_ASSERT_EQUAL(asked.serves, 0);
}

/* The instruction in the shadow of sti runs alone. */
static void shadows(void)
{
	engine_user();
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
	engine_reset();
	atomic_store(&slot.post, POST_MESSAGE | POST_NMI);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.serves, 1);
	CU_ASSERT_EQUAL(asked.posts, POST_MESSAGE);
	CU_ASSERT_EQUAL(asked.prepares, 2); /* it may have changed anything */
	CU_ASSERT(in_handler(VECTOR_NMI));
}

static void preparations(void)
{
	engine_reset();
	asked.unprepared = 2;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.prepares, 3);

	engine_reset();
	asked.ends_at = 1;
	CU_ASSERT_FALSE(ready());

	engine_reset();
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
	engine_user();
	fake.v.halted = true;
	atomic_store(&bell.wake, 5);
	asked.while_asleep = post_vector;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(asked.wake, 5);
	CU_ASSERT_EQUAL(asked.slept_ns, UINT64_MAX);

	engine_user(); /* a message does not wake it */
	fake.v.halted = true;
	asked.while_asleep = post_message_then_vector;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.serves, 1);
	CU_ASSERT_EQUAL(asked.sleeps, 2);
	CU_ASSERT(in_handler(VECTOR));

	engine_user(); /* what has come already: no sleep */
	fake.v.halted = true;
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.sleeps, 0);

	engine_user(); /* the machine ends while it sleeps */
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

/* Posts as hostshm_post_interrupt() does, while the CPU polls for the second time. */
static void post_to_a_poller(void)
{
	if (atomic_load(&bell.state) != SLOT_POLLING || asked.stamps < 4)
		return;
	post(VECTOR);
	atomic_fetch_add(&bell.wake, 1);
}

static void polls(void)
{
	engine_user(); /* what comes soon needs no sleep, and the next halt polls as long */
	fake.v.halted = true;
	e.poll_ns = e.poll_most_ns = 50 * STAMP_NS;
	asked.while_polling = post_to_a_poller;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT_EQUAL(asked.sleeps, 0);
	CU_ASSERT_EQUAL(e.poll_ns, 50 * STAMP_NS);

	engine_user(); /* otherwise it sleeps, and polls no more */
	fake.v.halted = true;
	e.poll_ns = e.poll_most_ns = 50 * STAMP_NS;
	asked.while_asleep = post_vector;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT(asked.stamps > 50);
	CU_ASSERT_EQUAL(e.poll_ns, 0);

	engine_user(); /* a halt that was short is followed by a poll */
	fake.v.halted = true;
	e.poll_most_ns = 50 * STAMP_NS;
	asked.while_asleep = post_vector;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(e.poll_ns, HALT_POLL_FIRST_NS);

	engine_user(); /* no longer than to the timer */
	fake.v.halted = true;
	e.poll_ns = e.poll_most_ns = 50 * STAMP_NS;
	set_timer_of_guest(5 * STAMP_NS);
	asked.while_asleep = let_time_pass;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
	CU_ASSERT(asked.stamps < 12);

	engine_user(); /* what has come already: no poll */
	fake.v.halted = true;
	e.poll_ns = e.poll_most_ns = 50 * STAMP_NS;
	post(VECTOR);
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.sleeps, 0);
	CU_ASSERT(asked.stamps < 6);
}

static void how_long_to_poll(void)
{
	static const struct { uint32_t poll; uint64_t halted; uint32_t most, next; } cases[] = {
		{ 0, 1, 100000, 10000 },	   { 10000, 10001, 100000, 20000 },
		{ 80000, 170000, 100000, 100000 }, { 100000, 5000, 100000, 100000 },
		{ 20000, 20000, 100000, 20000 },   { 20000, 200000, 100000, 40000 },
		{ 20000, 200001, 100000, 0 },	   { 100000, 100001, 100000, 0 },
		{ 0, 200001, 100000, 0 },	   { 0, 1, 0, 0 },
		{ 0, 0, 0, 0 },			   { 0, 5, 8000, 8000 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_EQUAL(halt_poll_next(cases[i].poll, cases[i].halted, cases[i].most),
				cases[i].next);
}

static void post_start(void)
{
	atomic_store(&slot.start_eip, CODE + 0x40);
	atomic_store(&slot.post, POST_START);
}

/* Another CPU starts this one: it was taken offline, it runs, or it is on its way to its hlt. */
static void starts(void)
{
	engine_reset();
	fake.v.halted = true;
	asked.while_asleep = post_start;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE + 0x40);
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(asked.serves, 0);

	engine_reset(); /* it has come already: no sleep */
	fake.v.halted = true;
	post_start();
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE + 0x40);
	CU_ASSERT_EQUAL(asked.sleeps, 0);

	engine_user();
	post_start();
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	CU_ASSERT_FALSE(fake.v.start_wanted);

	engine_reset(); /* the kernel, with interrupts off */
	post_start();
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE);
	fake.v.halted = true;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(fake.v.eip, CODE + 0x40);
	CU_ASSERT_EQUAL(asked.sleeps, 0);
}

static void timers(void)
{
	engine_user();
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

	engine_user(); /* a sleep ends with it */
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
	engine_reset();
	engine_nap(&e);
	CU_ASSERT_EQUAL(asked.sleeps, 1);
	CU_ASSERT_EQUAL(atomic_load(&bell.state), SLOT_MONITOR);
}

/* A debugger's step takes no interrupt, and is told once. */
static void steps(void)
{
	engine_user();
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

	engine_user(); /* an instruction that was emulated is a step as well */
	debug = (struct engine_debug){ .attached = true, .step = { true, CODE } };
	fake.v.eip += 2;
	CU_ASSERT(ready());
	CU_ASSERT_EQUAL(asked.stands, 1);

	engine_user(); /* what wakes a halted CPU is delivered */
	debug = (struct engine_debug){ .attached = true, .step = { true, CODE } };
	fake.v.halted = true;
	asked.while_asleep = post_vector;
	CU_ASSERT(ready());
	CU_ASSERT(in_handler(VECTOR));
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
		engine_reset();
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

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(nothing_to_do),
		UNIT_TEST(interrupts),
		UNIT_TEST(shadows),
		UNIT_TEST(posts_are_served),
		UNIT_TEST(preparations),
		UNIT_TEST(halts),
		UNIT_TEST(polls),
		UNIT_TEST(how_long_to_poll),
		UNIT_TEST(starts),
		UNIT_TEST(timers),
		UNIT_TEST(naps),
		UNIT_TEST(steps),
		UNIT_TEST(debug_registers),
		UNIT_END
	};

	return UNIT_RUN("the loop of both engines", tests);
}
