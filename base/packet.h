/* packet.h - messages on sockets: everything that sends, receives or checks a packet of a
 * SOCK_SEQPACKET socket is here.
 *
 * packet_check() is pure.  Before any code reads a packet, packet_check() has found that header and
 * size fit the type, that the sender has this version of the messages, and that a message of this
 * type may arrive on this link (msg.def).  Its users:
 *	monitor/channel.c	waits in packet_send() and packet_receive()
 *	iosrv/iosrv_main.c	receives without waiting, and waits until it has sent
 *	vmm/node/wire/conn.c, vmm/cli/client.c
 *				never wait, in a libevent loop: what the socket does not take is
 *				queued
 *	vmm/node/wire/overlay.c	packet_check() alone: the Phoenix library carries its packets
 * An error from packet_check() means that the other end broke the rules: for a child or peer, the
 * machine's part ends; a client is dropped.
 */
#ifndef BASE_PACKET_H
#define BASE_PACKET_H

#include <sys/types.h>
#include "base/types.h"
#include "base/wire.h"

enum {
	MAX_BODY_BYTES = 64,
	PACKET_MAX_BYTES = sizeof(struct msg_header) + MAX_BODY_BYTES + MAX_MSG_PAYLOAD,
};

struct packet_buffer { _Alignas(64) char bytes[PACKET_MAX_BYTES]; };

/* A message whose size is legal.  The payload follows the body directly. */
struct message {
	struct msg_header header;
	/* the sender: the CPU of a monitor, the slot of a client, the number of a node */
	unsigned from;
	const void *body;
	const void *payload;
	uint32_t payload_bytes;
};

/* Return the header of a message from this program. */
struct msg_header packet_header(enum msg_type type, vnode_t to, unsigned from_node, uint32_t bytes);
/* Return a message that this program made itself; its payload follows `body`. */
struct message packet_message(const struct msg_header *header, const void *body);

/* Check a received packet of `n` bytes and set *m to its parts.  Returns 0; -EPROTO, with the
 * reason in `why`; -EPROTONOSUPPORT: the sender has another version, so no more is known of its
 * packet. */
int packet_check(const void *packet, size_t n, enum wire_link link, struct message *m, char *why,
		 size_t why_bytes);

/* Send one packet.  Returns 0, or -errno: -EAGAIN only if !wait; -EPIPE or -ECONNRESET: the other
 * end has closed. */
int packet_send(int fd, const struct msg_header *header, const void *body, uint32_t body_bytes,
		const void *payload, uint32_t payload_bytes, bool wait);
/* Receive one packet.  Returns 1, and `m` points into `buffer`; 0: there is none (only if !wait);
 * -errno as packet_check(), with the reason in `why`; -EPIPE: the other end has closed. */
int packet_receive(int fd, struct packet_buffer *buffer, enum wire_link link, struct message *m,
		   bool wait, char *why, size_t why_bytes);

/* Packets that a socket did not take, in order.  All zero: empty. */
struct packet_queue { struct queued_packet *first, *last; size_t bytes; };
/* Send a packet without waiting, or queue it.  Returns 0; -ENOBUFS: the queue would exceed `limit`
 * bytes, or there is no memory; -EPIPE. */
int packet_queue_send(struct packet_queue *queue, int fd, size_t limit,
		      const struct msg_header *header, const void *body, uint32_t body_bytes,
		      const void *payload, uint32_t payload_bytes);
/* Write the queued packets.  Returns 0: all are written; -EAGAIN: the socket is full.  Packets for
 * a broken connection are dropped; the next read reports the break. */
int packet_queue_write(struct packet_queue *queue, int fd);
void packet_queue_clear(struct packet_queue *queue);

#endif
