/* uart.c - the console: a 16550A at VMP_UART_PORT, line VMP_UART_IRQ.
 *
 * Two properties differ from the real chip, on purpose.  A byte is transmitted at once, but
 * "transmitter empty" is reported only when the driver reads a register (IIR, LSR, IER) or a moment
 * later: Linux writes 16 bytes and reads LSR again before it leaves its handler, so a burst costs
 * no interrupt instead of one per byte.  The receiver has no FIFO of its own: it reads from the
 * wire, which buffers 64 KiB and waits while RTS is off.  Linux raises RTS when a program opens the
 * port, after it has emptied the FIFO and dropped a byte or two "for luck"; so input that was typed
 * before the boot is not lost.
 *
 * Output is collected and sent when the server is about to sleep; the last 64 KiB are kept for a
 * client that attaches late.  A slow client loses bytes (the daemon drops them): the console never
 * stalls the guest.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/guest_abi.h"
#include "base/log.h"

enum { RBR_THR, IER, IIR_FCR, LCR, MCR, LSR, MSR, SCR };
enum { IER_RX = 1, IER_THRE = 2, IER_LINE = 4, IER_MODEM = 8 };
enum { IIR_MODEM = 0, IIR_NONE = 1, IIR_THRE = 2, IIR_RX = 4, IIR_LINE = 6, IIR_FIFO = 0xc0 };
enum {
	FCR_ENABLE = 1, FCR_CLEAR_RX = 2, LCR_DLAB = 0x80, MCR_DTR = 1, MCR_RTS = 2,
	MCR_OUTPUTS = 0xc, MCR_OUT2 = 8, MCR_LOOP = 0x10,
};
enum {
	LSR_RX = 1,
	LSR_OVERRUN = 2,
	LSR_EMPTY = 0x60,
	MSR_READY = 0xb0, /* carrier, data set ready, clear to send */
	MSR_RING = 0x40
};
enum {
	WIRE_BYTES = 65536, LOOP_BYTES = 16, PENDING_BYTES = 4096, BACKLOG_BYTES = 65536,
	EMPTY_AFTER_MS = 1,
};

#define STATE(X)                                                                                   \
	X(uint8_t, ier, , 0, 0x0f)                                                                 \
	X(uint8_t, fcr, , 0, 0xff)                                                                 \
	X(uint8_t, lcr, , 0, 0xff)                                                                 \
	X(uint8_t, mcr, , 0, 0x1f)                                                                 \
	X(uint8_t, scr, , 0, 0xff)                                                                 \
	X(uint8_t, divisor, [2], 0, 0xff)                                                          \
	X(uint8_t, modem_seen, , 0, 0xff) /* the modem lines at the last read of MSR */            \
	X(bool, thre_pending, , 0, 1)                                                              \
	X(bool, draining, , 0, 1) /* bytes were written, and "empty" is not reported yet */        \
	X(bool, overrun, , 0, 1)                                                                   \
	X(bool, line, , 0, 1)                                                                      \
	/* Rings and buffers: where the oldest byte is, and how many there are. */                 \
	X(uint32_t, wire_at, , 0, WIRE_BYTES - 1)                                                  \
	X(uint32_t, wire_count, , 0, WIRE_BYTES)                                                   \
	X(uint32_t, loop_at, , 0, LOOP_BYTES - 1)                                                  \
	X(uint32_t, loop_count, , 0, LOOP_BYTES)                                                   \
	X(uint32_t, pending_count, , 0, PENDING_BYTES)                                             \
	X(uint64_t, backlog_end, , 0, UINT64_MAX) /* number of bytes stored so far */              \
	X(uint8_t, wire, [WIRE_BYTES], 0, 0xff)                                                    \
	X(uint8_t, loop, [LOOP_BYTES], 0, 0xff)                                                    \
	X(uint8_t, pending, [PENDING_BYTES], 0, 0xff)                                              \
	X(uint8_t, backlog, [BACKLOG_BYTES], 0, 0xff)
