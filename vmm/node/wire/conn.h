/* conn.h - one connection of the node daemon: a SOCK_SEQPACKET socket, one message a packet, and a bounded send queue.
 *
 * Whoever is at the other end - a monitor, the I/O server, another daemon, a command line - the same happens here: a
 * packet is received into a buffer of our own, its header's version and its size are checked against the type's bounds,
 * and only then it is handed up.  A packet that fails the check ends the connection with a line that says why.
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

#include "base/types.h"
#include "base/wire.h"

struct event_base;
struct conn;

enum {
	CONN_QUEUE_BYTES = 8 << 20, /* 8 MiB: about 2000 pages that one peer has not taken yet */
	CONN_BATCH = 64,	    /* messages taken from one socket before the others get their turn */
};

/* A received message: `body` points to header->bytes bytes, valid during the call. */
typedef void (*conn_message_fn)(struct conn *conn, const struct msg_header *header, const void *body);
/* reason: 0 = the other end closed, otherwise -errno (-EPROTO: it sent nonsense). */
typedef void (*conn_closed_fn)(struct conn *conn, int reason);
/* Something that was queued is in the socket now; for who has to be told to look there. May be NULL; no conn_close() inside. */
typedef void (*conn_written_fn)(struct conn *conn);

struct conn_handler {
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

/* Check a packet of `n` bytes as received: 0, or -EPROTO with the reason in `why`. Pure. */
int conn_check_packet(const void *packet, size_t n, char *why, size_t why_bytes);

/* A message's type has a payload after a fixed body: the body's size, and where the payload starts. */
uint32_t conn_body_bytes(uint16_t type);

/* The largest packet of any type, header included. */
enum { CONN_MAX_PACKET = sizeof(struct msg_header) + 256 + MAX_MSG_PAYLOAD };

#endif
