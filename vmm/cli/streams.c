/* streams.c - see streams.h. */
#include "vmm/cli/streams.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/log.h"

enum { HELD_MUCH = HELD_MAX / 4 };

/* Appends `count` bytes to a buffer that grows. */
static void append(char **bytes, size_t *n, size_t *room, const void *more, size_t count)
{
	while (*n + count > *room) {
		*room = *room ? *room * 2 : STREAM_WINDOW;
		*bytes = realloc(*bytes, *room);
		if (!*bytes)
			die("no memory");
	}
	if (count)
		memcpy(*bytes + *n, more, count);
	*n += count;
}

static void drop_first(char *bytes, size_t *n, size_t count)
{
	*n -= count;
	if (*n)
		memmove(bytes, bytes + count, *n);
}

/* ---- input ---- */

static void wait_for_input(struct stream_in *in)
{
	if (!in->event || !in->room)
		return;
	if (in->again < in->n_sent)
		loop_after(in->retry, 0);
	else if (!in->ended)
		loop_watch(in->event);
}

static void send_input(struct stream_in *in, const char *bytes, size_t n, bool eof)
{
	struct msg_stream body = { .stream = 0, .eof = eof };

	if (in->wire)
		in->wire->input(in, bytes, n, eof);
	else
		client_send(in->client, MSG_STREAM, VNODE_IOSRV, &body, sizeof body, bytes, n);
	in->room -= n;
	in->ended |= eof;
}

/* Sends input again that the machine lost when it went back to a checkpoint. */
static void send_again(struct stream_in *in)
{
	size_t left = in->n_sent - in->again, n = left < in->room ? left : in->room;

	if (n > MAX_MSG_PAYLOAD)
		n = MAX_MSG_PAYLOAD;
	send_input(in, in->sent + in->again, n, in->ended && n == left);
	in->again += n;
}

static void read_input(struct stream_in *in)
{
	struct pollfd pollfd = { .fd = in->fd, .events = POLLIN };
	char bytes[MAX_MSG_PAYLOAD];
	ssize_t n;

	/* another process may have read the input while the daemon was slow */
	if (poll(&pollfd, 1, 0) == 0) {
		wait_for_input(in);
		return;
	}
	n = read(in->fd, bytes, in->room < sizeof bytes ? in->room : sizeof bytes);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || (errno == EIO && isatty(in->fd)))) {
		/* EIO: a terminal that another job uses now (SIGTTIN is ignored) */
		loop_after(in->retry, 300 * LOOP_MS);
		return;
	}
	if (n > 0 && !in->keeps) {
		in->base += (uint32_t)(in->n_sent + n); /* all earlier bytes have been sent */
		in->n_sent = in->again = 0;
	} else if (n > 0) {
		append(&in->sent, &in->n_sent, &in->sent_room, bytes, n);
		in->again = in->n_sent;
	}
	send_input(in, bytes, n > 0 ? n : 0, n <= 0);
	wait_for_input(in);
}

static void on_input(void *context)
{
	struct stream_in *in = context;

	if (!client_has_room(in->client)) { /* the daemon is slow: try again later */
		loop_after(in->retry, 2 * LOOP_MS);
	} else if (in->again < in->n_sent && in->room) {
		send_again(in);
		wait_for_input(in);
	} else if (!in->ended && in->room) {
		read_input(in);
	}
}

int stream_in_start(struct stream_in *in, struct client *client, uint32_t taken, uint32_t room)
{
	*in = (struct stream_in){
		.client = client, .wire = in->wire, .fd = in->fd, .room = room,
		.keeps = in->keeps, .base = taken
	};
	in->event = loop_add(&client->loop, LOOP_READ_ONCE, in->fd, on_input, in);
	in->retry = loop_add(&client->loop, LOOP_TIMER, -1, on_input, in);
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
	if (!in->keeps)
		stream_in_free(in);
	else if (in->event)
		stream_in_lost(in);
}

void stream_in_free(struct stream_in *in)
{
	loop_remove(in->event);
	loop_remove(in->retry);
	free(in->sent);
	*in = (struct stream_in){ .wire = in->wire, .fd = in->fd, .keeps = in->keeps };
}

void stream_in_mark(struct stream_in *in) { in->mark = in->again; }

void stream_in_kept(struct stream_in *in)
{
	drop_first(in->sent, &in->n_sent, in->mark);
	in->again -= in->mark;
	in->base += in->mark;
	in->mark = 0;
}

void stream_in_lost(struct stream_in *in)
{
	if (!in->event)
		return;
	loop_disarm(in->event);
	loop_disarm(in->retry);
	in->room = 0;
}

void stream_in_again(struct stream_in *in, uint32_t taken, uint32_t room)
{
	struct msg_stream end = { .stream = 0, .eof = 1 };
	uint32_t known = taken - in->base;

	in->again = known < in->n_sent ? known : in->n_sent;
	in->mark = 0;
	in->room = room;
	if (in->ended && in->again == in->n_sent)
		client_send(in->client, MSG_STREAM, VNODE_IOSRV, &end, sizeof end, NULL, 0);
	wait_for_input(in);
}

