/* iosrv_uart.c - the console as Linux's 8250 driver uses it: its probe, its startup tests, its
 * interrupt handler. */
#include <string.h>
#include "base/guest_abi.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum {
	RX = VMP_UART_PORT,
	TX = RX,
	IER,
	IIR,
	FCR = IIR,
	LCR,
	MCR,
	LSR,
	MSR,
	SCR,
	IRQ = VMP_UART_IRQ
};
enum { DLAB = 0x80, IER_RX = 1, IER_THRE = 2, IER_LINE = 4, IER_MODEM = 8, RTS_DTR_OUT2 = 0x0b };

static uint8_t in(uint32_t port) { return port_in(port, 1); }
static void out(uint32_t port, uint8_t value) { port_out(port, 1, value); }

/* autoconfig() of drivers/tty/serial/8250/8250_port.c */
static void test_probe(void)
{
	fake_reset();
	out(IER, 0);
	CU_ASSERT((in(IER) & 0xf) == 0);
	out(IER, 0xff);
	CU_ASSERT(in(IER) == 0x0f); /* bit 6 would be an XScale's */
	out(IER, 0);
	out(MCR, 0x10 | 0x0a);
	CU_ASSERT((in(MSR) & 0xf0) == 0x90);
	out(MCR, 0);
	out(LCR, 0xbf);
	out(FCR, 0);
	out(LCR, 0);
	CU_ASSERT(in(IIR) >> 6 == 0);
	out(FCR, 1);
	CU_ASSERT(in(IIR) >> 6 == 3);
	out(FCR, 0x21);
	CU_ASSERT(in(IIR) >> 5 == 6); /* no 64-byte FIFO, hence no 16750 */
	out(LCR, DLAB);
	CU_ASSERT(in(IIR) != 0); /* no EFR, hence no 16650 */
	out(TX, 0x34);
	out(IER, 0x12);
	CU_ASSERT(in(RX) == 0x34 && in(IER) == 0x12);
	out(LCR, 3);
	CU_ASSERT(in(RX) == 0 && in(IER) == 0 && in(LCR) == 3);
	out(SCR, 0x5a);
	CU_ASSERT(in(SCR) == 0x5a);
	CU_ASSERT(fake_edges(IRQ) == 0);
}

/* size_fifo(): 16 bytes, and the overrun is told once */
static void test_loopback(void)
{
	unsigned count = 0;

	fake_reset();
	uart_input("typed", 5);
	out(FCR, 7);
	out(MCR, 0x10 | RTS_DTR_OUT2);
	for (unsigned i = 0; i < 20; i++)
		out(TX, i);
	CU_ASSERT(in(LSR) == 0x63);
	CU_ASSERT(in(LSR) == 0x61);
	for (; in(LSR) & 1; count++)
		CU_ASSERT(in(RX) == count);
	CU_ASSERT(count == 16);
	uart_chip.flush();
	CU_ASSERT(fake.n_messages == 0); /* nothing went out */
	CU_ASSERT(fake_edges(IRQ) == 0); /* OUT2 is cut off */
	out(MCR, RTS_DTR_OUT2);
	CU_ASSERT(in(RX) == 't'); /* and nothing that was typed was lost */
}

/* serial8250_do_startup(): THRE is told again each time it is enabled, and once each time */
static void test_startup(void)
{
	fake_reset();
	out(FCR, 1);
	out(IER, IER_THRE);
	CU_ASSERT((in(IIR) & 0xf) == 2);
	CU_ASSERT((in(IIR) & 0xf) == 1);
	out(IER, 0);
	out(IER, IER_THRE);
	CU_ASSERT((in(IIR) & 0xf) == 2);
	out(IER, 0);
	CU_ASSERT(fake_edges(IRQ) == 0); /* OUT2 is off */
	out(MCR, 8);
	out(IER, IER_THRE);
	CU_ASSERT(fake_edges(IRQ) == 1);
	/* else Linux works around a bug of the transmitter */
	CU_ASSERT(in(LSR) == 0x60 && (in(IIR) & 0xf) == 2);
	out(IER, 0);
}

/* A burst of the interrupt handler: 16 bytes, a look at IIR, the next 16, without an interrupt
 * between. */
static void test_transmit(void)
{
	const struct fake_message *m;

	fake_reset();
	out(FCR, 1);
	out(MCR, 8);
	out(IER, IER_THRE);
	CU_ASSERT(fake_edges(IRQ) == 1);
	for (unsigned burst = 0; burst < 3; burst++) {
		CU_ASSERT((in(IIR) & 0xf) == 2);
		CU_ASSERT(in(LSR) == 0x60);
		for (unsigned i = 0; i < 16; i++)
			out(TX, 'a' + i);
	}
	CU_ASSERT(fake_edges(IRQ) == 0);
	/* the handler gives up here; a moment later it is called again */
	CU_ASSERT_FATAL(fake_timer(&uart_chip));
	CU_ASSERT(fake_edges(IRQ) == 1);
	CU_ASSERT((in(IIR) & 0xf) == 2);
	out(IER, 0);
	uart_chip.on_timer(); /* one that is not needed */
	CU_ASSERT(fake_edges(IRQ) == 0 && (in(IIR) & 0xf) == 1);
	uart_chip.flush();
	m = fake_take(MSG_CONSOLE);
	CU_ASSERT_FATAL(m && m->payload_bytes == 48 && m->to == VNODE_CLI);
	CU_ASSERT(!memcmp(m->payload, "abcdefghijklmnopabcdefghijklmnop", 32));
}

