/* pumps.c - see pumps.h. */
#include "vpg/shell/pumps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CREDIT_STEP = VPG_WINDOW / 4 };

int pumps_add(struct pumps *p, uint64_t stream, int fd, bool sends, bool own)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 8;
		struct pump *more = realloc(p->at, room * sizeof *more);

		if (!more)
			return -1;
		p->at = more;
		p->room = room;
	}
	if (own && !sends)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	p->at[p->n++] = (struct pump){ .stream = stream, .fd = fd, .sends = sends, .own = own };
	return 0;
}

int pumps_attach(struct pumps *p, uint64_t stream, int fd, bool sends)
{
	int error = daemon_socket_attach(p->daemon, stream, fd) ? -EPIPE : 0;

	if (!sends && !error)
		error = pumps_add(p, stream, fd, false, true) ? -ENOMEM : 0;
	if (error || sends)
		close(fd);
	else
		p->at[p->n - 1].attached = true;
	return error;
}

int pumps_by_lines(struct pumps *p, const char *label)
{
	struct pump *u = p->at + p->n - 1;

	u->label = label;
	u->line = malloc(PIPE_BUF);
	return u->line ? 0 : -1;
}

static int say_number(struct pumps *p, const struct pump *u, enum vpg_type type)
{
	struct vpg_STREAM_END m = { u->stream };

	return daemon_socket_send(p->daemon, type, &m);
}

static int give(struct pumps *p, const struct pump *u, uint64_t bytes)
{
	struct vpg_CREDIT m = { u->stream, bytes };

	return daemon_socket_send(p->daemon, VPG_CREDIT, &m);
}

int pumps_begin(struct pumps *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->at[i].sends && !p->at[i].attached && give(p, p->at + i, VPG_WINDOW))
			return -1;
	return 0;
}

static void pump_close(struct pump *u)
{
	if (u->own && u->fd >= 0)
		close(u->fd);
	u->fd = -1;
	u->ended = true;
	free(u->bytes);
	free(u->line);
	u->bytes = u->line = NULL;
	u->n = u->written = u->line_n = u->line_written = 0;
}

/* Returns how many of the bytes that have come make the next line; 0 if it is not complete. */
static size_t line_bytes(const struct pump *u)
{
	size_t left = u->n - u->written, room = PIPE_BUF - strlen(u->label) - 3;
	size_t most = left < room ? left : room;
	const unsigned char *at = u->bytes + u->written,
			    *end = most ? memchr(at, '\n', most) : NULL;

	if (end)
		return (size_t)(end - at) + 1;
	return left >= room || u->ended ? most : 0;
}

/* Puts the next line together, if it is complete.  If the last line has a label but no newline, it
 * gets one, since a line of another computer follows it. */
static void take_line(struct pump *u)
{
	size_t n = u->line && u->line_written == u->line_n ? line_bytes(u) : 0;

	if (!n)
		return;
	u->line_n = u->line_written = 0;
	if (*u->label)
		u->line_n = (size_t)sprintf((char *)u->line, "%s: ", u->label);
	memcpy(u->line + u->line_n, u->bytes + u->written, n);
	u->line_n += n;
	u->written += n;
	u->owed += n;
	if (*u->label && u->line[u->line_n - 1] != '\n')
		u->line[u->line_n++] = '\n';
}

static bool is_written(const struct pump *u)
{
	return u->n == u->written && u->line_n == u->line_written;
}

/* Writes some of the bytes that have come, or of the line.  Returns as write() does. */
static ssize_t write_bytes(struct pump *u)
{
	size_t left = u->n - u->written, most = u->own ? left : PIPE_BUF;
	ssize_t n;

	if (u->line) {
		n = write(u->fd, u->line + u->line_written, u->line_n - u->line_written);
		u->line_written += n > 0 ? (size_t)n : 0;
		take_line(u);
		return n;
	}
	n = write(u->fd, u->bytes + u->written, left < most ? left : most);
	u->written += n > 0 ? (size_t)n : 0;
	u->owed += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* Writes what the descriptor takes at once.  A descriptor that the shell was given may block, and
 * other programs use it, too.  So its mode is not changed, and it gets at most as much as a pipe
 * has room for after poll(). */
static int write_some(struct pumps *p, struct pump *u)
{
	ssize_t n = write_bytes(u);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0) {
		pump_close(u);
		return say_number(p, u, VPG_STREAM_BREAK);
	}
	if (u->written == u->n)
		u->written = u->n = 0;
	if (is_written(u) && u->ended)
		pump_close(u);
	if (u->owed < CREDIT_STEP || u->ended)
		return 0;
	uint64_t owed = u->owed;
	u->owed = 0;
	return give(p, u, owed);
}

