/* monitor_debug.c - a debugger's requests to both engines.  The whole guest is run in steps of one
 * instruction, where both must be at the same places. */
#include <errno.h>
#include <string.h>
#include "tests/unit/monitor_machine.h"

static void ask(struct machine *t, struct msg_debug request, const void *payload, size_t n)
{
	char message[sizeof request + PAGE_BYTES + 1];

	memcpy(message, &request, sizeof request);
	memcpy(message + sizeof request, payload, n);
	machine_tell(t, MSG_DEBUG, message, sizeof request + n);
}

/* Gets its answer; the payload is in *p behind the body. */
static struct msg_debug answer_to(struct machine *t, struct msg_debug request, const void *payload,
				  size_t n, struct packet *p)
{
	struct msg_debug answer = { .error = ~0u };

	ask(t, request, payload, n);
	CU_ASSERT_FATAL(machine_hear(t, MSG_DEBUG_ANSWER, p));
	memcpy(&answer, p->body, sizeof answer);
	CU_ASSERT_EQUAL(answer.op, request.op == DEBUG_STEP ? DEBUG_STOP : request.op);
	return answer;
}

static struct debug_registers registers_of(struct machine *t)
{
	struct debug_registers r;
	struct packet p;

	answer_to(t, (struct msg_debug){ .op = DEBUG_REGISTERS }, "", 0, &p);
	CU_ASSERT_EQUAL(p.header.bytes, sizeof(struct msg_debug) + sizeof r);
	memcpy(&r, p.body + sizeof(struct msg_debug), sizeof r);
	return r;
}

/* The CPU stands before its first instruction. */
static void start_standing(struct machine *t, const void *code, size_t bytes)
{
	struct msg_debug stop;
	struct packet p;

	machine_start(t, code, bytes);
	CU_ASSERT(machine_play(t, false));
	stop = answer_to(t, (struct msg_debug){ .op = DEBUG_STOP }, "", 0, &p);
	CU_ASSERT(stop.why == WHY_ASKED && stop.bytes & DEBUG_CPU_UNSTARTED);
	t->shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(t->shm, 0, POST_START);
	while (registers_of(t).core[8] != GUEST_BASE)
		;
}

/* Runs all of the guest, one instruction at a time.  Returns a sum over where it stood, and how
 * often. */
struct trail { uint32_t sum, steps; };
static struct trail walk(void)
{
	struct trail trail = { 0 };
	struct machine t;
	struct packet p;

