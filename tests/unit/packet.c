/* packet.c - base/packet.c: each message at its bounds and on each link; packets that are cut, too
 * long, of another version, or from a sender that may not send them; sockets that are full or
 * closed; the queue. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/packet.h"
#include "tests/unit/unit.h"

enum payload_kind { KIND_NONE, KIND_TEXT, KIND_BYTES, KIND_PAGE, KIND_ARRAY };
#define NONE KIND_NONE, 0
#define TEXT KIND_TEXT, 1
#define BYTES KIND_BYTES, 1
#define PAGE KIND_PAGE, PAGE_BYTES
#define ARRAY(type) KIND_ARRAY, sizeof(type)
static const struct row {
	uint16_t type;
	uint32_t body;
	enum payload_kind kind;
	uint32_t unit;
} rows[] = {
#define MESSAGE(name, number, body, bytes, payload) { MSG_##name, sizeof(struct body), payload },
#include "base/msg.def"
};

static char packet[PACKET_MAX_BYTES * 2];
static char why[200];

static int check(enum wire_link link, uint16_t type, uint16_t version, uint32_t claimed,
		 size_t actual)
{
	struct msg_header header = {
		.type = type, .version = version, .bytes = claimed, .from_node = 7
	};
	struct message m;
	int result;

	memcpy(packet, &header, sizeof header);
	why[0] = 0;
	result = packet_check(packet, sizeof header + actual, link, &m, why, sizeof why);
	CU_ASSERT_EQUAL(result != 0, why[0] != 0);
	if (!result)
		CU_ASSERT(m.from == 7 && m.body == packet + sizeof header &&
			  m.payload == packet + sizeof header + wire_body_bytes(type) &&
			  m.payload_bytes == actual - wire_body_bytes(type));
	return result;
}

static enum wire_link some_link(uint16_t type)
{
	for (unsigned link = 0; link < LINKS; link++)
		if (wire_is_legal(link, type))
			return link;
	return LINKS;
}

static uint32_t most_of(const struct row *row)
{
	return row->kind == KIND_NONE	? 0
	       : row->kind == KIND_PAGE ? PAGE_BYTES
					: MAX_MSG_PAYLOAD / row->unit * row->unit;
}

/* A message's smallest and largest size are legal; a byte less or more is not, nor is a part of an
 * item. */
static void each_message_at_its_bounds(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		uint16_t version = (uint16_t)wire_version, type = row->type;
		enum wire_link link = some_link(type);
		uint32_t least = row->body + (row->kind == KIND_PAGE ? PAGE_BYTES : 0),
			 most = row->body + most_of(row), bounds[2];

		CU_ASSERT_STRING_NOT_EQUAL(wire_type_name(type), "?");
		CU_ASSERT_NOT_EQUAL_FATAL(link, LINKS);
		CU_ASSERT(wire_type_bounds(type, &bounds[0], &bounds[1]) == 0 &&
			  bounds[0] == least && bounds[1] == most);
		CU_ASSERT_EQUAL(wire_body_bytes(type), row->body);
		CU_ASSERT(sizeof(struct msg_header) + most <= PACKET_MAX_BYTES);
		CU_ASSERT_EQUAL(check(link, type, version, least, least), 0);
		CU_ASSERT_EQUAL(check(link, type, version, most, most), 0);
		CU_ASSERT_EQUAL(check(link, type, version, least - 1, least - 1), -EPROTO);
		CU_ASSERT_EQUAL(check(link, type, version, most + 1, most + 1), -EPROTO);
		CU_ASSERT_EQUAL(check(link, type, version, least, least + 1), -EPROTO);
		CU_ASSERT_EQUAL(check(link, type, version, least + 1, least), -EPROTO);
		CU_ASSERT_EQUAL(check(link, type, (uint16_t)(version + 1), least, least),
				-EPROTONOSUPPORT);
		if (row->kind == KIND_ARRAY)
			CU_ASSERT_EQUAL(check(link, type, version, least + row->unit - 1,
					      least + row->unit - 1),
					-EPROTO);
	}
}

