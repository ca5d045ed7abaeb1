/* iosrv_server.c - the I/O server as a process: messages that a daemon may send, well-formed or
 * not, and how the server ends. */
#include <string.h>
#include <sys/socket.h>
#include "base/agent_abi.h"
#include "base/guest_abi.h"
#include "base/packet.h"
#include "tests/unit/iosrv_process.h"
#include "tests/unit/unit.h"

static void test_requests(void)
{
	uint8_t text[8] = "console";
	struct packet p;

	start(NULL);
	expect_hello();
	CU_ASSERT(answers());
	request((struct msg_io_request){ .seq = 9,
					 .address = VMP_UART_PORT,
					 .kind = IO_PORT_OUT,
					 .size = 1,
					 .count = 7 },
		text, 7);
	CU_ASSERT(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
	CU_ASSERT(receive(&p, WAIT_MS) && p.header.type == MSG_CONSOLE);
	CU_ASSERT(p.header.bytes == sizeof(struct msg_console) + 7 &&
		  !memcmp(p.bytes + sizeof(struct msg_console), text, 7));
	stop();
}

static void test_bad_requests(void)
{
	static const struct { struct msg_io_request q; unsigned payload; } rows[] = {
		{ { .cpu = 4, .size = 1, .count = 1 }, 0 },
		{ { .cpu = ~0u, .size = 1, .count = 1 }, 0 },
		{ { .size = 0, .count = 1 }, 0 },
		{ { .size = 3, .count = 1 }, 0 },
		{ { .size = 8, .count = 1 }, 0 },
		{ { .size = 1, .count = 0 }, 0 },
		{ { .size = 1, .count = 4097 }, 0 },
		{ { .size = 4, .count = 1025 }, 0 },
		{ { .size = 4, .count = 0x40000001 }, 0 },
		{ { .size = 2, .count = ~0u }, 0 },
		{ { .size = 1, .count = 1, .kind = 4 }, 0 },
		{ { .size = 2, .count = 4, .kind = IO_PORT_OUT, .address = VMP_UART_PORT }, 7 },
		{ { .size = 2, .count = 4, .kind = IO_PORT_OUT, .address = VMP_UART_PORT }, 0 },
		{ { .size = 1, .count = 4, .kind = IO_PORT_OUT, .address = VMP_UART_PORT }, 8192 },
	};
	static const uint8_t zeros[MAX_MSG_PAYLOAD];

	start(NULL);
	expect_hello();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		request(rows[i].q, zeros, rows[i].payload);
		CU_ASSERT(fails("I/O request")); /* or the CPU would wait for its answer for ever */
		CU_ASSERT(answers());
	}
	stop();
}

static void test_bad_messages(void)
{
	static const uint8_t zeros[MAX_MSG_PAYLOAD];
	struct packet p = { .header = packet_header(MSG_STREAM, 0, 0, 0) };

	start(NULL);
	expect_hello();
	for (unsigned type = 0; type < 100; type++) {
		send_bytes(type, zeros, 3); /* too short for any body */
		CU_ASSERT(fails("bad message"));
	}
	send_bytes(MSG_STREAM_ROOM, zeros, sizeof(struct msg_stream_room) + 1);
	CU_ASSERT(fails("bad message"));
	send_bytes(MSG_PAGE_WANT, zeros, sizeof(struct msg_page_want));
	CU_ASSERT(fails("PAGE_WANT"));
	CU_ASSERT(send(daemon_end, &p, 1, 0) == 1);
	CU_ASSERT(fails("bad message"));
	p.header.bytes = 100; /* says more than there is */
	CU_ASSERT(send(daemon_end, &p, sizeof p.header + 8, 0) > 0);
	CU_ASSERT(fails("bad message"));
	p.header.bytes = 8;
	p.header.version++;
	CU_ASSERT(send(daemon_end, &p, sizeof p.header + 8, 0) > 0);
	CU_ASSERT(fails("bad message"));
	send_bytes(MSG_STREAM, &(struct msg_stream){ .stream = ~0u }, sizeof(struct msg_stream));
	send_bytes(MSG_STREAM_ROOM, &(struct msg_stream_room){ .stream = 77, .bytes = 1 },
		   sizeof(struct msg_stream_room));
	send_bytes(MSG_CONSOLE_ATTACH, &(struct msg_console_attach){ .client = 1, .backlog = ~0u },
		   sizeof(struct msg_console_attach));
	CU_ASSERT(answers());
	stop();
}

