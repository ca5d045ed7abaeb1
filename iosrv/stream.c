/* stream.c - the stream device of base/guest_abi.h: standard input, output and error of the
 * command, its exit status.
 *
 * Flow control is by credit, called room: the command line may send as many bytes of input as it
 * has room for, and gives room for output in turn.  The guest may write as many bytes as there is
 * room left, so no byte is ever dropped.  Output is collected and sent when the server is about to
 * sleep, or when a message is full.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/guest_abi.h"

enum { WINDOW = 65536, REGISTERS = 16, STATE_EXIT = VMP_STREAM_EXIT_PORT - VMP_STREAM_PORT,
       STATE_WINDOW = VMP_STREAM_COLS_ROWS_PORT - VMP_STREAM_PORT };

#define STATE(X)                                                                                   \
	X(bool, armed, , 0, 1)                                                                     \
	X(bool, eof, , 0, 1) /* input: it has ended; output: the reader has gone */                \
	X(bool, closed, , 0, 1)                                                                    \
	X(uint32_t, head, , 0, WINDOW - 1) /* input: where in `bytes` the oldest byte is */        \
	X(uint32_t, count, , 0, WINDOW) /* input: bytes waiting; output: bytes collected */        \
	X(uint32_t, room, , 0, WINDOW) /* output: further bytes that the command line accepts */   \
	X(uint32_t, returned, , 0, WINDOW) /* input: bytes read whose room is not returned yet */  \
	X(uint32_t, taken, , 0, UINT32_MAX) /* input: bytes received in all, modulo 2^32 */        \
	X(uint8_t, bytes, [WINDOW], 0, 0xff)
static struct state { STATE(CHIPSTATE_MEMBER) } stream[VMP_STREAM_COUNT];
static uint32_t columns_rows;
static bool restored; /* the other end must be sent `taken` */

static void stream_reset(void)
{
	memset(stream, 0, sizeof stream);
	stream[1].room = stream[2].room = WINDOW;
	columns_rows = 0;
	restored = false;
}

static uint32_t status(unsigned s)
{
	struct state *t = &stream[s];

	if (s == 0)
		return t->count ? t->count : t->eof ? VMP_STREAM_EOF : 0;
	return t->eof ? VMP_STREAM_EOF : t->room;
}

/* Raise one edge if the stream is armed and its status is not 0. */
static void tell(unsigned s)
{
	if (!stream[s].armed || !status(s))
		return;
	stream[s].armed = false;
	iosrv_raise(VMP_STREAM_IRQ);
}

static void send_output(unsigned s)
{
	struct state *t = &stream[s];
	struct msg_stream body = { .stream = s };

	for (uint32_t at = 0, part; at < t->count; at += part) {
		part = t->count - at < MAX_MSG_PAYLOAD ? t->count - at : MAX_MSG_PAYLOAD;
		iosrv_send(MSG_STREAM, VNODE_CLI, &body, sizeof body, t->bytes + at, part);
	}
	t->count = 0;
}

static void give_room(void)
{
	struct msg_stream_room body = { .stream = 0,
					.bytes = stream[0].returned,
					.taken = stream[0].taken };

	if (stream[0].returned || restored)
		iosrv_send(MSG_STREAM_ROOM, VNODE_CLI, &body, sizeof body, NULL, 0);
	stream[0].returned = 0;
	restored = false;
}

static void stream_flush(void)
{
	send_output(1);
	send_output(2);
	give_room();
}

static unsigned read_input(void *data, unsigned bytes)
{
	struct state *t = &stream[0];
	uint8_t *to = data;
	unsigned n = bytes < t->count ? bytes : t->count;

	for (unsigned i = 0; i < n; i++)
		to[i] = t->bytes[(t->head + i) % WINDOW];
	t->head = (t->head + n) % WINDOW;
	t->count -= n;
	t->returned += n;
	if (t->returned >= WINDOW / 2)
		give_room();
	return n;
}

static void write_output(unsigned s, const void *data, unsigned bytes)
{
	struct state *t = &stream[s];

	if (t->eof || t->closed)
		return;
	if (bytes > t->room) /* the driver has read the room first; more is its error */
		bytes = t->room;
	if (t->count + bytes > WINDOW)
		send_output(s);
	memcpy(t->bytes + t->count, data, bytes);
	t->count += bytes;
	t->room -= bytes;
	if (t->count >= MAX_MSG_PAYLOAD)
		send_output(s);
}