static void each_message_on_each_link(void)
{
	static const enum wire_link between_nodes[] = { LINK_NODE_TO_NODE, LINK_NODE_TO_LEADER,
							LINK_LEADER_TO_NODE };
	bool known[MESSAGE_TYPES] = { false };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t least = rows[i].body + (rows[i].kind == KIND_PAGE ? PAGE_BYTES : 0);
		bool between = false;

		known[rows[i].type] = true;
		for (unsigned link = 0; link < LINKS; link++)
			CU_ASSERT_EQUAL(check(link, rows[i].type, (uint16_t)wire_version, least,
					      least),
					wire_is_legal(link, rows[i].type) ? 0 : -EPROTO);
		for (size_t n = 0; n < ARRAY_LEN(between_nodes); n++)
			between |= wire_is_legal(between_nodes[n], rows[i].type);
		CU_ASSERT_EQUAL(wire_is_legal(LINK_OVERLAY, rows[i].type), between);
	}
	for (unsigned link = 0; link <= LINKS; link++)
		for (unsigned type = 0; type < 0x10000; type++)
			if (type >= MESSAGE_TYPES || !known[type])
				CU_ASSERT_FALSE(wire_is_legal(link, (uint16_t)type));
}

/* Written by hand: the limits from which an attacker could gain something. */
static void who_may_not_say_what(void)
{
	static const struct { enum wire_link link; uint16_t type;
	} never[] = {
		{ LINK_MONITOR_TO_NODE, MSG_MACHINE_START },
		{ LINK_MONITOR_TO_NODE, MSG_IO_REPLY },
		{ LINK_MONITOR_TO_NODE, MSG_DSM_GRANT_WRITE },
		{ LINK_MONITOR_TO_NODE, MSG_CPU_GIVE },
		{ LINK_MONITOR_TO_NODE, MSG_HOST },
		{ LINK_MONITOR_TO_NODE, MSG_STREAM },
		{ LINK_MONITOR_TO_NODE, MSG_COMMAND_EXIT },
		{ LINK_MONITOR_TO_NODE, MSG_CPU_AT },
		{ LINK_IOSRV_TO_NODE, MSG_CPU_START },
		{ LINK_IOSRV_TO_NODE, MSG_PAGE_WANT },
		{ LINK_IOSRV_TO_NODE, MSG_CPU_STATE },
		{ LINK_IOSRV_TO_NODE, MSG_DEBUG },
		{ LINK_CLIENT_TO_NODE, MSG_IO_REPLY },
		{ LINK_CLIENT_TO_NODE, MSG_INTERRUPT },
		{ LINK_CLIENT_TO_NODE, MSG_CPU_STATE },
		{ LINK_CLIENT_TO_NODE, MSG_DSM_READ },
		{ LINK_NODE_TO_QUERY, MSG_STREAM },
		{ LINK_NODE_TO_IOSRV, MSG_PAGE_WANT },
		{ LINK_OVERLAY, MSG_PAGE_WANT },
		{ LINK_OVERLAY, MSG_POLICY },
	};

	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		CU_ASSERT_FALSE(wire_is_legal(never[i].link, never[i].type));
	CU_ASSERT_EQUAL(check(LINK_MONITOR_TO_NODE, MSG_IO_REPLY, (uint16_t)wire_version,
			      sizeof(struct msg_io_reply), sizeof(struct msg_io_reply)),
			-EPROTO);
	CU_ASSERT_STRING_EQUAL(why,
			       "IO_REPLY (type 5) is not a message from a monitor to its node");
}

static void what_is_no_packet(void)
{
	struct message m;

	memset(packet, 0, sizeof packet);
	for (size_t n = 0; n < sizeof(struct msg_header); n++)
		CU_ASSERT_EQUAL(packet_check(packet, n, LINK_NODE_TO_NODE, &m, why, sizeof why),
				-EPROTO);
	CU_ASSERT_EQUAL(check(LINK_NODE_TO_NODE, 0, (uint16_t)wire_version, 8, 8), -EPROTO);
	CU_ASSERT_EQUAL(check(LINK_NODE_TO_NODE, 9999, (uint16_t)wire_version, 8, 8), -EPROTO);
	CU_ASSERT_EQUAL(check(LINK_NODE_TO_NODE, 9999, (uint16_t)~wire_version, 8, 8),
			-EPROTONOSUPPORT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "another version of vmp"));
	CU_ASSERT_EQUAL(check(LINK_NODE_TO_NODE, MSG_DSM_READ, (uint16_t)wire_version, ~0u, 16),
			-EPROTO);
}

