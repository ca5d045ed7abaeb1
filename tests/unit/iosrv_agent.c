/* iosrv_agent.c - the agent's device: sessions and their numbers, windows, and whatever a hostile
 * guest writes to it. */
#include <string.h>
#include "base/agent_abi.h"
#include "base/guest_abi.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum { IN = VMP_AGENT_PORT, OUT = VMP_AGENT_PORT + 16, IRQ = VMP_AGENT_IRQ };

static uint32_t status(uint32_t stream) { return port_in(stream + VMP_STREAM_STATUS, 4); }

static void ask(uint32_t client, uint32_t token, enum agent_kind kind, uint32_t value,
		const char *bytes)
{
	agent_request(&(struct msg_exec){ client, token, kind, value }, bytes, strlen(bytes));
}

static void say(uint32_t session, enum agent_kind kind, uint32_t value, const void *bytes,
		uint16_t n)
{
	struct agent_frame frame = { session, (uint16_t)kind, n, value };

	port_outs(OUT, 1, sizeof frame, &frame);
	if (n)
		port_outs(OUT, 1, n, bytes);
}

/* The next frame that the guest reads. */
static struct agent_frame hear(char *bytes)
{
	struct agent_frame frame = { 0 };

	CU_ASSERT_FATAL(status(IN) >= sizeof frame);
	port_ins(IN, 1, sizeof frame, &frame);
	CU_ASSERT_FATAL(status(IN) >= frame.bytes);
	if (frame.bytes)
		port_ins(IN, 1, frame.bytes, bytes);
	bytes[frame.bytes] = 0;
	return frame;
}

static bool told(uint32_t client, uint32_t token, enum agent_kind kind, uint32_t value,
		 const char *bytes)
{
	const struct fake_message *m = fake_take(MSG_EXEC);
	struct msg_exec body;

	if (!m)
		return false;
	memcpy(&body, m->body, sizeof body);
	return body.client == client && body.token == token && body.kind == kind &&
	       body.value == value && m->to == VNODE_CLI && m->payload_bytes == strlen(bytes) &&
	       !memcmp(m->payload, bytes, m->payload_bytes);
}

static void test_session(void)
{
	char bytes[AGENT_PAYLOAD + 1];
	struct agent_frame frame;

	fake_reset();
	CU_ASSERT(status(IN) == 0 && status(OUT) >= AGENT_FRAME_MAX);
	port_out(IN + VMP_STREAM_IRQ_ENABLE, 4, 1);
	ask(3, 77, AGENT_INPUT, 0, "of nobody");
	CU_ASSERT(fake_edges(IRQ) == 0);
	ask(3, 77, AGENT_SPEC, 0, "what");
	ask(3, 77, AGENT_START, 1, "");
	CU_ASSERT(fake_edges(IRQ) == 1);
	frame = hear(bytes);
	CU_ASSERT(frame.session == 1 && frame.kind == AGENT_SPEC && !strcmp(bytes, "what"));
	frame = hear(bytes);
	CU_ASSERT(frame.session == 1 && frame.kind == AGENT_START && frame.value == 1);
	say(2, AGENT_OUTPUT, 0, "of another", 10);
	say(1, AGENT_STARTED, 0, NULL, 0);
	CU_ASSERT(told(3, 77, AGENT_STARTED, 0, ""));
	say(1, AGENT_OUTPUT, 0, "out", 3);
	say(1, AGENT_ERROR, 0, "error", 5);
	say(1, AGENT_SPEC, 0, "no agent says it", 16);
	say(1, AGENT_EXIT, 9, NULL, 0);
	say(1, AGENT_OUTPUT, 0, "late", 4);
	CU_ASSERT(told(3, 77, AGENT_OUTPUT, 0, "out"));
	CU_ASSERT(told(3, 77, AGENT_ERROR, 0, "error"));
	CU_ASSERT(told(3, 77, AGENT_EXIT, 9, ""));
	CU_ASSERT(!fake_take(MSG_EXEC));
}

/* The client's place is another one's now: the command of the first is hung up. */
static void test_hang_up(void)
{
	char bytes[AGENT_PAYLOAD + 1];

	fake_reset();
	ask(0, 1, AGENT_START, 0, "");
	ask(0, 2, AGENT_START, 0, "");
	hear(bytes);
	CU_ASSERT(hear(bytes).kind == AGENT_HANGUP);
	CU_ASSERT(hear(bytes).session == 2);
	ask(0, 0, AGENT_HANGUP, 0, "");
	CU_ASSERT(hear(bytes).kind == AGENT_HANGUP);
	ask(0, 0, AGENT_HANGUP, 0, "");
	CU_ASSERT(status(IN) == 0);
	say(2, AGENT_EXIT, 0, NULL, 0);
	CU_ASSERT(!fake_take(MSG_EXEC));
}

