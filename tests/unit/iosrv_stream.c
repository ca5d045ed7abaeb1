/* iosrv_stream.c - the stream device: windows both ways, ends, one edge per arming, the exit behind
 * all output. */
#include <string.h>
#include "base/guest_abi.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum { IRQ = VMP_STREAM_IRQ, WINDOW = 65536 };

static uint32_t reg(unsigned s, unsigned r) { return VMP_STREAM_PORT + 16 * s + r; }
static uint32_t status(unsigned s) { return port_in(reg(s, VMP_STREAM_STATUS), 4); }
static void arm(unsigned s, bool on) { port_out(reg(s, VMP_STREAM_IRQ_ENABLE), 4, on); }

static void input(const char *bytes, bool eof)
{
	stream_input(&(struct msg_stream){ .stream = 0, .eof = eof }, bytes, strlen(bytes));
}

static void test_input(void)
{
	const struct fake_message *m;
	char bytes[16] = "";

	fake_reset();
	CU_ASSERT(status(0) == 0);
	arm(0, true);
	CU_ASSERT(fake_edges(IRQ) == 0);
	input("hello", false);
	input(" you", false);
	CU_ASSERT(fake_edges(IRQ) == 1); /* a raise disarms */
	CU_ASSERT(status(0) == 9);
	port_ins(reg(0, VMP_STREAM_DATA), 1, 5, bytes);
	CU_ASSERT(!memcmp(bytes, "hello", 5) && status(0) == 4);
	stream_chip.flush();
	m = fake_take(MSG_STREAM_ROOM);
	CU_ASSERT_FATAL(m != NULL);
	CU_ASSERT(((const struct msg_stream_room *)m->body)->bytes == 5 && m->to == VNODE_CLI);
	arm(0, true);
	CU_ASSERT(fake_edges(IRQ) == 1); /* there is something already */
	CU_ASSERT(port_in(reg(0, VMP_STREAM_DATA), 1) == ' ');
	port_ins(reg(0, VMP_STREAM_DATA), 1, 5, bytes); /* more than there is */
	CU_ASSERT(!memcmp(bytes, "you\xff\xff", 5) && status(0) == 0);
	arm(0, true);
	arm(0, false);
	input("x", true);
	CU_ASSERT(fake_edges(IRQ) == 0);
	CU_ASSERT(status(0) == 1); /* first the bytes, then the end */
	port_in(reg(0, VMP_STREAM_DATA), 1);
	CU_ASSERT(status(0) == VMP_STREAM_EOF);
	arm(0, true);
	CU_ASSERT(fake_edges(IRQ) == 1);
}

/* The ring goes round; a sender that overruns its room loses the excess, nothing else. */
static void test_input_window(void)
{
	static uint8_t block[4096];
	uint32_t sent = 0, got = 0;

	fake_reset();
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < sizeof block; i++)
			block[i] = sent++ % 251;
		stream_input(&(struct msg_stream){ .stream = 0 }, block, sizeof block);
		if (round < 15)
			continue;
		port_ins(reg(0, VMP_STREAM_DATA), 1, sizeof block, block);
		for (unsigned i = 0; i < sizeof block; i++)
			CU_ASSERT_FATAL(block[i] == got++ % 251);
		stream_chip.flush();
		fake.n_messages = 0;
	}
	for (unsigned i = 0; i < 2; i++)
		stream_input(&(struct msg_stream){ .stream = 0 }, block, sizeof block);
	CU_ASSERT(status(0) == WINDOW);
}

