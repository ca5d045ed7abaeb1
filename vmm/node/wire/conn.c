/* conn.c - see conn.h. */
#include "vmm/node/wire/conn.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"

struct packet {
	STAILQ_ENTRY(packet) link;
	size_t bytes;
	char data[];
};

struct conn {
	int fd;
	struct event *readable, *writable;
	const struct conn_handler *handler;
	void *owner;
	unsigned index;
	char name[48];
	STAILQ_HEAD(, packet) queue;
	size_t queued_bytes;
	bool closed;	/* conn_close() was called, or on_closed is due */
	bool receiving; /* inside receive(): whoever closes leaves the freeing to it */
};

const char *conn_name(const struct conn *conn) { return conn->name; }
void *conn_owner(const struct conn *conn) { return conn->owner; }
unsigned conn_index(const struct conn *conn) { return conn->index; }
int conn_fd(const struct conn *conn) { return conn->fd; }
size_t conn_queued_bytes(const struct conn *conn) { return conn->queued_bytes; }

uint32_t conn_body_bytes(uint16_t type)
{
	uint32_t min, max;

	return wire_type_bounds(type, &min, &max) ? 0 : min;
}

int conn_check_packet(const void *packet, size_t n, char *why, size_t why_bytes)
{
	struct msg_header header;
	uint32_t min, max;

	if (n < sizeof header) {
		snprintf(why, why_bytes, "a packet of %zu bytes, shorter than a header", n);
		return -EPROTO;
	}
	memcpy(&header, packet, sizeof header);
	if (header.version != WIRE_VERSION) {
		snprintf(why, why_bytes, "version %u of the messages, this program speaks %u", header.version,
			 (unsigned)WIRE_VERSION);
		return -EPROTO;
	}
	if (wire_type_bounds(header.type, &min, &max)) {
		snprintf(why, why_bytes, "unknown message type %u", header.type);
		return -EPROTO;
	}
	if (header.bytes != n - sizeof header || header.bytes < min || header.bytes > max) {
		snprintf(why, why_bytes, "%s of %zu bytes that claims %u; %u to %u are legal", wire_type_name(header.type),
			 n - sizeof header, header.bytes, min, max);
		return -EPROTO;
	}
	return 0;
}

static void free_queue(struct conn *conn)
{
	struct packet *packet;

	while ((packet = STAILQ_FIRST(&conn->queue))) {
		STAILQ_REMOVE_HEAD(&conn->queue, link);
		free(packet);
	}
	conn->queued_bytes = 0;
}

static void free_conn(struct conn *conn)
{
	event_free(conn->readable);
	event_free(conn->writable);
	free_queue(conn);
	close(conn->fd);
	free(conn);
}

void conn_close(struct conn *conn)
{
	conn->closed = true;
	event_del(conn->readable);
	event_del(conn->writable);
	if (!conn->receiving)
		free_conn(conn);
}

static void lose(struct conn *conn, int reason)
{
	conn->closed = true;
	event_del(conn->readable);
	event_del(conn->writable);
	conn->handler->on_closed(conn, reason);
}

/* Take up to `limit` messages. One buffer for all connections: a message is used before the next one is received, and
 * who keeps it copies it. Aligned, so that handlers may copy with fixed offsets. */