static void close_stream(unsigned s)
{
	struct msg_stream body = { .stream = s, .eof = 1 };

	if (stream[s].closed)
		return;
	stream[s].closed = true;
	if (s == 0)
		return;
	send_output(s);
	iosrv_send(MSG_STREAM, VNODE_CLI, &body, sizeof body, NULL, 0);
}

static uint32_t stream_read(uint32_t offset, unsigned size)
{
	unsigned s = offset / REGISTERS;
	uint32_t value = 0;

	if (offset == STATE_WINDOW)
		return columns_rows;
	if (s >= VMP_STREAM_COUNT)
		return ~0u;
	switch (offset % REGISTERS) {
	case VMP_STREAM_DATA:
		if (s == 0)
			read_input(&value, size);
		return value;
	case VMP_STREAM_STATUS:
		return status(s);
	default:
		return 0;
	}
}

static void stream_write(uint32_t offset, unsigned size, uint32_t value)
{
	unsigned s = offset / REGISTERS;
	struct msg_command_exit exit_body = { .status = value };

	if (offset == STATE_EXIT) { /* sent behind all output */
		stream_flush();
		iosrv_send(MSG_COMMAND_EXIT, VNODE_CLI, &exit_body, sizeof exit_body, NULL, 0);
		return;
	}
	if (s >= VMP_STREAM_COUNT)
		return;
	switch (offset % REGISTERS) {
	case VMP_STREAM_DATA:
		if (s)
			write_output(s, &value, size);
		return;
	case VMP_STREAM_IRQ_ENABLE:
		stream[s].armed = value;
		tell(s);
		return;
	case VMP_STREAM_CLOSE:
		close_stream(s);
		return;
	}
}

static unsigned stream_read_string(uint32_t offset, unsigned size, unsigned count, void *data)
{
	if (offset != VMP_STREAM_DATA)
		return 0;
	return read_input(data, size * count) / size;
}

static void stream_write_string(uint32_t offset, unsigned size, unsigned count, const void *data)
{
	unsigned s = offset / REGISTERS;

	if (offset % REGISTERS == VMP_STREAM_DATA && s && s < VMP_STREAM_COUNT)
		write_output(s, data, size * count);
}

/* Handle input from the command line. */
void stream_input(const struct msg_stream *body, const void *bytes, size_t count)
{
	struct state *t;

	if (body->stream >= VMP_STREAM_COUNT)
		return;
	t = &stream[body->stream];
	if (body->stream == 0) {
		if (count > WINDOW - t->count)
			count = WINDOW - t->count; /* it had no room for more */
		for (size_t i = 0; i < count; i++)
			t->bytes[(t->head + t->count++) % WINDOW] = ((const uint8_t *)bytes)[i];
		t->taken += count;
	}
	if (body->eof)
		t->eof = true;
	tell(body->stream);
}

void stream_room(const struct msg_stream_room *body)
{
	struct state *t;

	if (body->stream == 0 || body->stream >= VMP_STREAM_COUNT)
		return;
	t = &stream[body->stream];
	t->room = body->bytes < WINDOW - t->room ? t->room + body->bytes : WINDOW;
	tell(body->stream);
}

void stream_window(uint32_t columns, uint32_t rows)
{
	columns_rows = columns << 16 | (rows & 0xffff);
	console_window();
}

uint32_t stream_window_size(void) { return columns_rows; }

/* After loading, another command line is at the other end: it reads the output, accepts a whole
 * window, and is sent the room for input. */
static void stream_restored(void)
{
	stream[0].returned = WINDOW - stream[0].count;
	restored = true;
	for (unsigned s = 1; s < VMP_STREAM_COUNT; s++) {
		stream[s].eof = false;
		stream[s].room = WINDOW - stream[s].count;
		tell(s);
	}
}

const struct chip stream_chip = {
	.name = "streams",
	.range = { { VMP_STREAM_PORT, VMP_STREAM_COLS_ROWS_PORT + 4 - VMP_STREAM_PORT } },
	.reset = stream_reset, .read = stream_read, .write = stream_write,
	.read_string = stream_read_string,
	.write_string = stream_write_string, .flush = stream_flush, .state = CHIPSTATE(stream),
	.restored = stream_restored,
};