static void test_output(void)
{
	static uint8_t block[4096];
	const struct fake_message *m;
	uint32_t room = WINDOW, total = 0;

	fake_reset();
	CU_ASSERT(status(1) == WINDOW && status(2) == WINDOW);
	for (unsigned i = 0; i < sizeof block; i++)
		block[i] = i % 253;
	while (status(1)) {
		port_outs(reg(1, VMP_STREAM_DATA), 1, sizeof block, block);
		room -= sizeof block;
		CU_ASSERT_FATAL(status(1) == room);
	}
	port_outs(reg(1, VMP_STREAM_DATA), 1, 10, block); /* no room: its own fault */
	stream_chip.flush();
	while ((m = fake_take(MSG_STREAM))) {
		CU_ASSERT(((const struct msg_stream *)m->body)->stream == 1 &&
			  !((const struct msg_stream *)m->body)->eof);
		CU_ASSERT(m->payload[1] == 1 && m->to == VNODE_CLI);
		total += m->payload_bytes;
	}
	CU_ASSERT(total == WINDOW);
	CU_ASSERT(status(2) == WINDOW); /* the other stream is not held up */
	arm(1, true);
	CU_ASSERT(fake_edges(IRQ) == 0);
	stream_room(&(struct msg_stream_room){ .stream = 1, .bytes = 100 });
	stream_room(&(struct msg_stream_room){ .stream = 1, .bytes = 100 });
	CU_ASSERT(fake_edges(IRQ) == 1 && status(1) == 200);
	/* never more than the window */
	stream_room(&(struct msg_stream_room){ .stream = 1, .bytes = ~0u });
	CU_ASSERT(status(1) == WINDOW);
	stream_room(&(struct msg_stream_room){ .stream = 0, .bytes = 1 });
	stream_room(&(struct msg_stream_room){ .stream = 3, .bytes = 1 });
	stream_input(&(struct msg_stream){ .stream = 3 }, "x", 1);
	CU_ASSERT(status(0) == 0);
}

static void test_reader_gone(void)
{
	fake_reset();
	stream_input(&(struct msg_stream){ .stream = 1, .eof = 1 }, NULL, 0);
	CU_ASSERT(status(1) == VMP_STREAM_EOF && status(2) == WINDOW);
	port_outs(reg(1, VMP_STREAM_DATA), 1, 3, "abc");
	stream_chip.flush();
	CU_ASSERT(fake.n_messages == 0);
}

static void test_close(void)
{
	const struct fake_message *m;

	fake_reset();
	port_out(reg(2, VMP_STREAM_DATA), 1, 'e');
	port_out(reg(2, VMP_STREAM_DATA), 4, 0x64636261);
	port_out(reg(2, VMP_STREAM_CLOSE), 4, 0);
	port_out(reg(2, VMP_STREAM_CLOSE), 4, 0);
	port_out(reg(2, VMP_STREAM_DATA), 1, 'x');
	stream_chip.flush();
	m = fake_take(MSG_STREAM);
	CU_ASSERT_FATAL(m && m->payload_bytes == 5);
	CU_ASSERT(!memcmp(m->payload, "eabcd", 5));
	m = fake_take(MSG_STREAM);
	CU_ASSERT_FATAL(m != NULL);
	CU_ASSERT(((const struct msg_stream *)m->body)->eof == 1 && m->payload_bytes == 0);
	CU_ASSERT(fake_take(MSG_STREAM) == NULL);
}

static void test_exit_is_last(void)
{
	fake_reset();
	port_out(reg(1, VMP_STREAM_DATA), 1, 'o');
	port_out(reg(2, VMP_STREAM_DATA), 1, 'e');
	port_out(VMP_STREAM_EXIT_PORT, 4, 42);
	CU_ASSERT_FATAL(fake.n_messages == 3);
	CU_ASSERT(fake.messages[0].type == MSG_STREAM && fake.messages[1].type == MSG_STREAM);
	CU_ASSERT(fake.messages[2].type == MSG_COMMAND_EXIT);
	CU_ASSERT(((const struct msg_command_exit *)fake.messages[2].body)->status == 42);
}

static void test_window_size_and_holes(void)
{
	fake_reset();
	stream_window(120, 40);
	CU_ASSERT(port_in(VMP_STREAM_COLS_ROWS_PORT, 4) == (120 << 16 | 40));
	CU_ASSERT(port_in(reg(3, 0), 1) == 0xff && port_in(reg(1, VMP_STREAM_DATA), 1) == 0);
	port_out(reg(3, 0), 1, 1);
	CU_ASSERT(fake.n_messages == 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "input", test_input },
		{ "input window", test_input_window },
		{ "output", test_output },
		{ "reader gone", test_reader_gone },
		{ "close", test_close },
		{ "exit is last", test_exit_is_last },
		{ "window size, holes", test_window_size_and_holes },
		UNIT_END
	};

	return UNIT_RUN("streams", tests);
}