static void receive(struct conn *conn, int limit)
{
	_Alignas(64) char packet[CONN_MAX_PACKET];
	char why[160];

	conn->receiving = true;
	while (!conn->closed && limit-- > 0) {
		ssize_t n = recv(conn->fd, packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
		struct msg_header header;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		/* It closed without reading all that we sent: the error comes first, and once; its last words come after. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n <= 0) {
			lose(conn, n < 0 ? -errno : 0);
			break;
		}
		if (n > (ssize_t)sizeof packet || conn_check_packet(packet, n, why, sizeof why)) {
			log_error("%s sent nonsense: %s", conn->name, n > (ssize_t)sizeof packet ? "too long" : why);
			lose(conn, -EPROTO);
			break;
		}
		memcpy(&header, packet, sizeof header);
		conn->handler->on_message(conn, &header, packet + sizeof header);
	}
	conn->receiving = false;
	if (conn->closed)
		free_conn(conn);
}

void conn_drain(struct conn *conn)
{
	if (!conn->receiving && !conn->closed)
		receive(conn, 1 << 20);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	receive(arg, CONN_BATCH);
}

/* The socket is full, or the host is short of memory for a moment: nothing is lost, the rest goes later. */
static bool later(int error)
{
	return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

/* 0: all written, -EAGAIN: the socket is full. A broken connection shows at the next receive: forget the queue. */
static int write_queue(struct conn *conn)
{
	struct packet *packet;

	while ((packet = STAILQ_FIRST(&conn->queue))) {
		if (send(conn->fd, packet->data, packet->bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (later(errno))
				return -EAGAIN;
			free_queue(conn);
			return 0;
		}
		STAILQ_REMOVE_HEAD(&conn->queue, link);
		conn->queued_bytes -= packet->bytes;
		free(packet);
	}
	return 0;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;
	size_t queued = conn->queued_bytes;

	(void)fd, (void)what;
	if (!write_queue(conn))
		event_del(conn->writable);
	if (conn->queued_bytes < queued && conn->handler->on_written)
		conn->handler->on_written(conn);
}

void conn_flush(struct conn *conn, int timeout_ms)
{
	while (!conn->closed && write_queue(conn) && timeout_ms > 0) {
		struct pollfd p = { .fd = conn->fd, .events = POLLOUT };

		poll(&p, 1, 10);
		timeout_ms -= 10;
	}
}

static int enqueue(struct conn *conn, const struct iovec *iov, size_t bytes)
{
	struct packet *packet;
	char *to;

	if (conn->queued_bytes + bytes > CONN_QUEUE_BYTES)
		return -ENOBUFS;
	packet = malloc(sizeof *packet + bytes);
	if (!packet)
		return -ENOBUFS;
	packet->bytes = bytes;
	to = packet->data;
	for (int i = 0; i < 3; i++) {
		if (iov[i].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	STAILQ_INSERT_TAIL(&conn->queue, packet, link);
	conn->queued_bytes += bytes;
	event_add(conn->writable, NULL);
	return 0;
}

int conn_send(struct conn *conn, const struct msg_header *header, const void *body, uint32_t body_bytes, const void *payload,
	      uint32_t payload_bytes)
{
	struct iovec iov[3] = {
		{ (void *)header, sizeof *header }, { (void *)body, body_bytes }, { (void *)payload, payload_bytes },
	};
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 3 };
	size_t bytes = sizeof *header + body_bytes + payload_bytes;

	if (conn->closed)
		return -EPIPE;
	if (STAILQ_EMPTY(&conn->queue)) {
		if (sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (!later(errno))
			return -EPIPE;
	}
	return enqueue(conn, iov, bytes);
}

void conn_rename(struct conn *conn, const char *name, const struct conn_handler *handler, unsigned index)
{
	snprintf(conn->name, sizeof conn->name, "%s", name);
	conn->handler = handler;
	conn->index = index;
}

struct conn *conn_new(struct event_base *base, int fd, const char *name, const struct conn_handler *handler, void *owner,
		      unsigned index)
{
	struct conn *conn = calloc(1, sizeof *conn);
	int room = 1 << 20; /* best effort; the kernel caps it at net.core.wmem_max */

	if (!conn)
		die("out of memory for a connection");
	evutil_make_socket_nonblocking(fd);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	conn->fd = fd;
	conn->owner = owner;
	STAILQ_INIT(&conn->queue);
	conn_rename(conn, name, handler, index);
	conn->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, conn);
	conn->writable = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, conn);
	if (!conn->readable || !conn->writable || event_add(conn->readable, NULL))
		die("cannot watch a connection: %s", strerror(errno));
	return conn;
}
