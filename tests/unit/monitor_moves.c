/* monitor_moves.c - a CPU moves to another monitor, in the middle of the guest's steps: before it
 * starts, between any two steps, with a damaged state, and to a host whose clock is behind; and it
 * is saved or moves as soon as it was loaded. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "tests/unit/monitor_machine.h"

/* The second machine is the first one's other host: the same memory at the same time. */
static void start_other_host(struct machine *t, const struct machine *first)
{
	machine_start(t, "", 0);
	memcpy(t->ram, first->ram, (size_t)RAM_PAGES << PAGE_BITS);
	hostclock_set(&t->shm->clock, hostclock_line(&first->shm->clock));
	CU_ASSERT(machine_play(t, false));
}

static void check_steps(struct machine *t)
{
	CU_ASSERT(machine_play(t, false));
	CU_ASSERT_EQUAL(t->end.reason, END_POWEROFF);
	CU_ASSERT_EQUAL(t->end.status, (1u << STEPS) - 1);
}

/* The CPU may be gone before it has noticed that it is to start. */
static void send_start_on(struct machine *first, struct machine *second)
{
	if (!(atomic_load(&first->shm->slot[0].post) & POST_START))
		return;
	second->shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(second->shm, 0, POST_START);
}

/* Lets the guest run for `us`, then sends its CPU; a damaged one comes back.  Returns false if it
 * had ended before. */
static bool steps_with_a_move(unsigned us, bool damage)
{
	struct machine first, second;
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };
	struct msg_cpu_step step;
	struct packet state, answer;
	bool moved;

	machine_start(&first, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	CU_ASSERT(machine_play(&first, false));
	first.shm->slot[0].start_eip = GUEST_BASE;
	hostshm_post(first.shm, 0, POST_START);
	usleep(us);
	machine_tell(&first, MSG_CPU_GIVE, &move, sizeof move);
	moved = machine_hear(&first, MSG_CPU_STATE, &state);
	if (moved) {
		CU_ASSERT_EQUAL(first.shm->doorbell[0].state, SLOT_ABSENT);
		start_other_host(&second, &first);
		state.body[200] ^= damage;
		machine_tell(&second, MSG_CPU_STATE, state.body, state.header.bytes);
		CU_ASSERT(machine_hear(&second, MSG_CPU_STEP, &answer));
		memcpy(&step, answer.body, sizeof step);
		CU_ASSERT_EQUAL(step.step, STEP_TAKEN);
		CU_ASSERT_EQUAL(step.error != 0, damage);
		if (damage)
			machine_tell(&first, MSG_CPU_BACK, &move, sizeof move);
		else
			send_start_on(&first, &second);
		check_steps(damage ? &first : &second);
		machine_stop(&second);
	}
	machine_stop(&first);
	return moved;
}

static void a_cpu_moves_between_any_two_steps(void)
{
	unsigned moved = 0;

	/* On a busy computer the guest may have ended each time before it could be moved; then
	 * tries again, sooner. */
	for (unsigned i = 0; i < 40 || (!moved && i < 2000); i++)
		moved += steps_with_a_move(i < 40 ? i * i * 10 : 0, i % 4 == 3);
	CU_ASSERT(moved > 0);
}

static void a_cpu_moves_before_it_starts(void)
{
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };
	struct machine first, second;
	struct packet state, answer;
	struct msg_cpu_step step;

	machine_start(&first, monitor_guest_start, monitor_guest_end - monitor_guest_start);
	CU_ASSERT(machine_play(&first, false));
	machine_tell(&first, MSG_CPU_GIVE, &move, sizeof move);
	CU_ASSERT_FATAL(machine_hear(&first, MSG_CPU_STATE, &state));
	start_other_host(&second, &first);
	machine_tell(&second, MSG_CPU_STATE, state.body, state.header.bytes);
	CU_ASSERT(machine_hear(&second, MSG_CPU_STEP, &answer));
	memcpy(&step, answer.body, sizeof step);
	CU_ASSERT(step.step == STEP_TAKEN && !step.error);
	hostshm_post(first.shm, 0, POST_START);
	send_start_on(&first, &second);
	check_steps(&second);
	machine_stop(&second);
	machine_stop(&first);
}

