/* channel.c - messages between a monitor and its node daemon.
 *
 * The monitor speaks first and waits for the answer; what comes unasked (a dump is wanted, a step of a snapshot or of a move,
 * a debugger's request) the daemon announces by POST_MESSAGE.  A message is size-checked and copied before it is used.
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/log.h"

struct packet {
	struct msg_header header;
	uint8_t bytes[sizeof(struct msg_io_request) * 4 + MAX_MSG_PAYLOAD];
};

void channel_send(struct monitor *m, enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		  const void *payload, size_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .bytes = body_bytes + payload_bytes, .to = to,
				     .from_node = m->shm->node };
	struct iovec parts[3] = { { &header, sizeof header }, { (void *)body, body_bytes },
				  { (void *)payload, payload_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = payload_bytes ? 3 : 2 };

	while (sendmsg(m->channel, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			exit(EXIT_VMP_FAILURE); /* the daemon is gone, and with it the machine */
}

/* One packet; false: none (only if !wait). */
static bool receive(struct monitor *m, struct packet *p, bool wait)
{
	uint32_t least, most;
	ssize_t n;

	do
		n = recv(m->channel, p, sizeof *p, wait ? 0 : MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (n <= 0)
		exit(EXIT_VMP_FAILURE);
	if ((size_t)n < sizeof p->header || p->header.version != WIRE_VERSION ||
	    (size_t)n != sizeof p->header + p->header.bytes || wire_type_bounds(p->header.type, &least, &most) ||
	    p->header.bytes < least || p->header.bytes > most)
		bug("a message from the daemon is malformed (type %u, %zd bytes)", p->header.type, n);
	return true;
}

/* Serve a message that nobody waits for. */
static void on_unasked(struct monitor *m, const struct packet *p)
{
	struct msg_dump dump;
	struct msg_snapshot snapshot;
	struct msg_debug debug;

	switch (p->header.type) {
	case MSG_DUMP_REQUEST: /* later, from the loop: registers and pins are at rest there */
		memcpy(&dump, p->bytes, sizeof dump);
		m->dump_wanted = true;
		m->dump_seq = dump.seq;
		if (m->handover.frozen || m->debug.standing)
			send_dump(m);
		return;
	case MSG_CPU_GIVE: /* from the loop, too */
		m->handover.give_wanted = true;
		return;
	case MSG_CPU_STATE:
		memcpy(&m->handover.arrived, p->bytes, sizeof m->handover.arrived);
		m->handover.payload_bytes = p->header.bytes - sizeof m->handover.arrived;
		if (m->handover.payload_bytes > sizeof m->handover.payload)
			m->handover.payload_bytes = 0;
		memcpy(m->handover.payload, p->bytes + sizeof m->handover.arrived, m->handover.payload_bytes);
		return;
	case MSG_SNAPSHOT:
		memcpy(&snapshot, p->bytes, sizeof snapshot);
		freeze_on_step(m, &snapshot);
		return;
	case MSG_SNAPSHOT_ITEM:
		freeze_load(m, p->bytes + sizeof(struct msg_snapshot_item), p->header.bytes - sizeof(struct msg_snapshot_item));
		return;
	case MSG_DEBUG:
		memcpy(&debug, p->bytes, sizeof debug);
		debug_on_request(m, &debug, p->bytes + sizeof debug, p->header.bytes - sizeof debug);
		return;
	case MSG_HELLO:
		return;
	default:
		log_warn("CPU %u: unexpected message %s", m->cpu, wire_type_name(p->header.type));
	}
}

void channel_wait(struct monitor *m, enum msg_type type, void *body, size_t body_bytes, void *payload,
		  size_t payload_room, size_t *payload_bytes)
{
	struct packet p;
	size_t extra;

	for (;;) {
		receive(m, &p, true);
		if (p.header.type == type)
			break;
		on_unasked(m, &p);
	}
	memcpy(body, p.bytes, body_bytes);
	extra = p.header.bytes - body_bytes;
	if (extra > payload_room)
		extra = payload_room;
	if (extra)
		memcpy(payload, p.bytes + body_bytes, extra);
	if (payload_bytes)
		*payload_bytes = extra;
}

void channel_serve(struct monitor *m)
{
	struct packet p;

	receive(m, &p, true);
	on_unasked(m, &p);
}

void channel_drain(struct monitor *m)
{
	struct packet p;

	while (receive(m, &p, false))
		on_unasked(m, &p);
}
