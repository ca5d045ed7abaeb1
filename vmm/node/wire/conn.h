/* conn.h - one connection of the node daemon: a SOCK_SEQPACKET socket, one message a packet, and a bounded send queue.
 *
 * The other end is a monitor, the I/O server or a command line: base/packet.h checks what comes from it, and it is handed up.  A
 * packet that fails the check ends the connection with a line that says why.
 *
 * Rules of use:
 *  - conn_send() never blocks.  What the socket does not take now is queued; a queue that would pass CONN_QUEUE_BYTES is
 *    the caller's problem (-ENOBUFS): drop what may be dropped, end the machine for the rest.
 *  - on_message may call conn_send() on any connection, and conn_close() on this one.
 *  - on_closed is called once, from the event loop or from conn_drain(), never from inside conn_send(); the struct is
 *    freed after it returns.
 */
#ifndef VMM_NODE_WIRE_CONN_H
#define VMM_NODE_WIRE_CONN_H

#include "base/packet.h"
#include "base/types.h"

struct event_base;
struct conn;

enum {
	CONN_QUEUE_BYTES = 8 << 20, /* 8 MiB: about 2000 pages that one peer has not taken yet */
	CONN_BATCH = 64,	    /* messages taken from one socket before the others get their turn */
};

/* A received message, valid during the call; m->from: the connection's index. */
typedef void (*conn_message_fn)(struct conn *conn, const struct message *m);
/* reason: 0 = the other end closed, otherwise -errno (-EPROTO: it broke the rules; -EPROTONOSUPPORT: it is of another version). */
typedef void (*conn_closed_fn)(struct conn *conn, int reason);
/* Something that was queued is in the socket now; for who has to be told to look there. May be NULL; no conn_close() inside. */
typedef void (*conn_written_fn)(struct conn *conn);

struct conn_handler {
	enum wire_link link;
	conn_message_fn on_message;
	conn_closed_fn on_closed;
	conn_written_fn on_written;
};

/* Owns `fd` from now on (set non-blocking). `name` is for logs: "monitor of CPU 3". `owner` and `index` are the caller's. */
struct conn *conn_new(struct event_base *base, int fd, const char *name, const struct conn_handler *handler, void *owner,
		      unsigned index);
/* Close without calling on_closed. Safe inside on_message. */
void conn_close(struct conn *conn);

/* What the other end turned out to be (after its HELLO). */
void conn_rename(struct conn *conn, const char *name, const struct conn_handler *handler, unsigned index);

/* Send one message: header, body, payload. 0, -ENOBUFS (queue full, nothing was sent), or -EPIPE (closed: on_closed comes). */
int conn_send(struct conn *conn, const struct msg_header *header, const void *body, uint32_t body_bytes, const void *payload,
	      uint32_t payload_bytes);

/* Take every message that has already arrived, now; for a child that died after it had written its last words. */
void conn_drain(struct conn *conn);

/* Write out the queue, waiting up to timeout_ms; for the last words to a client. */
void conn_flush(struct conn *conn, int timeout_ms);

const char *conn_name(const struct conn *conn);
void *conn_owner(const struct conn *conn);
unsigned conn_index(const struct conn *conn);
int conn_fd(const struct conn *conn);
size_t conn_queued_bytes(const struct conn *conn);

#endif