static void test_windows(void)
{
	static char block[AGENT_PAYLOAD + 1];

	fake_reset();
	ask(0, 1, AGENT_START, 0, "");
	memset(block, 'x', AGENT_PAYLOAD);
	for (unsigned i = 0; i < AGENT_OUT_WINDOW / AGENT_PAYLOAD; i++)
		say(1, AGENT_OUTPUT, 0, block, AGENT_PAYLOAD);
	fake.n_messages = 0;
	say(1, AGENT_OUTPUT, 0, block, AGENT_PAYLOAD); /* more than there is room for */
	CU_ASSERT(told(0, 1, AGENT_REFUSED, 0, "the guest's agent sent more output than it may"));
	/* A guest that does not read: what is too much ends the session, and still says so. */
	fake.n_messages = 0;
	ask(0, 2, AGENT_START, 0, "");
	for (unsigned i = 0; i < 30 && !fake.n_messages; i++)
		ask(0, 2, AGENT_INPUT, 0, block);
	CU_ASSERT(told(0, 2, AGENT_REFUSED, 0, "the guest's agent does not read what it is sent"));
	CU_ASSERT(status(IN) <= 98304);
	agent_request(&(struct msg_exec){ 0, 3, AGENT_START, 0 }, block, AGENT_PAYLOAD + 1);
	agent_request(&(struct msg_exec){ 0, 3, AGENT_RESET, 0 }, block, 0);
	CU_ASSERT(!fake_take(MSG_EXEC));
}

static void test_too_many(void)
{
	fake_reset();
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		ask(i, i + 1, AGENT_START, 0, "");
	CU_ASSERT(!fake_take(MSG_EXEC));
	ask(AGENT_SESSIONS, 9, AGENT_START, 0, "");
	CU_ASSERT(told(AGENT_SESSIONS, 9, AGENT_REFUSED, 0,
		       "too many commands of `vmp exec` run in this machine already"));
	fake.n_messages = 0;
	port_out(OUT + VMP_STREAM_CLOSE, 4, 0);
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		CU_ASSERT(told(i, i + 1, AGENT_REFUSED, 0, "the guest's agent has ended"));
}

/* A length that no frame has: nothing is taken from this guest any more. */
static void test_nonsense(void)
{
	struct agent_frame frame = { 1, AGENT_OUTPUT, AGENT_PAYLOAD + 1, 0 };

	fake_reset();
	ask(0, 1, AGENT_START, 0, "");
	port_outs(OUT, 1, sizeof frame, &frame);
	CU_ASSERT(told(0, 1, AGENT_REFUSED, 0, "the guest's agent sent nonsense"));
	say(1, AGENT_EXIT, 0, NULL, 0);
	ask(0, 2, AGENT_START, 0, "");
	CU_ASSERT(told(0, 2, AGENT_REFUSED, 0, "the guest's agent sent nonsense before"));
	/* In pieces of one byte, and with a write of four. */
	fake_reset();
	ask(0, 1, AGENT_START, 0, "");
	port_out(OUT, 4, 1);
	port_out(OUT, 1, AGENT_EXIT);
	for (unsigned i = 0; i < 3; i++)
		port_out(OUT, 1, 0);
	port_out(OUT, 4, 5);
	CU_ASSERT(told(0, 1, AGENT_EXIT, 5, ""));
}

/* A machine that was saved goes on without its sessions, and its agent hears of it. */
static void test_restored(void)
{
	char bytes[AGENT_PAYLOAD + 1];

	fake_reset();
	ask(0, 1, AGENT_START, 0, "");
	hear(bytes);
	port_out(IN + VMP_STREAM_IRQ_ENABLE, 4, 1);
	agent_chip.restored();
	CU_ASSERT(fake_edges(IRQ) == 1 && hear(bytes).kind == AGENT_RESET);
	say(1, AGENT_EXIT, 0, NULL, 0);
	CU_ASSERT(!fake_take(MSG_EXEC));
	ask(0, 1, AGENT_START, 0, "");
	CU_ASSERT(hear(bytes).session == 2);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "a session", test_session }, { "hang up", test_hang_up },
		{ "windows", test_windows },
		{ "too many", test_too_many }, { "nonsense", test_nonsense },
		{ "restored", test_restored },
		UNIT_END
	};

	return UNIT_RUN("iosrv_agent", tests);
}