	start_standing(&t, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	for (;; trail.steps++) {
		ask(&t, (struct msg_debug){ .op = DEBUG_STEP }, "", 0);
		if (!machine_hear(&t, MSG_DEBUG_ANSWER, &p))
			break;
		trail.sum = trail.sum * 31 + registers_of(&t).core[8];
	}
	CU_ASSERT_EQUAL_FATAL(p.header.type, MSG_MACHINE_END);
	memcpy(&t.end, p.body, sizeof t.end);
	CU_ASSERT_EQUAL(t.end.reason, END_POWEROFF);
	CU_ASSERT_EQUAL(t.end.status, (1u << STEPS) - 1);
	machine_stop(&t);
	return trail;
}

static void a_guest_is_stepped_through(void)
{
	struct trail ptrace = walk();

	direct = true;
	struct trail same = walk();
	direct = false;
	CU_ASSERT(ptrace.steps > 100 && ptrace.steps == same.steps && ptrace.sum == same.sum);
}

static void a_debugger_asks_for_what_is_wrong(void)
{
	static const uint8_t code[] = { 0xeb, 0xfe };
	static const uint8_t much[PAGE_BYTES + 1];
	static const struct {
		struct msg_debug request;
		size_t payload;
		uint32_t error, bytes;
	} cases[] = {
		{ { .op = DEBUG_READ, .address = GUEST_BASE, .bytes = 2 }, 0, 0, 2 },
		{ { .op = DEBUG_READ, .address = GUEST_BASE, .bytes = 0 }, 0, 0, 0 },
		{ { .op = DEBUG_READ, .address = GUEST_BASE + 4000, .bytes = ~0u }, 0, 0, 96 },
		/* where the kernel was loaded */
		{ { .op = DEBUG_READ, .address = VMP_USER_LIMIT + GUEST_BASE, .bytes = 2 },
		  0,
		  0,
		  2 },
		{ { .op = DEBUG_READ, .address = RAM_PAGES << PAGE_BITS, .bytes = 1 },
		  0,
		  EFAULT,
		  0 },
		{ { .op = DEBUG_READ, .address = ~0u, .bytes = 1 }, 0, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = GUEST_BASE + 4095 }, 1, 0, 0 },
		{ { .op = DEBUG_WRITE, .address = GUEST_BASE + 4095 }, 2, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = GUEST_BASE }, sizeof much, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = RAM_PAGES << PAGE_BITS }, 1, EFAULT, 0 },
		{ { .op = DEBUG_WRITE, .address = ~0u }, 1, EFAULT, 0 },
		{ { .op = DEBUG_SET_REGISTERS }, sizeof(struct debug_registers) - 1, EINVAL, 0 },
		{ { .op = DEBUG_SET_REGISTERS }, 0, EINVAL, 0 },
	};
	struct machine t;
	struct packet p;

	start_standing(&t, code, sizeof code);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct msg_debug answer = answer_to(&t, cases[i].request, much, cases[i].payload,
						    &p);

		CU_ASSERT_EQUAL(answer.error, cases[i].error);
		CU_ASSERT_EQUAL(p.header.bytes - sizeof answer, cases[i].bytes);
	}
	CU_ASSERT_EQUAL(registers_of(&t).core[8], GUEST_BASE);
	ask(&t, (struct msg_debug){ .op = DEBUG_OPS + 7 }, "", 0); /* no answer */
	ask(&t, (struct msg_debug){ .op = DEBUG_GO }, "", 0);
	CU_ASSERT_EQUAL(answer_to(&t,
				  (struct msg_debug){
					  .op = DEBUG_READ, .address = GUEST_BASE, .bytes = 1 },
				  "", 0, &p)
				.error,
			EBUSY);
	CU_ASSERT_EQUAL(answer_to(&t, (struct msg_debug){ .op = DEBUG_STOP }, "", 0, &p).why,
			WHY_ASKED);
	machine_stop(&t);
}

/* The step that leaves the guest's segments is the last one. */
static void a_step_out_of_the_segments_ends_the_machine(void)
{
	/* ljmp $0x33, next; next: jmp . */
	static const uint8_t code[] = { 0xea, 7, 0, 0x10, 0, 0x33, 0, 0xeb, 0xfe };
	struct msg_debug stop = { 0 };
	struct machine t;
	struct packet p;

	start_standing(&t, code, sizeof code);
	ask(&t, (struct msg_debug){ .op = DEBUG_STEP }, "", 0);
	CU_ASSERT(machine_hear(&t, MSG_DEBUG_ANSWER, &p)); /* it stands where it has died */
	memcpy(&stop, p.body, sizeof stop);
	CU_ASSERT_EQUAL(stop.why, WHY_DEAD);
	machine_stop(&t);
}

static uint32_t set_watch(struct machine *t, const struct debug_watch *watch)
{
	struct packet p;

	return answer_to(t, (struct msg_debug){ .op = DEBUG_WATCH }, watch, sizeof *watch, &p)
		.error;
}

/* Runs from `eip` until it stands again.  Returns why, and where it is then. */
struct stood { uint32_t why, touched, eip; };
static struct stood run_from(struct machine *t, uint32_t eip, enum debug_op how)
{
	struct debug_registers r = registers_of(t);
	struct msg_debug stop = { 0 };
	struct packet p;

