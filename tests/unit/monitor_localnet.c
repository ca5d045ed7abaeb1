/* Frames that the monitor itself sends to vmp-net: monitor/localnet.c.  What it does not send, it
 * must leave to the I/O server. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/netframe.h"
#include "base/types.h"
#include "base/virtio_abi.h"
#include "monitor/localnet.h"
#include "tests/unit/unit.h"

enum { HEADER = sizeof(struct virtio_net_header), PLACE = 0x1000, RAM = 1 << 16 };

static uint8_t ram[RAM];
static struct virtqueue_chain chain;

#include "tests/unit/virtqueue_ram.h"

static int pair[2];

static void start(void)
{
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	localnet_open(pair[0]);
	for (unsigned i = 0; i < sizeof ram; i++)
		ram[i] = (uint8_t)(i * 7 + i / 251);
}

static void end(void)
{
	localnet_open(-1);
	close(pair[0]);
	close(pair[1]);
}

/* Send a chain of `bytes` with the header, of which the first buffer has `first`. */
static bool send_chain(uint32_t first, uint32_t bytes, uint32_t in_bytes)
{
	memset(&chain, 0, sizeof chain);
	chain.segment[0].gpa = PLACE;
	chain.segment[0].bytes = first;
	chain.segment[1].gpa = PLACE + first;
	chain.segment[1].bytes = bytes - first;
	chain.segments = chain.out_segments = 1 + (bytes > first);
	chain.out_bytes = bytes;
	chain.in_bytes = in_bytes;
	return localnet_send(&chain, &memory);
}

static ssize_t come(uint8_t *frame)
{
	return recv(pair[1], frame, NET_FRAME_BYTES + 1, MSG_DONTWAIT);
}

/* A frame is what follows the header, however it lies in the guest's buffers. */
static void test_sent(void)
{
	static const struct { uint32_t first, bytes; } rows[] = {
		{ HEADER, HEADER + 60 }, { HEADER + 60, HEADER + 60 }, { 5, HEADER + 61 },
		{ HEADER + 7, HEADER + 1500 }, { HEADER, HEADER + NET_FRAME_BYTES },
		{ HEADER, HEADER + 1 },
	};
	uint8_t frame[NET_FRAME_BYTES + 1];

	start();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		CU_ASSERT_TRUE(send_chain(rows[i].first, rows[i].bytes, 0));
		CU_ASSERT_EQUAL(come(frame), rows[i].bytes - HEADER);
		CU_ASSERT_FALSE(memcmp(frame, ram + PLACE + HEADER, rows[i].bytes - HEADER));
	}
	CU_ASSERT(come(frame) < 0 && errno == EAGAIN);
	end();
}

static void test_refused(void)
{
	static const struct { uint32_t first, bytes, in_bytes; } rows[] = {
		{ HEADER, HEADER, 0 },				 /* no frame */
		{ 5, 5, 0 }, { 0, 0, 0 },			 /* no header */
		{ HEADER, HEADER + NET_FRAME_BYTES + 1, 0 },	 /* too long */
		{ HEADER, HEADER + 60, 1 },			 /* the device shall write */
	};
	uint8_t frame[NET_FRAME_BYTES + 1];

	start();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CU_ASSERT_FALSE(send_chain(rows[i].first, rows[i].bytes, rows[i].in_bytes));
	chain.segment[1].gpa = UINT64_MAX - 20; /* not in RAM */
	chain.out_bytes = HEADER + 60;
	chain.in_bytes = 0;
	CU_ASSERT_FALSE(localnet_send(&chain, &memory));
	CU_ASSERT(come(frame) < 0 && errno == EAGAIN);
	end();
	CU_ASSERT_FALSE(send_chain(HEADER, HEADER + 60, 0)); /* there is no socket */
}

/* What finds no room is refused whole, and so is all that follows the end of vmp-net. */
static void test_no_room(void)
{
	uint8_t frame[NET_FRAME_BYTES + 1];
	unsigned sent = 0, came = 0;

	start();
	while (sent < 100000 && send_chain(HEADER, HEADER + 8000, 0))
		sent++;
	CU_ASSERT(sent > 0 && sent < 100000);
	while (come(frame) == 8000)
		came++;
	CU_ASSERT_EQUAL(came, sent);
	CU_ASSERT_TRUE(send_chain(HEADER, HEADER + 8000, 0));
	close(pair[1]);
	CU_ASSERT_FALSE(send_chain(HEADER, HEADER + 60, 0)); /* and no SIGPIPE */
	pair[1] = -1;
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "sent", test_sent },
		{ "what is left to the I/O server", test_refused },
		{ "no room", test_no_room },
		UNIT_END
	};

	return UNIT_RUN("localnet", tests);
}