/* The flush's answer comes through the thread: the interrupt is routed to CPU 2. */
static void test_flush(void)
{
	static const struct { uint32_t address, value; bool mmio;
	} steps[] = {
		{ VMP_IOAPIC_GPA, 0x10 + 2 * VMP_IDE_IRQ + 1, true },
		{ VMP_IOAPIC_GPA + 0x10, 2 << 24, true },
		{ VMP_IOAPIC_GPA, 0x10 + 2 * VMP_IDE_IRQ, true },
		{ VMP_IOAPIC_GPA + 0x10, 0x39, true },
		{ VMP_IDE_PORT + 6, 0xa0, false },
		{ VMP_IDE_PORT + 7, 0xe7, false },
	};
	char image[64];
	int fd = make_image(image);
	struct msg_interrupt interrupt = { 0 };
	struct packet p;
	unsigned replies = 0;

	start(image);
	expect_hello();
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
		request((struct msg_io_request){ .address = steps[i].address,
						 .value = steps[i].value,
						 .size = 1,
						 .count = 1,
						 .kind = steps[i].mmio ? IO_MMIO_WRITE
								       : IO_PORT_OUT },
			NULL, 0);
	for (unsigned i = 0; i < ARRAY_LEN(steps) + 1; i++) {
		CU_ASSERT_FATAL(receive(&p, WAIT_MS));
		replies += p.header.type == MSG_IO_REPLY;
		if (p.header.type == MSG_INTERRUPT)
			memcpy(&interrupt, p.bytes, sizeof interrupt);
	}
	CU_ASSERT(replies == ARRAY_LEN(steps));
	CU_ASSERT(interrupt.cpu_mask == 4 && interrupt.vector == 0x39 &&
		  interrupt.kind == INTERRUPT_FIXED);
	stop();
	remove_image(image, fd);
}

static void write_port(unsigned cpu, uint32_t port, unsigned size, uint32_t value)
{
	request((struct msg_io_request){ .cpu = cpu, .address = port, .value = value,
					 .size = size, .count = 1, .kind = IO_PORT_OUT },
		NULL, 0);
}

/* CPU 1 stops the DMA whose step CPU 0 has: it is answered when CPU 0 has answered the step. */
static void test_held_answer(void)
{
	static const struct { uint32_t port, size, value;
	} steps[] = {
		{ 0xcf8, 4, 0x80000804 }, { 0xcfc, 2, 5 }, { VMP_IDE_PORT + 2, 1, 1 },
		{ VMP_IDE_PORT + 6, 1, 0xe0 }, { VMP_IDE_PORT + 7, 1, 0xc8 }, { 0xc000, 1, 9 },
	};
	char image[64];
	int fd = make_image(image);
	struct msg_io_reply reply;
	struct msg_dma dma;
	struct packet p;

	start(image);
	expect_hello();
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
		write_port(0, steps[i].port, steps[i].size, steps[i].value);
	for (unsigned i = 0; i < ARRAY_LEN(steps) - 1; i++)
		CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_DMA_TELL);
	memcpy(&dma, p.bytes, sizeof dma);
	CU_ASSERT(dma.cpu == 0 && dma.to_memory && dma.bytes == 512 && !dma.offset);
	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
	write_port(1, 0xc000, 1, 8);
	write_port(2, VMP_IDE_CONTROL_PORT, 1, 4);
	CU_ASSERT(!receive(&p, STILL_MS));
	dma.last = 1;
	send_bytes(MSG_DMA_ASK, &dma, sizeof dma);
	for (unsigned cpu = 1; cpu <= 2; cpu++) {
		CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
		memcpy(&reply, p.bytes, sizeof reply);
		CU_ASSERT(reply.cpu == cpu && reply.count == 1);
	}
	CU_ASSERT(answers());
	stop();
	remove_image(image, fd);
}

static void step(enum snapshot_step step, uint32_t result)
{
	struct msg_snapshot snapshot = { .step = step, .result = result };

	send_bytes(MSG_SNAPSHOT, &snapshot, sizeof snapshot);
}

/* Messages between the save and the thaw are not part of what is saved; they are served afterwards,
 * in order. */
static void test_stands_still(void)
{
	struct msg_snapshot snapshot;
	struct msg_io_reply reply;
	struct packet p;

	start(NULL);
	expect_hello();
	step(SNAPSHOT_SAVE, SNAPSHOT_APART);
	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_SNAPSHOT);
	memcpy(&snapshot, p.bytes, sizeof snapshot);
	CU_ASSERT(snapshot.step == SNAPSHOT_SAVED && !snapshot.result);
	for (uint32_t seq = 1; seq <= 3; seq++)
		request((struct msg_io_request){ .seq = seq,
						 .address = 0x71,
						 .kind = IO_PORT_IN,
						 .size = 1,
						 .count = 1 },
			NULL, 0);
	CU_ASSERT(!receive(&p, STILL_MS));
	step(SNAPSHOT_THAW, 0);
	for (uint32_t seq = 1; seq <= 3; seq++) {
		CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
		memcpy(&reply, p.bytes, sizeof reply);
		CU_ASSERT(reply.seq == seq);
	}
	step(SNAPSHOT_END, 0);
	CU_ASSERT(answers());
	stop();
}

