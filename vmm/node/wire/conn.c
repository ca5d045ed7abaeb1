/* conn.c - see conn.h. */
#include "vmm/node/wire/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/shared/loop.h"

/* A connection over a socket. */
struct wire {
	struct conn conn;
	struct loop_event *readable, *writable;
	struct packet_queue queue;
	bool closed;	/* conn_close() was called, or on_closed is about to be called */
	bool receiving; /* inside receive(), which frees a connection that was closed meanwhile */
};

static struct wire *wire_of(struct conn *conn) { return (struct wire *)conn; }

static void free_conn(struct wire *wire)
{
	loop_remove(wire->readable);
	loop_remove(wire->writable);
	packet_queue_clear(&wire->queue);
	close(wire->conn.fd);
	free(wire);
}

static void op_close(struct conn *conn)
{
	struct wire *wire = wire_of(conn);

	wire->closed = true;
	loop_disarm(wire->readable);
	loop_disarm(wire->writable);
	if (!wire->receiving)
		free_conn(wire);
}

static void lose(struct wire *wire, int reason)
{
	wire->closed = true;
	loop_disarm(wire->readable);
	loop_disarm(wire->writable);
	wire->conn.handler->on_closed(&wire->conn, reason);
}

/* Takes up to `limit` messages.  A message is handled before the next one is received; a handler
 * that keeps it must copy it. */
static void receive(struct wire *wire, int limit)
{
	struct conn *conn = &wire->conn;
	struct packet_buffer packet;
	struct message m;
	char why[160];

	wire->receiving = true;
	while (!wire->closed && limit-- > 0) {
		int result = packet_receive(conn->fd, &packet, conn->handler->link, &m, false, why,
					    sizeof why);

		if (result == 0)
			break;
		if (result < 0) {
			if (result == -EPROTO || result == -EPROTONOSUPPORT)
				log_error("%s: %s", conn->name, why);
			lose(wire, result == -EPIPE ? 0 : result);
			break;
		}
		m.from = conn->index;
		conn->handler->on_message(conn, &m);
	}
	wire->receiving = false;
	if (wire->closed)
		free_conn(wire);
}

static void op_drain(struct conn *conn)
{
	struct wire *wire = wire_of(conn);

	if (!wire->receiving && !wire->closed)
		receive(wire, 1 << 20);
}

static void on_readable(void *arg)
{
	receive(arg, CONN_BATCH);
}

static void on_writable(void *arg)
{
	struct wire *wire = arg;
	size_t queued = wire->queue.bytes;

	if (!packet_queue_write(&wire->queue, wire->conn.fd))
		loop_disarm(wire->writable);
	if (wire->queue.bytes < queued && wire->conn.handler->on_written)
		wire->conn.handler->on_written(&wire->conn);
}

static void op_flush(struct conn *conn, int timeout_ms)
{
	struct wire *wire = wire_of(conn);

	while (!wire->closed && packet_queue_write(&wire->queue, conn->fd) && timeout_ms > 0) {
		struct pollfd p = { .fd = conn->fd, .events = POLLOUT };

		poll(&p, 1, 10);
		timeout_ms -= 10;
	}
}

static int op_send(struct conn *conn, const struct msg_header *header, const void *body,
		   uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	struct wire *wire = wire_of(conn);
	bool waited = wire->queue.first;
	int error;

	if (wire->closed)
		return -EPIPE;
	error = packet_queue_send(&wire->queue, conn->fd, CONN_QUEUE_BYTES, header, body,
				  body_bytes, payload, payload_bytes);
	if (!waited && wire->queue.first)
		loop_watch(wire->writable);
	return error;
}

void conn_rename(struct conn *conn, const char *name, const struct conn_handler *handler,
		 unsigned index)
{
	snprintf(conn->name, sizeof conn->name, "%s", name);
	conn->handler = handler;
	conn->index = index;
}

static size_t op_queued_bytes(const struct conn *conn)
{
	return ((const struct wire *)conn)->queue.bytes;
}

struct conn *conn_new(const struct loop *loop, int fd, const char *name,
		      const struct conn_handler *handler, void *owner, unsigned index)
{
	static const struct conn_ops ops = { op_send, op_drain, op_flush, op_close,
					     op_queued_bytes };
	struct wire *wire = calloc(1, sizeof *wire);
	int room = 1 << 20; /* best effort: the kernel's limit is net.core.wmem_max */

	if (!wire)
		die("out of memory for a connection");
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	wire->conn = (struct conn){ .ops = &ops, .owner = owner, .fd = fd };
	conn_rename(&wire->conn, name, handler, index);
	wire->readable = loop_add(loop, LOOP_READ, fd, on_readable, wire);
	wire->writable = loop_add(loop, LOOP_WRITE, fd, on_writable, wire);
	if (!wire->readable || !wire->writable || loop_watch(wire->readable))
		die("cannot watch a connection: %s", strerror(errno));
	return &wire->conn;
}