static struct state { STATE(CHIPSTATE_MEMBER) } u;

static uint8_t modem_lines(void)
{
	if (!(u.mcr & MCR_LOOP))
		return MSR_READY;
	/* outputs wired to inputs: RTS->CTS, DTR->DSR, OUT1->RI, OUT2->DCD */
	return (u.mcr & MCR_RTS) << 3 | (u.mcr & MCR_DTR) << 5 | (u.mcr & MCR_OUTPUTS) << 4;
}

/* Return bits 0-3 of MSR: the lines that changed; of the ring, only its end. */
static uint8_t modem_changes(void)
{
	uint8_t now = modem_lines(), changed = now ^ u.modem_seen;

	return (changed & (now & MSR_RING ? ~MSR_RING : ~0)) >> 4 & 0xf;
}

static void uart_reset(void)
{
	memset(&u, 0, sizeof u);
	u.thre_pending = true;
	u.modem_seen = MSR_READY;
}

static bool has_input(void)
{
	if (u.mcr & MCR_LOOP)
		return u.loop_count > 0;
	return u.mcr & MCR_RTS && u.wire_count && !console_is_virtio();
}

/* Return the IIR value of the most urgent condition that is enabled and true. */
static uint8_t identify(void)
{
	if (u.ier & IER_LINE && u.overrun)
		return IIR_LINE;
	if (u.ier & IER_RX && has_input())
		return IIR_RX;
	if (u.ier & IER_THRE && u.thre_pending)
		return IIR_THRE;
	if (u.ier & IER_MODEM && modem_changes())
		return IIR_MODEM;
	return IIR_NONE;
}

/* Set the line by the conditions, if OUT2 is set, as on a PC; a rise of the line is the edge. */
static void update_line(void)
{
	bool line = identify() != IIR_NONE && (u.mcr & (MCR_OUT2 | MCR_LOOP)) == MCR_OUT2;

	if (line && !u.line)
		iosrv_raise(VMP_UART_IRQ);
	u.line = line;
}

static void send_to(uint32_t client, const void *bytes, size_t count)
{
	struct msg_console body = { .client = client };

	for (size_t at = 0, part; at < count; at += part) {
		part = count - at < MAX_MSG_PAYLOAD ? count - at : MAX_MSG_PAYLOAD;
		iosrv_send(MSG_CONSOLE, VNODE_CLI, &body, sizeof body, (const uint8_t *)bytes + at,
			   part);
	}
}

static void uart_flush(void)
{
	if (u.pending_count)
		send_to(CONSOLE_ALL, u.pending, u.pending_count);
	u.pending_count = 0;
}

/* Report that the transmitter is empty. */
static void drain(void)
{
	if (u.draining)
		u.thre_pending = true;
	u.draining = false;
}

static void uart_on_timer(void)
{
	drain();
	update_line();
}

static void print(uint8_t byte)
{
	if (u.pending_count == PENDING_BYTES)
		uart_flush();
	u.pending[u.pending_count++] = byte;
	u.backlog[u.backlog_end++ % BACKLOG_BYTES] = byte;
}

static void transmit(uint8_t byte)
{
	u.thre_pending = false;
	if (!u.draining)
		iosrv_start_timer(&uart_chip, EMPTY_AFTER_MS);
	u.draining = true;
	if (u.mcr & MCR_LOOP) {
		u.overrun |= u.loop_count == LOOP_BYTES;
		if (u.loop_count < LOOP_BYTES)
			u.loop[(u.loop_at + u.loop_count++) % LOOP_BYTES] = byte;
		return;
	}
	print(byte);
}

static uint8_t receive(void)
{
	uint8_t byte;

	if (!has_input())
		return 0;
	if (u.mcr & MCR_LOOP) {
		byte = u.loop[u.loop_at];
		u.loop_at = (u.loop_at + 1) % LOOP_BYTES;
		u.loop_count--;
	} else {
		byte = u.wire[u.wire_at];
		u.wire_at = (u.wire_at + 1) % WIRE_BYTES;
		u.wire_count--;
	}
	return byte;
}

