/* ssh_streams.c - see ssh_streams.h. */
#include "vmm/cli/cluster/ssh_streams.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MOST_INPUT: bytes that wait for their reader; what comes then waits in the pipe, so that a host
 * cannot fill this computer's memory.  A pipe holds no more than AT_THE_END. */
enum { MOST_INPUT = 1 << 20, AT_THE_END = 128 << 10 };

static void close_stream(struct bufferevent **stream)
{
	if (!*stream)
		return;
	/* In its own callback the stream is freed only after the callback; by then its descriptor
	 * could be another file's.  So it is closed here. */
	bufferevent_disable(*stream, EV_READ | EV_WRITE);
	close(bufferevent_getfd(*stream));
	bufferevent_free(*stream);
	*stream = NULL;
}

void ssh_streams_close(struct ssh_streams *s)
{
	close_stream(&s->to);
	close_stream(&s->from);
	close_stream(&s->err);
	s->pid = 0;
}

static void on_bytes(struct bufferevent *from, void *context)
{
	struct ssh_streams *s = context;
	struct evbuffer *input = bufferevent_get_input(from);

	s->on_bytes(s->context, input);
	if (s->from != from || evbuffer_get_length(input) < MOST_INPUT)
		return;
	/* with a watermark, libevent would call this again and again */
	s->is_full = true;
	bufferevent_disable(from, EV_READ);
}

static void on_taken(struct evbuffer *input, const struct evbuffer_cb_info *info, void *context)
{
	struct ssh_streams *s = context;

	(void)info;
	if (!s->from || !s->is_full || evbuffer_get_length(input) >= MOST_INPUT)
		return;
	s->is_full = false;
	bufferevent_enable(s->from, EV_READ);
}

static void on_room(struct bufferevent *to, void *context)
{
	struct ssh_streams *s = context;

	(void)to;
	s->on_room(s->context);
}

static void on_errors(struct bufferevent *err, void *context)
{
	struct ssh_streams *s = context;
	struct evbuffer *input = bufferevent_get_input(err);
	char *line;

	while ((line = evbuffer_readln(input, NULL, EVBUFFER_EOL_LF))) {
		if (s->log_fd >= 0)
			dprintf(s->log_fd, "%s\n", line);
		if (*line && strncmp(line, "Warning: Permanently added", 26))
			snprintf(s->said, sizeof s->said, "%s", line);
		free(line);
	}
	evbuffer_drain(input,
		       evbuffer_get_length(input) > SSH_LINE ? evbuffer_get_length(input) : 0);
}

/* Reads what has arrived and is not read yet; not what somebody sends for ever. */
static void read_rest(struct bufferevent *stream)
{
	struct evbuffer *input = bufferevent_get_input(stream);
	int n, left = AT_THE_END;

	evbuffer_unfreeze(input, false); /* in its own callback the buffer is frozen */
	while (left > 0 && (n = evbuffer_read(input, bufferevent_getfd(stream), left)) > 0)
		left -= n;
	evbuffer_freeze(input, false);
}

/* When a command has ended, the end of any of its streams may be seen first. */
static void on_end(struct bufferevent *stream, short what, void *context)
{
	struct ssh_streams *s = context;

	(void)what;
	if (stream == s->err) {
		bufferevent_disable(stream, EV_READ);
		return;
	}
	read_rest(s->err);
	on_errors(s->err, s);
	if (stream == s->to) {
		read_rest(s->from);
		on_bytes(s->from, s);
	}
	if (stream == s->to || stream == s->from)
		s->on_end(s->context);
}

static struct bufferevent *open_stream(struct ssh_streams *s, int fd, bufferevent_data_cb on_read,
				       bufferevent_data_cb on_write)
{
	struct bufferevent *stream = bufferevent_socket_new(s->base, fd, 0);

	if (!stream) {
		close(fd);
		return NULL;
	}
	bufferevent_setcb(stream, on_read, on_write, on_end, s);
	bufferevent_setwatermark(stream, EV_WRITE, s->low_bytes, 0);
	return bufferevent_enable(stream, on_read ? EV_READ : EV_WRITE) ? NULL : stream;
}

int ssh_streams_open(struct ssh_streams *s, const struct ssh *ssh)
{
	s->pid = ssh->pid;
	s->said[0] = 0;
	s->is_full = false;
	s->to = open_stream(s, ssh->in, NULL, on_room);
	s->from = open_stream(s, ssh->out, on_bytes, NULL);
	s->err = open_stream(s, ssh->err, on_errors, NULL);
	if (s->to && s->from && s->err &&
	    evbuffer_add_cb(bufferevent_get_input(s->from), on_taken, s))
		return 0;
	ssh_streams_close(s);
	return -1;
}