	r.core[8] = eip;
	answer_to(t, (struct msg_debug){ .op = DEBUG_SET_REGISTERS }, &r, sizeof r, &p);
	ask(t, (struct msg_debug){ .op = how }, "", 0);
	CU_ASSERT_FATAL(machine_hear(t, MSG_DEBUG_ANSWER, &p));
	memcpy(&stop, p.body, sizeof stop);
	return (struct stood){ stop.why, stop.address, registers_of(t).core[8] };
}

/* The guest reads a word, then writes it, and then loops. */
static void a_word_is_watched(void)
{
	enum { WORD = GUEST_BASE + 0x4800, READ = GUEST_BASE, WRITE = READ + 5, CIRCLE = WRITE + 5,
	       ON_WRITE = 1 | 0xd << 16, ON_ACCESS = 1 | 0xf << 16, SECOND_ON_WRITE = 4 | 1 << 20 };
	static const uint8_t code[] = { 0xa1, 0x00, 0x48, 0x10, 0x00, 0xa3,
					0x00, 0x48, 0x10, 0x00, 0xeb, 0xfe };
	static const struct {
		struct debug_watch watch;
		uint32_t from;
		enum debug_op how;
		struct stood stood;
	} cases[] = {
		{ { { WORD }, ON_WRITE }, READ, DEBUG_GO, { WHY_WATCH, WORD, CIRCLE } },
		{ { { WORD }, ON_ACCESS }, READ, DEBUG_GO, { WHY_WATCH, WORD, WRITE } },
		{ { { WORD }, ON_ACCESS }, WRITE, DEBUG_GO, { WHY_WATCH, WORD, CIRCLE } },
		{ { { WORD - 8, WORD + 3 }, 1 << 16 | 1 | SECOND_ON_WRITE },
		  READ,
		  DEBUG_GO,
		  { WHY_WATCH, WORD + 3, CIRCLE } },
		/* a stop tells where it is */
		{ { { WORD }, ON_WRITE }, READ, DEBUG_STEP, { WHY_STEP, WRITE, WRITE } },
		{ { { WORD }, ON_WRITE }, WRITE, DEBUG_STEP, { WHY_WATCH, WORD, CIRCLE } },
		{ { { WORD }, ON_WRITE }, CIRCLE, DEBUG_STEP, { WHY_STEP, CIRCLE, CIRCLE } },
	};
	struct machine t;
	struct packet p;

	start_standing(&t, code, sizeof code);
	CU_ASSERT_EQUAL(answer_to(&t, (struct msg_debug){ .op = DEBUG_WATCH }, code, 3, &p).error,
			EINVAL);
	CU_ASSERT_NOT_EQUAL(set_watch(&t, &(struct debug_watch){ { WORD + 1 }, ON_WRITE }), 0);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct stood stood;

		CU_ASSERT_EQUAL(set_watch(&t, &cases[i].watch), 0);
		stood = run_from(&t, cases[i].from, cases[i].how);
		CU_ASSERT(!memcmp(&stood, &cases[i].stood, sizeof stood));
	}
	CU_ASSERT_EQUAL(set_watch(&t, &(struct debug_watch){ { 0 }, 0 }), 0);
	run_from(&t, READ, DEBUG_STEP);
	CU_ASSERT_EQUAL(run_from(&t, WRITE, DEBUG_STEP).why, WHY_STEP);
	machine_stop(&t);
}

static void direct_a_word_is_watched(void) { on_the_direct_engine(a_word_is_watched); }
static void direct_wrong_requests(void) { on_the_direct_engine(a_debugger_asks_for_what_is_wrong); }

const struct unit_test tests_of_debugger[] = {
	UNIT_TEST(a_guest_is_stepped_through),
	UNIT_TEST(a_step_out_of_the_segments_ends_the_machine),
	UNIT_TEST(a_debugger_asks_for_what_is_wrong),
	UNIT_TEST(direct_wrong_requests),
	UNIT_TEST(a_word_is_watched),
	UNIT_TEST(direct_a_word_is_watched),
	UNIT_END
};
