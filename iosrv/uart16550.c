/* uart16550.c - the console: a 16550A at VMP_UART_PORT, line VMP_UART_IRQ.
 *
 * What is transmitted leaves at once, so the transmitter is always empty; each write to it is still a fall and a rise of
 * the "transmitter empty" condition, hence an edge.  Output is collected and sent when the server is about to sleep; the
 * last 64 KiB are kept for a client that attaches late.  A slow client loses bytes (the daemon drops them): the console
 * never stalls the guest.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/guest_abi.h"

enum { RBR_THR, IER, IIR_FCR, LCR, MCR, LSR, MSR, SCR };
enum { IER_RX = 1, IER_THRE = 2, IIR_NONE = 1, IIR_THRE = 2, IIR_RX = 4, IIR_FIFO = 0xc0, LCR_DLAB = 0x80, MCR_LOOP = 0x10,
       LSR_RX = 1, LSR_EMPTY = 0x60, MSR_READY = 0xb0 /* carrier, data set ready, clear to send */ };
enum { INPUT_BYTES = 4096, PENDING_BYTES = 4096, BACKLOG_BYTES = 65536 };

static struct uart {
	uint8_t ier, fcr, lcr, mcr, scr, divisor[2];
	bool thre_pending, line;
	uint32_t input_at, input_count, pending_count;
	uint64_t backlog_end; /* bytes ever put in */
	uint8_t input[INPUT_BYTES], pending[PENDING_BYTES], backlog[BACKLOG_BYTES];
} u;

static void uart_reset(void)
{
	memset(&u, 0, sizeof u);
	u.thre_pending = true;
}

static uint8_t identify(void)
{
	if (u.ier & IER_RX && u.input_count)
		return IIR_RX;
	if (u.ier & IER_THRE && u.thre_pending)
		return IIR_THRE;
	return IIR_NONE;
}

/* The line follows the conditions; its rise is the edge. */
static void update_line(void)
{
	bool line = identify() != IIR_NONE;

	if (line && !u.line)
		iosrv_raise(VMP_UART_IRQ);
	u.line = line;
}

static void send_to(uint32_t client, const void *bytes, size_t count)
{
	struct msg_console body = { .client = client };

	for (size_t at = 0, part; at < count; at += part) {
		part = count - at < MAX_MSG_PAYLOAD ? count - at : MAX_MSG_PAYLOAD;
		iosrv_send(MSG_CONSOLE, VNODE_CLI, &body, sizeof body, (const uint8_t *)bytes + at, part);
	}
}

void uart_flush(void)
{
	if (u.pending_count)
		send_to(CONSOLE_ALL, u.pending, u.pending_count);
	u.pending_count = 0;
}

static void transmit(uint8_t byte)
{
	if (u.pending_count == PENDING_BYTES)
		uart_flush();
	u.pending[u.pending_count++] = byte;
	u.backlog[u.backlog_end++ % BACKLOG_BYTES] = byte;
}

static void take_input(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count && u.input_count < INPUT_BYTES; i++)
		u.input[(u.input_at + u.input_count++) % INPUT_BYTES] = bytes[i];
	update_line();
}

static uint32_t uart_read(uint32_t offset, unsigned size)
{
	uint8_t value;

	(void)size;
	if (offset <= IER && u.lcr & LCR_DLAB)
		return u.divisor[offset];
	switch (offset) {
	case RBR_THR:
		if (!u.input_count)
			return 0;
		value = u.input[u.input_at];
		u.input_at = (u.input_at + 1) % INPUT_BYTES;
		u.input_count--;
		update_line();
		return value;
	case IER:
		return u.ier;
	case IIR_FCR:
		value = identify();
		if (value == IIR_THRE) { /* told once */
			u.thre_pending = false;
			update_line();
		}
		return value | (u.fcr & 1 ? IIR_FIFO : 0);
	case LCR:
		return u.lcr;
	case MCR:
		return u.mcr;
	case LSR:
		return LSR_EMPTY | (u.input_count ? LSR_RX : 0);
	case MSR:
		if (u.mcr & MCR_LOOP) /* outputs wired to inputs: RTS->CTS, DTR->DSR, OUT1->RI, OUT2->DCD */
			return (u.mcr & 2) << 3 | (u.mcr & 1) << 5 | (u.mcr & 0xc) << 4;
		return MSR_READY;
	default:
		return u.scr;
	}
}

static void uart_write(uint32_t offset, unsigned size, uint32_t value)
{
	(void)size;
	if (offset <= IER && u.lcr & LCR_DLAB) {
		u.divisor[offset] = value;
		return;
	}
	switch (offset) {
	case RBR_THR:
		u.thre_pending = false;
		update_line();
		if (u.mcr & MCR_LOOP)
			take_input(&(uint8_t){ value }, 1);
		else
			transmit(value);
		u.thre_pending = true;
		update_line();
		return;
	case IER:
		if (value & ~u.ier & IER_THRE)
			u.thre_pending = true; /* the transmitter is empty: say so to who begins to ask */
		u.ier = value & 0xf;
		update_line();
		return;
	case IIR_FCR:
		u.fcr = value;
		if (value & 2)
			u.input_at = u.input_count = 0;
		update_line();
		return;
	case LCR:
		u.lcr = value;
		return;
	case MCR:
		u.mcr = value & 0x1f;
		return;
	case SCR:
		u.scr = value;
		return;
	}
}

void uart_input(const void *bytes, size_t count)
{
	take_input(bytes, count);
}

bool uart_wants_input(void)
{
	return u.input_count < INPUT_BYTES;
}

void uart_attach(uint32_t client, uint32_t backlog_bytes)
{
	uint64_t count = u.backlog_end < BACKLOG_BYTES ? u.backlog_end : BACKLOG_BYTES;

	uart_flush();
	if (count > backlog_bytes)
		count = backlog_bytes;
	for (uint64_t at = u.backlog_end - count, part; at < u.backlog_end; at += part) {
		part = BACKLOG_BYTES - at % BACKLOG_BYTES;
		if (part > u.backlog_end - at)
			part = u.backlog_end - at;
		send_to(client, u.backlog + at % BACKLOG_BYTES, part);
	}
}

const struct chip uart_chip = {
	.name = "console", .first = VMP_UART_PORT, .last = VMP_UART_PORT + 7, .reset = uart_reset,
	.read = uart_read, .write = uart_write, .state = &u, .state_bytes = sizeof u,
};
