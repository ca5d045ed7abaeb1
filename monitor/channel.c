/* channel.c - messages between a monitor and its node daemon.
 *
 * The monitor sends a request and waits for the reply.  The daemon announces unrequested messages
 * (a request for a dump, a step of a snapshot or of a move, a debugger's request) by POST_MESSAGE.
 * base/packet.h checks a message before it is used.
 */
#include "monitor/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

void channel_send(struct monitor *m, enum msg_type type, vnode_t to, const void *body,
		  size_t body_bytes, const void *payload, size_t payload_bytes)
{
	struct msg_header header = packet_header(type, to, m->shm->node,
						 (uint32_t)(body_bytes + payload_bytes));

	if (packet_send(m->channel, &header, body, (uint32_t)body_bytes, payload,
			(uint32_t)payload_bytes, true))
		exit(EXIT_VMP_FAILURE); /* the daemon has ended, and the machine with it */
}

/* Receive one message.  False: there is none (only if !wait). */
static bool receive(struct monitor *m, struct packet_buffer *buffer, struct message *message,
		    bool wait)
{
	char why[200];
	int result = packet_receive(m->channel, buffer, LINK_NODE_TO_MONITOR, message, wait, why,
				    sizeof why);

	if (result == -EPROTO || result == -EPROTONOSUPPORT)
		bug("a message from the daemon breaks the rules: %s", why);
	if (result < 0)
		exit(EXIT_VMP_FAILURE);
	return result;
}

/* --- unrequested messages --------------------------------------------------------------------- */

/* Record a request for a dump.  The loop serves it, when registers are complete and no page is
 * pinned. */
void channel_on_dump_request(struct monitor *m, const struct message *message,
			     const struct msg_dump *dump)
{
	(void)message;
	m->dump_wanted = true;
	m->dump_seq = dump->seq;
	if (m->handover.frozen || m->debug.standing)
		send_dump(m);
}

/* The same for a page.  One of too many is answered with nothing. */
void channel_on_frame_request(struct monitor *m, const struct message *message,
			     const struct msg_frame *frame)
{
	(void)message;
	if (m->frames == ARRAY_LEN(m->frame))
		channel_send(m, MSG_FRAME, VNODE_CLI, frame, sizeof *frame, NULL, 0);
	else
		m->frame[m->frames++] = *frame;
	if (m->handover.frozen || m->debug.standing)
		send_frames(m);
}

/* Record a request to give the CPU away; the loop serves it, too. */
void channel_on_give(struct monitor *m, const struct message *message,
		     const struct msg_cpu_handover *move)
{
	(void)message, (void)move;
	m->handover.give_wanted = true;
}

void channel_on_state(struct monitor *m, const struct message *message,
		      const struct msg_cpu_state *state)
{
	m->handover.arrived = *state;
	m->handover.payload_bytes = message->payload_bytes;
	if (m->handover.payload_bytes > sizeof m->handover.payload)
		m->handover.payload_bytes = 0;
	memcpy(m->handover.payload, message->payload, m->handover.payload_bytes);
}

static bool dispatch(struct monitor *monitor, const struct message *m)
{
	switch (m->header.type) {
#define NODE_TO_MONITOR(name, how, handler) SERVE_##how(monitor, m, name, handler)
#include "base/msg.def"
	}
	return false;
}

static void on_unasked(struct monitor *m, const struct message *message)
{
	if (!dispatch(m, message))
		log_warn("CPU %u: %s arrived, which nobody waits for", m->cpu,
			 wire_type_name(message->header.type));
}

/* --- waiting ---------------------------------------------------------------------------------- */

void channel_wait(struct monitor *m, enum msg_type type, void *body, size_t body_bytes,
		  void *payload, size_t payload_room, size_t *payload_bytes)
{
	struct packet_buffer buffer;
	struct message message;
	size_t extra;

	for (;;) {
		receive(m, &buffer, &message, true);
		if (message.header.type == type)
			break;
		on_unasked(m, &message);
	}
	bug_on(body_bytes != wire_body_bytes(type));
	memcpy(body, message.body, body_bytes);
	extra = message.payload_bytes;
	if (extra > payload_room)
		extra = payload_room;
	if (extra)
		memcpy(payload, message.payload, extra);
	if (payload_bytes)
		*payload_bytes = extra;
}

void channel_serve(struct monitor *m)
{
	struct packet_buffer buffer;
	struct message message;

	receive(m, &buffer, &message, true);
	on_unasked(m, &message);
}

void channel_drain(struct monitor *m)
{
	struct packet_buffer buffer;
	struct message message;

	while (receive(m, &buffer, &message, false))
		on_unasked(m, &message);
}