/* The next message of the type; those before it are for others. */
static void receive_type(struct packet *p, uint16_t type)
{
	do {
		CU_ASSERT_FATAL(receive(p, WAIT_MS));
	} while (p->header.type != type);
}

static void port_out(uint32_t address, uint32_t value)
{
	struct packet p;

	request((struct msg_io_request){ .address = address, .value = value, .size = 1, .count = 1,
					 .kind = IO_PORT_OUT },
		NULL, 0);
	receive_type(&p, MSG_IO_REPLY);
}

static uint32_t port_in(uint32_t address)
{
	struct msg_io_reply reply;
	struct packet p;

	request((struct msg_io_request){ .address = address, .size = 1, .count = 1,
					 .kind = IO_PORT_IN },
		NULL, 0);
	receive_type(&p, MSG_IO_REPLY);
	memcpy(&reply, p.bytes, sizeof reply);
	return reply.value;
}

/* The items of the server's state.  Returns their number. */
static unsigned save(struct packet *items, unsigned most)
{
	struct msg_snapshot_pull pull = { .count = 1 };
	struct msg_snapshot_item item = { 0 };
	unsigned n = 0;

	step(SNAPSHOT_SAVE, SNAPSHOT_APART);
	CU_ASSERT_FATAL(receive(&items[0], WAIT_MS) && items[0].header.type == MSG_SNAPSHOT);
	while (item.kind != SNAPSHOT_LAST) {
		CU_ASSERT_FATAL(n < most);
		send_bytes(MSG_SNAPSHOT_PULL, &pull, sizeof pull);
		CU_ASSERT_FATAL(receive(&items[n], WAIT_MS) &&
				items[n].header.type == MSG_SNAPSHOT_ITEM);
		memcpy(&item, items[n++].bytes, sizeof item);
	}
	return n;
}

/* A user types, and runs a command, while the machine is being loaded: the state that is loaded
 * must not take the place of what came before it. */
static void test_loads(void)
{
	enum { MCR_RTS = 2, LSR_RX = 1, MODEM = VMP_UART_PORT + 4, LINE = VMP_UART_PORT + 5 };
	static struct packet items[512];
	struct { struct msg_console head; char text[2]; } typed = { .text = "hi" };
	struct { struct msg_exec head; char spec; } run = { { 7, 8, AGENT_SPEC, 0 }, 'x' };
	unsigned n, bytes;

	start(NULL);
	expect_hello();
	port_out(MODEM, MCR_RTS); /* the guest takes input */
	n = save(items, ARRAY_LEN(items));
	stop();

	start_with("--restore", NULL);
	expect_hello();
	send_bytes(MSG_CONSOLE, &typed, sizeof typed.head + 2);
	send_bytes(MSG_EXEC, &run, sizeof run.head + 1);
	for (unsigned i = 0; i < n; i++) {
		send_bytes(MSG_SNAPSHOT_ITEM, items[i].bytes, items[i].header.bytes);
		receive_type(&items[i], MSG_SNAPSHOT); /* it is taken */
	}
	CU_ASSERT(port_in(LINE) & LSR_RX);
	CU_ASSERT(port_in(VMP_UART_PORT) == 'h');
	CU_ASSERT(port_in(VMP_UART_PORT) == 'i');
	bytes = port_in(VMP_AGENT_PORT + VMP_STREAM_STATUS);
	/* AGENT_RESET, then what shall run */
	CU_ASSERT_EQUAL(bytes, 2 * sizeof(struct agent_frame) + 1);
	stop();
}

static void test_missing_image(void)
{
	struct msg_machine_end end;
	struct packet p;

	start("/nonesuch/image");
	expect_hello();
	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_MACHINE_END);
	memcpy(&end, p.bytes, sizeof end);
	CU_ASSERT(end.reason == END_FAILURE && end.status == EXIT_VMP_FAILURE);
	CU_ASSERT(memmem(p.bytes + sizeof end, p.header.bytes - sizeof end, "/nonesuch/image",
			 15) != NULL);
	stop();
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "requests", test_requests },
		{ "bad requests", test_bad_requests },
		{ "bad messages", test_bad_messages },
		{ "flush", test_flush },
		{ "held answers", test_held_answer },
		{ "it stands still", test_stands_still },
		{ "it is loaded", test_loads },
		{ "missing image", test_missing_image },
		UNIT_END
	};
	(void)argc;
	find_server(argv[0]);
	return UNIT_RUN("I/O server", tests);
}