/* The other host's clock is behind: the CPU waits for it, but not for a wrong one. */
static void a_cpu_waits_for_its_clock(void)
{
	static const struct {
		uint64_t behind_ns;
		bool taken;
	} cases[] = { { 0, true }, { 50000000, true }, { 10000000000, false } };
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine first, second;
		struct packet packet, answer;
		struct msg_cpu_state state;
		struct msg_cpu_step step;
		struct clock_line line;

		machine_start(&first, monitor_guest_start, monitor_guest_end - monitor_guest_start);
		CU_ASSERT(machine_play(&first, false));
		machine_tell(&first, MSG_CPU_GIVE, &move, sizeof move);
		CU_ASSERT_FATAL(machine_hear(&first, MSG_CPU_STATE, &packet));
		memcpy(&state, packet.body, sizeof state);
		start_other_host(&second, &first);
		/* so that it shows now what it should have shown some time before the CPU was
		 * frozen */
		line = (struct clock_line){ clock_now_ns(), state.frozen_ns - cases[i].behind_ns,
					    0 };
		hostclock_set(&second.shm->clock, line);
		machine_tell(&second, MSG_CPU_STATE, packet.body, packet.header.bytes);
		CU_ASSERT(machine_hear(&second, MSG_CPU_STEP, &answer));
		CU_ASSERT(!cases[i].taken ||
			  clock_line_at(&line, clock_now_ns()) >= state.frozen_ns);
		memcpy(&step, answer.body, sizeof step);
		CU_ASSERT_EQUAL(step.step, STEP_TAKEN);
		CU_ASSERT_EQUAL(step.error, cases[i].taken ? 0 : EAGAIN);
		if (!cases[i].taken)
			CU_ASSERT(!strncmp(answer.body + sizeof step,
					   "the machine's clock there is 9", 30));
		machine_stop(&second);
		machine_stop(&first);
	}
}

static void direct_a_cpu_waits_for_its_clock(void)
{
	on_the_direct_engine(a_cpu_waits_for_its_clock);
}
static void direct_a_cpu_moves_before_it_starts(void)
{
	on_the_direct_engine(a_cpu_moves_before_it_starts);
}
static void direct_a_cpu_moves(void) { on_the_direct_engine(a_cpu_moves_between_any_two_steps); }

/* A CPU is loaded, and asked for before it has run: it is given as it came, with its FPU. */
static void a_loaded_cpu_is_asked_for_at_once(void)
{
	/* fldcw control; movb $1, done; jmp .; control: .word 0x27f; done: .byte 0 */
	static const uint8_t code[] = { 0xd9, 0x2d, 0x10, 0, 0x10, 0,	 0xc6, 5,    0x12, 0,
					0x10, 0,    1,	  0xeb, 0xfe, 0x90, 0x7f, 2, 0 };
	enum { HEAD = sizeof(struct msg_snapshot_item) };
	struct msg_snapshot freeze = { .step = SNAPSHOT_FREEZE }, save = { .step = SNAPSHOT_SAVE },
			    thaw = { .step = SNAPSHOT_THAW };
	struct msg_cpu_handover move = { .cpu = 0, .from = 0, .to = 1, .move = 1 };
	struct machine machine[3];
	struct packet saved, answer;
	size_t bytes = 0, head;

	for (unsigned i = 0; i < 3; i++) {
		struct machine *t = &machine[i];

		if (!i) {
			machine_start(t, code, sizeof code);
			CU_ASSERT(machine_play(t, false));
			t->shm->slot[0].start_eip = GUEST_BASE;
			hostshm_post(t->shm, 0, POST_START);
			while (!((volatile uint8_t *)t->ram)[GUEST_BASE + sizeof code - 1])
				usleep(1000);
		} else {
			start_other_host(t, &machine[0]);
			machine_send(t, MSG_SNAPSHOT_ITEM, saved.body, HEAD + bytes);
			machine_send(t, MSG_SNAPSHOT, &thaw, sizeof thaw);
		}
		if (i < 2) {
			machine_tell(t, MSG_SNAPSHOT, &freeze, sizeof freeze);
			CU_ASSERT_FATAL(machine_hear(t, MSG_SNAPSHOT, &answer));
			machine_tell(t, MSG_SNAPSHOT, &save, sizeof save);
			CU_ASSERT_FATAL(machine_hear(t, MSG_SNAPSHOT_ITEM, i ? &answer : &saved));
		} else {
			machine_tell(t, MSG_CPU_GIVE, &move, sizeof move);
			CU_ASSERT_FATAL(machine_hear(t, MSG_CPU_STATE, &answer));
		}
		bytes = saved.header.bytes - HEAD;
		head = i < 2 ? HEAD : sizeof(struct msg_cpu_state);
		CU_ASSERT(!i || !memcmp(answer.body + head, saved.body + HEAD, bytes));
	}
	for (unsigned i = 0; i < 3; i++)
		machine_stop(&machine[i]);
}

static void direct_a_loaded_cpu(void) { on_the_direct_engine(a_loaded_cpu_is_asked_for_at_once); }

const struct unit_test tests_of_moves[] = {
	UNIT_TEST(a_cpu_moves_between_any_two_steps),
	UNIT_TEST(direct_a_cpu_moves),
	UNIT_TEST(a_cpu_moves_before_it_starts),
	UNIT_TEST(direct_a_cpu_moves_before_it_starts),
	UNIT_TEST(a_cpu_waits_for_its_clock),
	UNIT_TEST(direct_a_cpu_waits_for_its_clock),
	UNIT_TEST(a_loaded_cpu_is_asked_for_at_once),
	UNIT_TEST(direct_a_loaded_cpu),
	UNIT_END
};