/* ---- output ---- */

/* Returns how many bytes may be acknowledged: those that are written or, with `holds`, those that
 * are held in this process's memory. */
static uint32_t room_of(const struct stream_out *out)
{
	if (out->holds)
		return out->n <= HELD_MAX - STREAM_WINDOW ? out->owed : 0;
	/* `n` exceeds `owed` if output was held before */
	return out->owed > out->n ? out->owed - (uint32_t)out->n : 0;
}

static void acknowledge(struct stream_out *out)
{
	struct msg_stream_room room = { .stream = out->stream, .bytes = room_of(out) };

	if (!room.bytes)
		return;
	if (out->wire)
		out->wire->room(out, out->stream, room.bytes);
	else
		client_send(out->client, MSG_STREAM_ROOM, VNODE_IOSRV, &room, sizeof room, NULL, 0);
	out->owed -= room.bytes;
}

/* Handles the loss of the reader, as in `vmp run -- yes | head`: notifies the guest, whose writers
 * get EPIPE, and drops the rest. */
static void on_reader_gone(struct stream_out *out)
{
	struct msg_stream body = { .stream = out->stream, .eof = 1 };

	if (out->wire)
		out->wire->gone(out, out->stream);
	else
		client_send(out->client, MSG_STREAM, VNODE_IOSRV, &body, sizeof body, NULL, 0);
	out->broken = true;
	out->n = out->ready = out->cut = 0;
}

/* Handles a failed write.  Only a pipe, a socket or a terminal (EIO) has a reader that can go away.
 * In all other cases output is lost, and on_failed() reports it. */
static void on_write_error(struct stream_out *out, int error)
{
	static const char *const names[] = { [1] = "output", [2] = "error" };
	struct stat file;
	bool device = !fstat(out->fd, &file) && S_ISCHR(file.st_mode);

	on_reader_gone(out);
	if (error != EPIPE && error != ECONNRESET && !(error == EIO && device) && out->on_failed)
		out->on_failed(out->context, names[out->stream], error);
}

static void written(struct stream_out *out, size_t n)
{
	drop_first(out->bytes, &out->n, n);
	out->ready -= n;
	out->cut -= out->cut < n ? out->cut : n;
}

/* Writes at most PIPE_BUF bytes at a time, after poll() has promised room for them.  The descriptor
 * stays a blocking one, since other processes share its flags. */
static void on_output(void *context)
{
	struct stream_out *out = context;
	size_t at = 0;

	while (at < out->ready) {
		struct pollfd pollfd = { .fd = out->fd, .events = POLLOUT };
		size_t part = out->ready - at < PIPE_BUF ? out->ready - at : PIPE_BUF;
		ssize_t n;

		if (poll(&pollfd, 1, 0) == 0)
			break;
		n = write(out->fd, out->bytes + at, part);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			at = 0;
			on_write_error(out, errno);
			break;
		}
		at += n;
	}
	written(out, at);
	acknowledge(out);
	if (out->ready)
		loop_watch(out->event);
	else if (out->on_drained)
		out->on_drained(out->context);
}

int stream_out_start(struct stream_out *out, struct client *client, uint32_t stream, int fd)
{
	*out = (struct stream_out){
		.client = client, .stream = stream, .fd = fd, .holds = out->holds
	};
	out->event = loop_add(&client->loop, LOOP_WRITE_ONCE, fd, on_output, out);
	return out->event ? 0 : -ENOMEM;
}

bool stream_out_take(struct stream_out *out, const void *bytes, size_t n)
{
	if (n > STREAM_WINDOW - out->owed)
		return false;
	out->owed += n;
	if (!out->broken)
		append(&out->bytes, &out->n, &out->room, bytes, n);
	if (!out->holds)
		out->ready = out->n;
	on_output(out);
	if (out->n - out->ready > HELD_MUCH && out->on_much)
		out->on_much(out->context);
	return true;
}

bool stream_out_drained(const struct stream_out *out) { return out->n == 0; }

void stream_out_stop(struct stream_out *out)
{
	loop_remove(out->event);
	out->event = NULL;
	free(out->bytes);
	out->bytes = NULL;
	out->n = out->ready = 0;
}

void stream_out_mark(struct stream_out *out) { out->cut = out->n; }

void stream_out_kept(struct stream_out *out)
{
	if (out->ready < out->cut)
		out->ready = out->cut;
	on_output(out);
}

void stream_out_release(struct stream_out *out)
{
	out->ready = out->n;
	on_output(out);
}

void stream_out_hold(struct stream_out *out, bool holds)
{
	out->holds = holds;
	if (!holds)
		stream_out_release(out);
}

void stream_out_lost(struct stream_out *out)
{
	out->n = out->ready;
	out->cut = out->owed = 0;
}

void stream_out_again(struct stream_out *out)
{
	if (out->broken)
		on_reader_gone(out);
}
