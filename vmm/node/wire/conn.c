/* conn.c - see conn.h. */
#include "vmm/node/wire/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/shared/loop.h"

struct conn {
	int fd;
	struct loop_event *readable, *writable;
	const struct conn_handler *handler;
	void *owner;
	unsigned index;
	char name[48];
	struct packet_queue queue;
	bool closed;	/* conn_close() was called, or on_closed is due */
	bool receiving; /* inside receive(), which frees a connection that was closed meanwhile */
};

const char *conn_name(const struct conn *conn) { return conn->name; }
void *conn_owner(const struct conn *conn) { return conn->owner; }
unsigned conn_index(const struct conn *conn) { return conn->index; }
int conn_fd(const struct conn *conn) { return conn->fd; }
size_t conn_queued_bytes(const struct conn *conn) { return conn->queue.bytes; }

static void free_conn(struct conn *conn)
{
	loop_remove(conn->readable);
	loop_remove(conn->writable);
	packet_queue_clear(&conn->queue);
	close(conn->fd);
	free(conn);
}

void conn_close(struct conn *conn)
{
	conn->closed = true;
	loop_disarm(conn->readable);
	loop_disarm(conn->writable);
	if (!conn->receiving)
		free_conn(conn);
}

static void lose(struct conn *conn, int reason)
{
	conn->closed = true;
	loop_disarm(conn->readable);
	loop_disarm(conn->writable);
	conn->handler->on_closed(conn, reason);
}

/* Takes up to `limit` messages.  A message is handled before the next one is received; a handler
 * that keeps it must copy it. */
static void receive(struct conn *conn, int limit)
{
	struct packet_buffer packet;
	struct message m;
	char why[160];

	conn->receiving = true;
	while (!conn->closed && limit-- > 0) {
		int result = packet_receive(conn->fd, &packet, conn->handler->link, &m, false, why,
					    sizeof why);

		if (result == 0)
			break;
		if (result < 0) {
			if (result == -EPROTO || result == -EPROTONOSUPPORT)
				log_error("%s: %s", conn->name, why);
			lose(conn, result == -EPIPE ? 0 : result);
			break;
		}
		m.from = conn->index;
		conn->handler->on_message(conn, &m);
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

static void on_readable(void *arg)
{
	receive(arg, CONN_BATCH);
}

static void on_writable(void *arg)
{
	struct conn *conn = arg;
	size_t queued = conn->queue.bytes;

	if (!packet_queue_write(&conn->queue, conn->fd))
		loop_disarm(conn->writable);
	if (conn->queue.bytes < queued && conn->handler->on_written)
		conn->handler->on_written(conn);
}

void conn_flush(struct conn *conn, int timeout_ms)
{
	while (!conn->closed && packet_queue_write(&conn->queue, conn->fd) && timeout_ms > 0) {
		struct pollfd p = { .fd = conn->fd, .events = POLLOUT };

		poll(&p, 1, 10);
		timeout_ms -= 10;
	}
}

int conn_send(struct conn *conn, const struct msg_header *header, const void *body,
	      uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	bool waited = conn->queue.first;
	int error;

	if (conn->closed)
		return -EPIPE;
	error = packet_queue_send(&conn->queue, conn->fd, CONN_QUEUE_BYTES, header, body,
				  body_bytes, payload, payload_bytes);
	if (!waited && conn->queue.first)
		loop_watch(conn->writable);
	return error;
}

void conn_rename(struct conn *conn, const char *name, const struct conn_handler *handler,
		 unsigned index)
{
	snprintf(conn->name, sizeof conn->name, "%s", name);
	conn->handler = handler;
	conn->index = index;
}

struct conn *conn_new(const struct loop *loop, int fd, const char *name,
		      const struct conn_handler *handler, void *owner, unsigned index)
{
	struct conn *conn = calloc(1, sizeof *conn);
	int room = 1 << 20; /* best effort: the kernel's limit is net.core.wmem_max */

	if (!conn)
		die("out of memory for a connection");
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	conn->fd = fd;
	conn->owner = owner;
	conn_rename(conn, name, handler, index);
	conn->readable = loop_add(loop, LOOP_READ, fd, on_readable, conn);
	conn->writable = loop_add(loop, LOOP_WRITE, fd, on_writable, conn);
	if (!conn->readable || !conn->writable || loop_watch(conn->readable))
		die("cannot watch a connection: %s", strerror(errno));
	return conn;
}
