/* conn.h - one connection of the node daemon: a SOCK_SEQPACKET socket, one message a packet, and a
 * bounded send queue.
 *
 * The other end is a monitor, the I/O server or a command line. base/packet.h checks each packet,
 * which is then passed to the handler.  A packet that fails the check ends the connection with a
 * line that says why.
 *
 * Rules of use:
 *  - conn_send() never blocks.  What the socket does not take now is queued.  If the queue would
 *    exceed CONN_QUEUE_BYTES, conn_send() returns -ENOBUFS: the caller drops what may be dropped,
 *    and ends the machine for anything else.
 *  - on_message may call conn_send() on any connection, and conn_close() on this one.
 *  - on_closed is called once, from the event loop or from conn_drain(), never from inside
 *    conn_send(); the struct is freed after it returns.
 */
#ifndef VMM_NODE_WIRE_CONN_H
#define VMM_NODE_WIRE_CONN_H

#include "base/packet.h"
#include "base/types.h"

struct conn;
struct loop;

enum {
	CONN_QUEUE_BYTES = 8 << 20, /* 8 MiB: about 2000 pages that one peer has not taken yet */
	/* messages that are taken from one socket before other sockets get their turn */
	CONN_BATCH = 64,
};

/* A received message, valid during the call; m->from is the connection's index. */
typedef void (*conn_message_fn)(struct conn *conn, const struct message *m);
/* reason: 0: the other end closed; otherwise -errno (-EPROTO: it broke the rules; -EPROTONOSUPPORT:
 * it has another version). */
typedef void (*conn_closed_fn)(struct conn *conn, int reason);
/* Something that was queued is in the socket now, and the receiver may need a notification.  May be
 * NULL; must not call conn_close(). */
typedef void (*conn_written_fn)(struct conn *conn);

struct conn_handler {
	enum wire_link link;
	conn_message_fn on_message;
	conn_closed_fn on_closed;
	conn_written_fn on_written;
};

struct conn_ops;
/* The part that every kind of connection has; each kind's own struct begins with it.  conn.c has
 * the kind over a socket, the simulator a kind of its own. */
struct conn {
	const struct conn_ops *ops;
	const struct conn_handler *handler;
	void *owner;
	unsigned index;
	int fd; /* its socket; -1: it has none */
	char name[48];
};

struct conn_ops {
	int (*send)(struct conn *conn, const struct msg_header *header, const void *body,
		    uint32_t body_bytes, const void *payload, uint32_t payload_bytes);
	void (*drain)(struct conn *conn);
	void (*flush)(struct conn *conn, int timeout_ms);
	void (*close)(struct conn *conn);
	size_t (*queued_bytes)(const struct conn *conn);
};

/* Takes ownership of `fd` and makes it non-blocking.  `name` is for logs: "monitor of CPU 3".
 * `owner` and `index` are the caller's. */
struct conn *conn_new(const struct loop *loop, int fd, const char *name,
		      const struct conn_handler *handler, void *owner, unsigned index);

/* Sets what the other end is, once that is known. */
void conn_rename(struct conn *conn, const char *name, const struct conn_handler *handler,
		 unsigned index);

/* Closes without calling on_closed.  Allowed inside on_message. */
static inline void conn_close(struct conn *conn) { conn->ops->close(conn); }

/* Sends one message: header, body, payload.  Returns 0, -ENOBUFS (queue full, nothing was sent), or
 * -EPIPE (closed: on_closed follows). */
static inline int conn_send(struct conn *conn, const struct msg_header *header, const void *body,
			    uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	return conn->ops->send(conn, header, body, body_bytes, payload, payload_bytes);
}

/* Takes every message that has arrived.  For a child that has died after it wrote its last
 * messages. */
static inline void conn_drain(struct conn *conn) { conn->ops->drain(conn); }

/* Writes the queue to the socket, for at most timeout_ms: the last messages to a client. */
static inline void conn_flush(struct conn *conn, int timeout_ms)
{
	conn->ops->flush(conn, timeout_ms);
}

static inline const char *conn_name(const struct conn *conn) { return conn->name; }
static inline void *conn_owner(const struct conn *conn) { return conn->owner; }
static inline unsigned conn_index(const struct conn *conn) { return conn->index; }
static inline int conn_fd(const struct conn *conn) { return conn->fd; }
static inline size_t conn_queued_bytes(const struct conn *conn)
{
	return conn->ops->queued_bytes(conn);
}

#endif