static uint8_t read_iir(void)
{
	uint8_t value;

	drain();
	value = identify();
	if (value == IIR_THRE) /* reported once */
		u.thre_pending = false;
	return value | (u.fcr & FCR_ENABLE ? IIR_FIFO : 0);
}

static uint8_t read_lsr(void)
{
	uint8_t value = LSR_EMPTY | (has_input() ? LSR_RX : 0) | (u.overrun ? LSR_OVERRUN : 0);

	drain();
	u.overrun = false;
	return value;
}

static uint8_t read_msr(void)
{
	uint8_t value = modem_lines() | modem_changes();

	u.modem_seen = modem_lines();
	return value;
}

static uint8_t read_register(uint32_t offset)
{
	if (offset <= IER && u.lcr & LCR_DLAB)
		return u.divisor[offset];
	switch (offset) {
	case RBR_THR: return receive();
	case IER: return u.ier;
	case IIR_FCR: return read_iir();
	case LCR: return u.lcr;
	case MCR: return u.mcr;
	case LSR: return read_lsr();
	case MSR: return read_msr();
	default: return u.scr;
	}
}

static void write_fcr(uint8_t value)
{
	/* the wire's bytes have not arrived yet: they stay */
	if (value & FCR_CLEAR_RX || (value ^ u.fcr) & FCR_ENABLE)
		u.loop_at = u.loop_count = 0;
	u.fcr = value;
}

static void write_register(uint32_t offset, uint8_t value)
{
	if (offset <= IER && u.lcr & LCR_DLAB) {
		u.divisor[offset] = value;
		return;
	}
	switch (offset) {
	case RBR_THR:
		transmit(value);
		return;
	case IER:
		drain();
		if (value & ~u.ier & IER_THRE)
			/* the transmitter is empty: report it to a driver that enables it */
			u.thre_pending = true;
		u.ier = value & 0xf;
		return;
	case IIR_FCR:
		write_fcr(value);
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

/* The registers are bytes: a wider access touches the following ones too, as on an 8-bit bus. */
static uint32_t uart_read(uint32_t offset, unsigned size)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint32_t)(offset + i <= SCR ? read_register(offset + i) : 0xff) << 8 * i;
	update_line();
	return value;
}

static void uart_write(uint32_t offset, unsigned size, uint32_t value)
{
	for (unsigned i = 0; i < size && offset + i <= SCR; i++)
		write_register(offset + i, value >> 8 * i);
	update_line();
}

void uart_input(const void *bytes, size_t count)
{
	for (size_t i = 0; i < count && u.wire_count < WIRE_BYTES; i++)
		u.wire[(u.wire_at + u.wire_count++) % WIRE_BYTES] = ((const uint8_t *)bytes)[i];
	/* each arrival is an edge of its own, so a driver that stopped reading early is called
	 * again */
	u.line = false;
	update_line();
	console_typed();
}

/* --- the virtio console uses the same wires (virtio_console.c) --- */

void uart_print(const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		print(((const uint8_t *)bytes)[i]);
}

size_t uart_typed(void *to, size_t most)
{
	size_t count = u.wire_count < most ? u.wire_count : most;

	for (size_t i = 0; i < count; i++)
		((uint8_t *)to)[i] = u.wire[(u.wire_at + i) % WIRE_BYTES];
	return count;
}

void uart_read_typed(size_t count)
{
	bug_on(count > u.wire_count);
	u.wire_at = (u.wire_at + count) % WIRE_BYTES;
	u.wire_count -= count;
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

static void uart_restored(void)
{
	if (u.draining)
		iosrv_start_timer(&uart_chip, EMPTY_AFTER_MS);
}

const struct chip uart_chip = {
	.name = "console", .range = { { VMP_UART_PORT, 8 } }, .reset = uart_reset,
	.read = uart_read, .write = uart_write,
	.flush = uart_flush, .on_timer = uart_on_timer, .state = CHIPSTATE(u),
	.restored = uart_restored,
};
