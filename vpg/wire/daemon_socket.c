/* daemon_socket.c - see daemon_socket.h. */
#include "vpg/wire/daemon_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/filepass.h"
#include "vpg/wire/folder.h"

enum { ROOM = 2 * VPG_FRAME_MAX };

int daemon_socket_open(struct daemon_socket *s, struct why *why)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t n = sizeof peer;
	char folder[FOLDER_PATH];

	*s = (struct daemon_socket){ .fd = -1 };
	if (folder_path(folder, why))
		return -1;
	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", folder);
	s->buffer = malloc(ROOM);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!s->buffer || s->fd < 0 || connect(s->fd, (struct sockaddr *)&at, sizeof at)) {
		daemon_socket_close(s);
		return why_set(why, "no daemon runs here: vmp peer start");
	}
	if (getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) || peer.uid != geteuid()) {
		daemon_socket_close(s);
		return why_set(why, "%s: another user listens there", at.sun_path);
	}
	return 0;
}

/* Returns whether a daemon answers a question that all versions know. */
static bool is_there(void)
{
	const struct vpg_ASK_STATUS question = { 0 };
	struct daemon_socket s;
	union vpg_any m;
	struct why why;
	bool yes;

	if (daemon_socket_open(&s, &why))
		return false;
	yes = !daemon_socket_send(&s, VPG_ASK_STATUS, &question) &&
	      (daemon_socket_next(&s, &m, true) > 0 || s.broken);
	daemon_socket_close(&s);
	return yes;
}

/* A daemon closes a connection on which something comes that it does not know, and lives on.  A
 * shell of a later version may send such a thing. */
const char *daemon_socket_failure(const struct daemon_socket *s)
{
	if (!s->broken && !is_there())
		return "the daemon has ended";
	return "the daemon here is of another version of vmp: vmp peer stop, then vmp peer start";
}

void daemon_socket_close(struct daemon_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->buffer);
	*s = (struct daemon_socket){ .fd = -1 };
}

int daemon_socket_send_frame(struct daemon_socket *s, const unsigned char *frame, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t sent = send(s->fd, frame + done, n - done, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return -1;
		done += sent > 0 ? (size_t)sent : 0;
	}
	return n ? 0 : -1;
}

int daemon_socket_send(struct daemon_socket *s, enum vpg_type type, const void *fields)
{
	static unsigned char frame[VPG_FRAME_MAX];

	return daemon_socket_send_frame(s, frame, message_put(type, fields, frame, sizeof frame));
}

int daemon_socket_attach(struct daemon_socket *s, uint64_t stream, int fd)
{
	union filepass_control control;
	const struct vpg_ATTACH fields = { stream };
	unsigned char frame[32];
	struct iovec bytes = { frame, message_put(VPG_ATTACH, &fields, frame, sizeof frame) };
	struct msghdr m = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t sent;

	filepass_put(&m, &control, &fd, 1);
	do
		sent = sendmsg(s->fd, &m, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent <= 0 || (size_t)sent == bytes.iov_len)
		return sent <= 0 ? -1 : 0;
	return daemon_socket_send_frame(s, frame + sent, bytes.iov_len - (size_t)sent);
}

/* Reads the frame that begins at `taken`, if it is complete. */
static int take_frame(struct daemon_socket *s, union vpg_any *m)
{
	const unsigned char *at = s->buffer + s->taken;
	size_t left = s->n - s->taken;
	long size = message_size(at, left);

	if (!size || (size > 0 && (size_t)size > left))
		return 0;
	s->taken += size > 0 ? (size_t)size : 0;
	int type = size < 0 ? -1 : message_get(at, (size_t)size, m);
	s->broken = type < 0;
	return type < 0 ? -1 : type;
}

int daemon_socket_next(struct daemon_socket *s, union vpg_any *m, bool wait)
{
	for (;;) {
		int type = take_frame(s, m);
		ssize_t n;

		if (type)
			return type;
		memmove(s->buffer, s->buffer + s->taken, s->n - s->taken);
		s->n -= s->taken;
		s->taken = 0;
		n = recv(s->fd, s->buffer + s->n, ROOM - s->n, wait ? 0 : MSG_DONTWAIT);
		if (n < 0 && errno == EINTR && wait)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -1;
		s->n += (size_t)n;
	}
}