/* Between nodes: handlers count by the number of the node that says it is the sender. */
static void a_node_that_cannot_be(void)
{
	struct { struct msg_header header; struct msg_dsm body;
	} wrong = {
		.header = packet_header(MSG_DSM_READ, VNODE_DAEMON(1), MAX_NODES,
					sizeof(struct msg_dsm)),
	};
	struct message m;

	CU_ASSERT_EQUAL(packet_check(&wrong, sizeof wrong, LINK_OVERLAY, &m, why, sizeof why),
			-EPROTO);
	CU_ASSERT_STRING_EQUAL(why, "DSM_READ from node 32, which there cannot be");
	wrong.header.from_node = MAX_NODES - 1;
	CU_ASSERT_EQUAL(packet_check(&wrong, sizeof wrong, LINK_OVERLAY, &m, why, sizeof why), 0);
}

/* ---- the version ---- */

static unsigned long hash_of(const char *text)
{
	char path[] = "/tmp/wire-hash-XXXXXX", command[80];
	unsigned long hash = 0;
	int fd = mkstemp(path);
	FILE *out;

	CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	snprintf(command, sizeof command, "scripts/wire-hash %s", path);
	out = popen(command, "r");
	CU_ASSERT_FATAL(out && fscanf(out, "%lu", &hash) == 1);
	pclose(out);
	unlink(path);
	return hash;
}

/* Another field makes another version; a comment does not. */
static void what_the_version_depends_on(void)
{
	unsigned long before = hash_of("BODY(a, uint32_t b;)\n");

	CU_ASSERT(wire_version != 0 && before != 0);
	CU_ASSERT_EQUAL(
		hash_of("/* a\n * comment */\nBODY(a,\n\tuint32_t b; /* of two ** stars */\n)\n"),
		before);
	CU_ASSERT_NOT_EQUAL(hash_of("BODY(a, uint32_t b, c;)\n"), before);
	CU_ASSERT_NOT_EQUAL(hash_of("BODY(a, uint64_t b;)\n"), before);
	CU_ASSERT_NOT_EQUAL(hash_of("BODY(a, uint32_t c;)\n"), before);
}

/* ---- sockets ---- */

static struct packet_buffer buffer;

static void open_pair(int fd[2])
{
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
}

static int say(int fd, uint32_t number)
{
	struct msg_stream body = { .stream = number };
	struct msg_header header = packet_header(MSG_STREAM, VNODE_IOSRV, 3, sizeof body + 2);

	return packet_send(fd, &header, &body, sizeof body, "ab", 2, false);
}

static int hear(int fd, struct message *m)
{
	return packet_receive(fd, &buffer, LINK_NODE_TO_IOSRV, m, false, why, sizeof why);
}

static void packets_come_through(void)
{
	struct msg_stream stream;
	struct message m;
	int fd[2];

	open_pair(fd);
	CU_ASSERT_EQUAL(hear(fd[1], &m), 0);
	CU_ASSERT(say(fd[0], 1) == 0 && say(fd[0], 2) == 0);
	for (uint32_t n = 1; n <= 2; n++) {
		CU_ASSERT_EQUAL_FATAL(hear(fd[1], &m), 1);
		memcpy(&stream, m.body, sizeof stream);
		CU_ASSERT(stream.stream == n && m.from == 3 && m.payload_bytes == 2 &&
			  !memcmp(m.payload, "ab", 2));
		CU_ASSERT(m.header.to == VNODE_IOSRV && m.header.type == MSG_STREAM);
	}
	CU_ASSERT_EQUAL(packet_receive(fd[1], &buffer, LINK_NODE_TO_MONITOR, &m, false, why,
				       sizeof why),
			0);
	CU_ASSERT_EQUAL(say(fd[0], 3), 0);
	CU_ASSERT_EQUAL(packet_receive(fd[1], &buffer, LINK_NODE_TO_MONITOR, &m, false, why,
				       sizeof why),
			-EPROTO);
	CU_ASSERT(send(fd[0], packet, PACKET_MAX_BYTES + 1, 0) > 0);
	CU_ASSERT_EQUAL(hear(fd[1], &m), -EPROTO);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "longer than any message"));
	CU_ASSERT(send(fd[0], packet, 3, 0) > 0);
	CU_ASSERT_EQUAL(hear(fd[1], &m), -EPROTO);
	close(fd[0]);
	CU_ASSERT_EQUAL(hear(fd[1], &m), -EPIPE);
	CU_ASSERT_EQUAL(say(fd[1], 1), -EPIPE);
	close(fd[1]);
}

