/* agent.c - the agent's device of base/guest_abi.h: `vmp exec` on one side, the guest's agent on
 * the other, and their frames (base/agent_abi.h) in between.
 *
 * The server gives each `vmp exec` a session number that the guest has not seen before.  What the
 * guest sends is a stream of bytes that anybody in the guest may have written: a frame is passed on
 * only if it is whole, of a kind that the agent may send, for a session that is open, and within
 * the session's window.  The first frame that breaks the format closes the device for good.
 *
 * A machine that was loaded, or has returned to a checkpoint, has lost the other ends of its
 * sessions.  AGENT_RESET makes the agent end them.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/agent_abi.h"
#include "base/guest_abi.h"
#include "base/log.h"

enum {
	HEAD = sizeof(struct agent_frame),
	REGISTERS = 16,
	IN_BYTES = 98304, /* the windows of all sessions, and frames that no window pays for */
	IN_KEPT = HEAD * (AGENT_SESSIONS + 1), /* of these, for AGENT_HANGUP and AGENT_RESET */
	OUT_BYTES = 2 * AGENT_FRAME_MAX,
};

#define STATE(X)                                                                              \
	X(bool, armed, [VMP_AGENT_COUNT], 0, 1)                                               \
	X(bool, broken, , 0, 1)				/* the guest has sent nonsense */     \
	X(uint32_t, last, , 0, UINT32_MAX)		/* the last session's number */       \
	X(uint32_t, head, , 0, IN_BYTES - 1)		/* where the oldest byte of `in` is */ \
	X(uint32_t, count, , 0, IN_BYTES)		/* bytes in `in` */                   \
	X(uint32_t, collected, , 0, OUT_BYTES)		/* bytes in `out`: a part of a frame */ \
	X(uint8_t, in, [IN_BYTES], 0, 0xff)                                                   \
	X(uint8_t, out, [OUT_BYTES], 0, 0xff)
static struct state { STATE(CHIPSTATE_MEMBER) } agent;

/* Not saved: a loaded machine has no sessions. */
static struct session {
	uint32_t id; /* 0: none */
	uint32_t client, token;
	uint32_t room[2]; /* of output, and of error */
} session[AGENT_SESSIONS];

static void agent_reset(void)
{
	memset(&agent, 0, sizeof agent);
	memset(session, 0, sizeof session);
}

static uint32_t status(unsigned stream)
{
	return stream == 0 ? agent.count : OUT_BYTES - agent.collected;
}

/* Raise one edge if the stream is armed and its status is not 0. */
static void tell(unsigned stream)
{
	if (!agent.armed[stream] || !status(stream))
		return;
	agent.armed[stream] = false;
	iosrv_raise(VMP_AGENT_IRQ);
}

/* --- towards the agent ---------------------------------------------------------------- */

static void put(const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	for (size_t i = 0; i < n; i++)
		agent.in[(agent.head + agent.count++) % IN_BYTES] = from[i];
}

/* Append a frame to `in`.  False: there is no room.  `keeps`: the bytes that must stay free. */
static bool send_frame(uint32_t id, enum agent_kind kind, uint32_t value, const void *bytes,
		       size_t n, size_t keeps)
{
	struct agent_frame frame = { id, (uint16_t)kind, (uint16_t)n, value };

	if (agent.broken || HEAD + n + keeps > IN_BYTES - agent.count)
		return false;
	put(&frame, sizeof frame);
	put(bytes, n);
	tell(0);
	return true;
}

/* --- towards `vmp exec` ---------------------------------------------------------------- */

static void pass_on(const struct session *s, enum agent_kind kind, uint32_t value,
		    const void *bytes, size_t n)
{
	struct msg_exec body = { s->client, s->token, kind, value };

	iosrv_send(MSG_EXEC, VNODE_CLI, &body, sizeof body, bytes, n);
}

static void refuse(struct session *s, const char *why)
{
	pass_on(s, AGENT_REFUSED, 0, why, strlen(why));
	*s = (struct session){ 0 };
}

static void hang_up(struct session *s)
{
	send_frame(s->id, AGENT_HANGUP, 0, NULL, 0, HEAD);
	*s = (struct session){ 0 };
}

static struct session *find_id(uint32_t id)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (id && session[i].id == id)
			return &session[i];
	return NULL;
}

static struct session *find_client(uint32_t client)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (session[i].id && session[i].client == client)
			return &session[i];
	return NULL;
}

/* Open a session.  NULL: there are too many. */
static struct session *open_session(uint32_t client, uint32_t token)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (!session[i].id) {
			agent.last += agent.last == UINT32_MAX ? 2 : 1; /* 0 is no number */
			session[i] = (struct session){ agent.last, client, token,
						       { AGENT_OUT_WINDOW, AGENT_OUT_WINDOW } };
			return &session[i];
		}
	return NULL;
}

/* --- from the agent -------------------------------------------------------------------- */

/* End all sessions: the guest's agent has ended, or the writer to its device is no agent. */
static void give_up(const char *why)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (session[i].id)
			refuse(&session[i], why);
	agent.collected = 0;
}

static void on_output(struct session *s, const struct agent_frame *frame, const uint8_t *bytes)
{
	uint32_t *room = &s->room[frame->kind == AGENT_ERROR];

	if (frame->bytes > *room) {
		uint32_t id = s->id;

		refuse(s, "the guest's agent sent more output than it may");
		send_frame(id, AGENT_HANGUP, 0, NULL, 0, HEAD);
		return;
	}
	*room -= frame->bytes;
	pass_on(s, frame->kind, 0, bytes, frame->bytes);
}