static void test_receive(void)
{
	fake_reset();
	out(FCR, 1);
	uart_input("xy", 2); /* before the port is open */
	CU_ASSERT(in(LSR) == 0x60 && in(RX) == 0);
	out(IER, IER_RX | IER_LINE);
	out(FCR, 7);
	CU_ASSERT(fake_edges(IRQ) == 0);
	out(MCR, RTS_DTR_OUT2);
	CU_ASSERT(fake_edges(IRQ) == 1);
	CU_ASSERT((in(IIR) & 0xf) == 4 && (in(IIR) & 0xf) == 4); /* until it is read */
	CU_ASSERT(in(LSR) == 0x61 && in(RX) == 'x' && in(LSR) == 0x61 && in(RX) == 'y' &&
		  in(LSR) == 0x60);
	CU_ASSERT((in(IIR) & 0xf) == 1 && fake_edges(IRQ) == 0);
	uart_input("z", 1);
	CU_ASSERT(fake_edges(IRQ) == 1);
	uart_input("!", 1); /* the driver has not yet come: told again */
	CU_ASSERT(fake_edges(IRQ) == 1);
	out(MCR, 8); /* RTS off: throttled */
	CU_ASSERT(in(LSR) == 0x60);
	out(MCR, RTS_DTR_OUT2);
	CU_ASSERT(fake_edges(IRQ) == 1 && in(RX) == 'z' && in(RX) == '!');
}

/* All conditions at once: each is told in its turn, and what remains keeps the line up or raises it
 * again. */
static void test_priority(void)
{
	fake_reset();
	out(FCR, 1);
	out(MCR, RTS_DTR_OUT2 | 0x10);
	for (unsigned i = 0; i < 17; i++)
		out(TX, i);
	out(IER, 0xf);
	out(LCR, 3);
	CU_ASSERT((in(IIR) & 0xf) == 6);
	in(LSR);
	CU_ASSERT((in(IIR) & 0xf) == 4);
	while (in(LSR) & 1)
		in(RX);
	CU_ASSERT((in(IIR) & 0xf) == 2);
	out(MCR, 0x10);
	CU_ASSERT((in(IIR) & 0xf) == 0);
	CU_ASSERT((in(MSR) & 0xf) == 0xb); /* CTS, DSR and carrier went away since the start */
	CU_ASSERT((in(IIR) & 0xf) == 1);
	out(IER, 0);
	out(MCR, RTS_DTR_OUT2);
	in(MSR);
	out(IER, IER_RX | IER_THRE);
	CU_ASSERT(fake_edges(IRQ) == 1);
	uart_input("a", 1);
	fake_edges(IRQ);
	CU_ASSERT((in(IIR)&0xf) == 4 && in(RX) == 'a' && (in(IIR)&0xf) == 2 && (in(IIR)&0xf) == 1);
}

static void test_backlog(void)
{
	const struct fake_message *m;
	size_t total = 0;
	uint8_t last = 0;

	fake_reset();
	uart_attach(3, 65536);
	CU_ASSERT(fake.n_messages == 0);
	for (unsigned i = 0; i < 70000; i++) {
		out(TX, i % 251);
		if (i % 4096 == 0)
			uart_chip.flush(), fake.n_messages = 0;
	}
	fake.n_messages = 0;
	uart_chip.flush();
	fake.n_messages = 0;
	uart_attach(3, 100000);
	while ((m = fake_take(MSG_CONSOLE))) {
		CU_ASSERT(((const struct msg_console *)m->body)->client == 3);
		if (!total)
			CU_ASSERT(m->payload[0] == (70000 - 65536) % 251);
		total += m->payload_bytes;
		last = m->payload[m->payload_bytes - 1];
	}
	CU_ASSERT(total == 65536 && last == 69999 % 251);
	uart_attach(4, 10);
	m = fake_take(MSG_CONSOLE);
	CU_ASSERT_FATAL(m != NULL);
	CU_ASSERT(m->payload_bytes == 10 && m->payload[9] == last);
}

static void test_wire_is_bounded(void)
{
	static uint8_t much[70000];
	unsigned count = 0;

	fake_reset();
	memset(much, 'm', sizeof much);
	uart_input(much, sizeof much);
	out(MCR, RTS_DTR_OUT2);
	for (; in(LSR) & 1; count++)
		CU_ASSERT_FATAL(in(RX) == 'm');
	CU_ASSERT(count == 65536);
}

static void test_absent_and_wide(void)
{
	uint8_t bytes[8];

	fake_reset();
	CU_ASSERT(port_in(0x2f8, 1) == 0xff && port_in(0x71, 2) == 0xffff &&
		  port_in(0x60, 4) == 0xffffffff);
	CU_ASSERT(mmio_read(0xd0000000) == 0xffffffff);
	port_out(0x20, 1, 0x11);
	port_ins(0x1e8, 2, 4, bytes);
	CU_ASSERT(bytes[0] == 0xff && bytes[7] == 0xff);
	port_out(SCR - 1, 2, 0xab00); /* MSR and SCR */
	CU_ASSERT(in(SCR) == 0xab && port_in(SCR, 2) == 0xffab);
	port_outs(TX, 1, 3, "abc");
	uart_chip.flush();
	CU_ASSERT(fake.n_messages == 1 && fake.messages[0].payload_bytes == 3);
	out(MCR, RTS_DTR_OUT2);
	uart_input("hi", 2);
	port_ins(RX, 1, 3, bytes);
	CU_ASSERT(!memcmp(bytes, "hi", 3));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "the driver's probe", test_probe },
		{ "loopback", test_loopback },
		{ "startup", test_startup },
		{ "transmit", test_transmit },
		{ "receive", test_receive },
		{ "priorities", test_priority },
		{ "backlog", test_backlog },
		{ "input is bounded", test_wire_is_bounded },
		{ "absent ports, wide accesses", test_absent_and_wide },
		UNIT_END
	};

	return UNIT_RUN("console", tests);
}