/* The other end sends something and closes without having read our messages: its last messages
 * arrive all the same. */
static void last_words_come_behind_a_reset(void)
{
	struct message m;
	int fd[2];

	open_pair(fd);
	CU_ASSERT(say(fd[1], 1) == 0 && say(fd[0], 2) == 0);
	close(fd[0]);
	CU_ASSERT_EQUAL(hear(fd[1], &m), 1);
	CU_ASSERT_EQUAL(hear(fd[1], &m), -EPIPE);
	close(fd[1]);
}

static int queue(struct packet_queue *q, int fd, size_t limit, uint32_t number)
{
	static const char page[PAGE_BYTES];
	struct msg_stream body = { .stream = number };
	struct msg_header header = packet_header(MSG_STREAM, VNODE_IOSRV, 0,
						 sizeof body + sizeof page);

	return packet_queue_send(q, fd, limit, &header, &body, sizeof body, page, sizeof page);
}

/* What the socket does not take waits, in order and up to the limit; nothing that was accepted is
 * lost. */
static void a_queue_keeps_order_and_its_limit(void)
{
	enum { LIMIT = 1 << 20 };
	struct packet_queue q = { 0 };
	uint32_t accepted = 0, came = 0;
	struct msg_stream stream;
	struct message m;
	int fd[2];

	open_pair(fd);
	while (!queue(&q, fd[0], LIMIT, accepted))
		accepted++;
	CU_ASSERT(q.bytes <= LIMIT && q.bytes > LIMIT - 2 * PAGE_BYTES &&
		  accepted > LIMIT / PAGE_BYTES / 2);
	CU_ASSERT_EQUAL(queue(&q, fd[0], LIMIT, 0), -ENOBUFS);
	CU_ASSERT_EQUAL(packet_queue_write(&q, fd[0]), -EAGAIN);
	do {
		while (hear(fd[1], &m) == 1) {
			memcpy(&stream, m.body, sizeof stream);
			CU_ASSERT_EQUAL(stream.stream, came);
			came++;
		}
	} while (packet_queue_write(&q, fd[0]) || came < accepted);
	CU_ASSERT(came == accepted && !q.first && !q.last && !q.bytes);
	close(fd[0]);
	close(fd[1]);
}

static void a_queue_for_nobody_is_forgotten(void)
{
	struct packet_queue q = { 0 };
	int fd[2];

	open_pair(fd);
	for (unsigned i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(queue(&q, fd[0], SIZE_MAX, i), 0);
	CU_ASSERT(q.bytes > 0);
	close(fd[1]);
	CU_ASSERT_EQUAL(packet_queue_write(&q, fd[0]), 0);
	CU_ASSERT(!q.first && !q.bytes);
	CU_ASSERT_EQUAL(queue(&q, fd[0], SIZE_MAX, 0), -EPIPE);
	close(fd[0]);
	open_pair(fd);
	for (unsigned i = 0; i < 1000; i++)
		queue(&q, fd[0], SIZE_MAX, i);
	packet_queue_clear(&q);
	CU_ASSERT(!q.first && !q.last && !q.bytes);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "each message at its bounds", each_message_at_its_bounds },
		{ "each message on each link", each_message_on_each_link },
		{ "who may not say what", who_may_not_say_what },
		{ "what is no packet", what_is_no_packet },
		{ "a node that cannot be", a_node_that_cannot_be },
		{ "what the version depends on", what_the_version_depends_on },
		{ "packets come through", packets_come_through },
		{ "last words come behind a reset", last_words_come_behind_a_reset },
		{ "a queue keeps order and its limit", a_queue_keeps_order_and_its_limit },
		{ "a queue for nobody is forgotten", a_queue_for_nobody_is_forgotten },
		UNIT_END
	};

	return UNIT_RUN("packet", tests);
}