static void on_frame(const struct agent_frame *frame, const uint8_t *bytes)
{
	struct session *s = find_id(frame->session);

	if (!s)
		return; /* the session has been closed meanwhile */
	switch (frame->kind) {
	case AGENT_OUTPUT:
	case AGENT_ERROR:
		on_output(s, frame, bytes);
		return;
	case AGENT_TAKEN:
	case AGENT_STARTED:
		pass_on(s, frame->kind, frame->value, NULL, 0);
		return;
	case AGENT_EXIT:
		pass_on(s, AGENT_EXIT, frame->value, NULL, 0);
		*s = (struct session){ 0 };
		return;
	default:
		return; /* an agent sends no other kind */
	}
}

/* Handle the complete frames of the collected bytes. */
static void take_frames(void)
{
	uint32_t at = 0;
	struct agent_frame frame;

	while (agent.collected - at >= HEAD) {
		memcpy(&frame, agent.out + at, HEAD);
		if (frame.bytes > AGENT_PAYLOAD) {
			agent.broken = true;
			give_up("the guest's agent sent nonsense");
			return;
		}
		if (agent.collected - at < (uint32_t)HEAD + frame.bytes)
			break;
		on_frame(&frame, agent.out + at + HEAD);
		at += HEAD + frame.bytes;
	}
	agent.collected -= at;
	memmove(agent.out, agent.out + at, agent.collected);
}

/* --- the registers --------------------------------------------------------------------- */

static unsigned read_input(void *data, unsigned bytes)
{
	uint8_t *to = data;
	unsigned n = bytes < agent.count ? bytes : agent.count;

	for (unsigned i = 0; i < n; i++)
		to[i] = agent.in[(agent.head + i) % IN_BYTES];
	agent.head = (agent.head + n) % IN_BYTES;
	agent.count -= n;
	return n;
}

static void write_output(const void *data, unsigned bytes)
{
	if (agent.broken)
		return;
	if (bytes > OUT_BYTES - agent.collected) /* the driver asked first; more is its fault */
		bytes = OUT_BYTES - agent.collected;
	memcpy(agent.out + agent.collected, data, bytes);
	agent.collected += bytes;
	take_frames();
}

static uint32_t agent_read(uint32_t offset, unsigned size)
{
	unsigned stream = offset / REGISTERS;
	uint32_t value = 0;

	switch (offset % REGISTERS) {
	case VMP_STREAM_DATA:
		if (stream == 0)
			read_input(&value, size);
		return value;
	case VMP_STREAM_STATUS:
		return status(stream);
	default:
		return 0;
	}
}

static void agent_write(uint32_t offset, unsigned size, uint32_t value)
{
	unsigned stream = offset / REGISTERS;

	switch (offset % REGISTERS) {
	case VMP_STREAM_DATA:
		if (stream)
			write_output(&value, size);
		return;
	case VMP_STREAM_IRQ_ENABLE:
		agent.armed[stream] = value;
		tell(stream);
		return;
	case VMP_STREAM_CLOSE:
		give_up("the guest's agent has ended");
		return;
	}
}

static unsigned agent_read_string(uint32_t offset, unsigned size, unsigned count, void *data)
{
	return offset == VMP_STREAM_DATA ? read_input(data, size * count) / size : 0;
}

static void agent_write_string(uint32_t offset, unsigned size, unsigned count, const void *data)
{
	if (offset == REGISTERS + VMP_STREAM_DATA)
		write_output(data, size * count);
}

/* --- from `vmp exec` ------------------------------------------------------------------- */

static void add_room(struct session *s, unsigned which, uint32_t bytes)
{
	uint32_t most = AGENT_OUT_WINDOW - s->room[which];

	s->room[which] += bytes < most ? bytes : most;
}

/* Return the session of a message; the first message opens it.  NULL: there is none. */
static struct session *session_of(const struct msg_exec *body)
{
	struct session *s = find_client(body->client);
	struct session none = { .client = body->client, .token = body->token };

	if (s && s->token != body->token) {
		hang_up(s);
		s = NULL;
	}
	if (s || (body->kind != AGENT_SPEC && body->kind != AGENT_START &&
		  body->kind != AGENT_RESIZE))
		return s;
	s = agent.broken ? NULL : open_session(body->client, body->token);
	if (!s)
		refuse(&none, agent.broken ?
		       "the guest's agent sent nonsense before" :
		       "too many commands of `vmp exec` run in this machine already");
	return s;
}

void agent_request(const struct msg_exec *body, const void *bytes, size_t n)
{
	struct session *s;

	if (body->kind < AGENT_SPEC || body->kind > AGENT_HANGUP || n > AGENT_PAYLOAD)
		return; /* `vmp exec` sends no such message */
	if (body->kind == AGENT_HANGUP) {
		s = find_client(body->client);
		if (s)
			hang_up(s);
		return;
	}
	s = session_of(body);
	if (!s)
		return;
	if (body->kind == AGENT_ROOM_OUT || body->kind == AGENT_ROOM_ERR)
		add_room(s, body->kind == AGENT_ROOM_ERR, body->value);
	if (!send_frame(s->id, body->kind, body->value, bytes, n, IN_KEPT)) {
		uint32_t id = s->id;

		refuse(s, "the guest's agent does not read what it is sent");
		send_frame(id, AGENT_HANGUP, 0, NULL, 0, HEAD);
	}
}

static void agent_restored(void)
{
	memset(session, 0, sizeof session);
	send_frame(0, AGENT_RESET, 0, NULL, 0, 0);
	tell(1);
}

const struct chip agent_chip = {
	.name = "agent", .range = { { VMP_AGENT_PORT, VMP_AGENT_COUNT * REGISTERS } },
	.reset = agent_reset, .read = agent_read, .write = agent_write,
	.read_string = agent_read_string, .write_string = agent_write_string,
	.state = CHIPSTATE(agent), .restored = agent_restored,
};
