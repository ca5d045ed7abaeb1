/* streams.c - see streams.h. */
#include "vmm/streams.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"

static void wait_for_input(struct stream_in *in)
{
	if (!in->ended && in->room)
		event_add(in->event, NULL);
}

static void send_input(struct stream_in *in, const char *bytes, size_t n, bool eof)
{
	struct msg_stream body = { .stream = 0, .eof = eof };

	client_send(in->client, MSG_STREAM, VNODE_IOSRV, &body, sizeof body, bytes, n);
	in->room -= n;
	in->ended |= eof;
}

static void on_input(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval soon = { 0, 300000 };
	struct stream_in *in = context;
	char bytes[MAX_MSG_PAYLOAD];
	ssize_t n;

	(void)events;
	if (!client_idle(in->client)) { /* the daemon is slow: look again later */
		static const struct timeval moment = { 0, 2000 };

		event_add(in->retry, &moment);
		return;
	}
	n = read(fd, bytes, in->room < sizeof bytes ? in->room : sizeof bytes);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || (errno == EIO && isatty(fd)))) {
		/* EIO: a terminal that another job uses now (SIGTTIN is ignored) */
		event_add(in->retry, &soon);
		return;
	}
	send_input(in, bytes, n > 0 ? n : 0, n <= 0);
	wait_for_input(in);
}

int stream_in_start(struct stream_in *in, struct client *client, uint32_t room)
{
	*in = (struct stream_in){ .client = client, .room = room };
	in->event = event_new(client->base, 0, EV_READ, on_input, in);
	in->retry = event_new(client->base, 0, EV_TIMEOUT, on_input, in);
	if (!in->event || !in->retry)
		return -ENOMEM;
	wait_for_input(in);
	return 0;
}

void stream_in_room(struct stream_in *in, uint32_t bytes)
{
	if (bytes > STREAM_WINDOW - in->room)
		bytes = STREAM_WINDOW - in->room;
	in->room += bytes;
	wait_for_input(in);
}

void stream_in_stop(struct stream_in *in)
{
	if (in->event)
		event_free(in->event);
	if (in->retry)
		event_free(in->retry);
	*in = (struct stream_in){ 0 };
}

static void acknowledge(struct stream_out *out, uint32_t n)
{
	struct msg_stream_room room = { .stream = out->stream, .bytes = n };

	client_send(out->client, MSG_STREAM_ROOM, VNODE_IOSRV, &room, sizeof room, NULL, 0);
}

/* The reader has gone (`vmp run -- yes | head`): tell the guest, whose writers get EPIPE, and drop the rest. */
static void on_reader_gone(struct stream_out *out)
{
	struct msg_stream body = { .stream = out->stream, .eof = 1 };

	client_send(out->client, MSG_STREAM, VNODE_IOSRV, &body, sizeof body, NULL, 0);
	out->broken = true;
	out->n = 0;
}

/* Writes at most PIPE_BUF bytes after poll() has promised room for them: the descriptor stays a blocking one, since its
 * flags are shared with other processes. */
static void on_output(evutil_socket_t fd, short events, void *context)
{
	struct stream_out *out = context;

	(void)events;
	while (out->n) {
		struct pollfd pollfd = { .fd = fd, .events = POLLOUT };
		uint32_t part = out->n < PIPE_BUF ? out->n : PIPE_BUF;
		ssize_t n;

		if (part > STREAM_WINDOW - out->at)
			part = STREAM_WINDOW - out->at;
		if (poll(&pollfd, 1, 0) == 0)
			break;
		n = write(fd, out->bytes + out->at, part);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			on_reader_gone(out);
			break;
		}
		out->at = (out->at + n) % STREAM_WINDOW;
		out->n -= n;
		acknowledge(out, n);
	}
	if (out->n)
		event_add(out->event, NULL);
	else if (out->on_drained)
		out->on_drained(out->context);
}

int stream_out_start(struct stream_out *out, struct client *client, uint32_t stream, int fd)
{
	out->client = client;
	out->stream = stream;
	out->fd = fd;
	out->at = out->n = 0;
	out->broken = false;
	out->event = event_new(client->base, fd, EV_WRITE, on_output, out);
	return out->event ? 0 : -ENOMEM;
}

bool stream_out_take(struct stream_out *out, const void *bytes, size_t n)
{
	size_t end = (out->at + out->n) % STREAM_WINDOW, first = n;

	if (out->broken) {
		acknowledge(out, n);
		return true;
	}
	if (n > STREAM_WINDOW - out->n)
		return false;
	if (first > STREAM_WINDOW - end)
		first = STREAM_WINDOW - end;
	memcpy(out->bytes + end, bytes, first);
	memcpy(out->bytes, (const char *)bytes + first, n - first);
	out->n += n;
	on_output(out->fd, 0, out);
	return true;
}

bool stream_out_drained(const struct stream_out *out)
{
	return out->n == 0;
}

void stream_out_stop(struct stream_out *out)
{
	if (out->event)
		event_free(out->event);
	out->event = NULL;
}