static int read_some(struct pumps *p, struct pump *u)
{
	static unsigned char frame[VPG_DATA_HEAD + VPG_CHUNK];
	size_t want = u->credit < VPG_CHUNK ? u->credit : VPG_CHUNK;
	ssize_t n = read(u->fd, frame + VPG_DATA_HEAD, want);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		pump_close(u);
		return say_number(p, u, VPG_STREAM_END);
	}
	message_data_head(frame, u->stream, (size_t)n);
	u->credit -= (size_t)n;
	return daemon_socket_send_frame(p->daemon, frame, VPG_DATA_HEAD + (size_t)n);
}

static int keep(struct pump *u, const struct vpg_bytes *b)
{
	unsigned char *more;

	if (u->fd < 0)
		return 0;
	if (u->n + b->n > VPG_WINDOW + VPG_CHUNK) {	/* make room: drop what is written */
		memmove(u->bytes, u->bytes + u->written, u->n - u->written);
		u->n -= u->written;
		u->written = 0;
	}
	if (u->n + b->n > VPG_WINDOW + VPG_CHUNK)
		return -1;
	more = u->bytes ? u->bytes : malloc(VPG_WINDOW + VPG_CHUNK);
	if (!more)
		return -1;
	u->bytes = more;
	memcpy(u->bytes + u->n, b->at, b->n);
	u->n += b->n;
	take_line(u);
	return 0;
}

int pumps_hear(struct pumps *p, int type, const union vpg_any *m)
{
	bool sends = type == VPG_CREDIT || type == VPG_STREAM_BREAK;

	for (size_t i = 0; i < p->n; i++) {
		struct pump *u = p->at + i;

		if (u->stream != m->DATA.stream || u->sends != sends)
			continue;
		if (type == VPG_CREDIT)
			u->credit += m->CREDIT.bytes;
		else if (type == VPG_STREAM_BREAK)
			pump_close(u);
		else if (type == VPG_DATA)
			return keep(u, &m->DATA.bytes);
		u->ended |= type == VPG_STREAM_END;
		take_line(u);
		if (type == VPG_STREAM_END && is_written(u))
			pump_close(u);
	}
	return 0;
}

void pumps_drop(struct pumps *p, uint64_t stream)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->at[i].stream == stream)
			pump_close(p->at + i);
}

void pumps_wait(const struct pumps *p, struct pollfd *fds)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct pump *u = p->at + i;
		bool wants = u->fd >= 0 && (u->sends ? u->credit > 0 :
				       u->line ? u->line_n > u->line_written : u->n > u->written);

		fds[i] = (struct pollfd){ wants ? u->fd : -1, u->sends ? POLLIN : POLLOUT, 0 };
	}
}

int pumps_ready(struct pumps *p, const struct pollfd *fds)
{
	for (size_t i = 0; i < p->n; i++) {
		struct pump *u = p->at + i;

		if (u->fd < 0 || fds[i].fd < 0 || !fds[i].revents)
			continue;
		if (u->sends ? read_some(p, u) : write_some(p, u))
			return -1;
	}
	return 0;
}

bool pumps_done(const struct pumps *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->at[i].sends && !(p->at[i].ended && is_written(p->at + i)))
			return false;
	return true;
}

void pumps_free(struct pumps *p)
{
	for (size_t i = 0; i < p->n; i++)
		pump_close(p->at + i);
	free(p->at);
	*p = (struct pumps){ .daemon = p->daemon };
}
