/* packet.h - messages on sockets: all that sends, receives or checks a packet of a SOCK_SEQPACKET socket is here.
 *
 * packet_check() is pure.  Before anybody looks into a packet it finds that header and size fit the type, that the sender speaks
 * this version of the messages, and that a message of this type may come on this link (msg.def).  Who uses it:
 *	monitor/channel.c	waits in packet_send() and packet_receive()
 *	iosrv/iosrv_main.c	receives without waiting, and waits until it has sent
 *	vmm/node/wire/conn.c, vmm/cli/client.c	in a libevent loop: never wait; what the socket does not take is queued here
 *	vmm/node/wire/overlay.c	packet_check() alone: the Phoenix library carries its packets
 * Whoever gets an error from here knows that the other end broke the rules: a child or peer ends its part of the machine, a
 * client is dropped.
 */
#ifndef BASE_PACKET_H
#define BASE_PACKET_H

#include <sys/types.h>
#include "base/types.h"
#include "base/wire.h"

enum { MAX_BODY_BYTES = 64, PACKET_MAX_BYTES = sizeof(struct msg_header) + MAX_BODY_BYTES + MAX_MSG_PAYLOAD };

struct packet_buffer { _Alignas(64) char bytes[PACKET_MAX_BYTES]; };

/* A message whose size is legal. The payload stands right behind the body. */
struct message {
	struct msg_header header;
	unsigned from;	/* who sent it: the CPU of a monitor, the slot of a client, the number of a node */
	const void *body;
	const void *payload;
	uint32_t payload_bytes;
};

/* The header of a message from this program. */
struct msg_header packet_header(enum msg_type type, vnode_t to, unsigned from_node, uint32_t bytes);
/* A message that this program made itself; `body`: with its payload behind it. */
struct message packet_message(const struct msg_header *header, const void *body);

/* Take apart a packet of `n` bytes as received: 0; -EPROTO, with the reason in `why`; -EPROTONOSUPPORT: the sender speaks another
 * version, which is all that is known of its packet. */
int packet_check(const void *packet, size_t n, enum wire_link link, struct message *m, char *why, size_t why_bytes);

/* Send one packet: 0, or -errno: -EAGAIN only if !wait, and -EPIPE or -ECONNRESET when the other end is gone. */
int packet_send(int fd, const struct msg_header *header, const void *body, uint32_t body_bytes, const void *payload,
		uint32_t payload_bytes, bool wait);
/* Receive one: 1, and `m` points into `buffer`; 0: there is none (only if !wait); -errno as above, with the reason in `why`, or -EPIPE:
 * the other end is gone. */
int packet_receive(int fd, struct packet_buffer *buffer, enum wire_link link, struct message *m, bool wait, char *why,
		   size_t why_bytes);

/* What a socket did not take, in order. All zero: empty. */
struct packet_queue { struct queued_packet *first, *last; size_t bytes; };
/* Send without waiting, or queue: 0; -ENOBUFS: the queue would pass `limit` bytes, or there is no memory; -EPIPE. */
int packet_queue_send(struct packet_queue *queue, int fd, size_t limit, const struct msg_header *header, const void *body,
		      uint32_t body_bytes, const void *payload, uint32_t payload_bytes);
/* 0: all is written; -EAGAIN: the socket is full.  What is for a broken connection is forgotten: the break shows when it is read. */
int packet_queue_write(struct packet_queue *queue, int fd);
void packet_queue_clear(struct packet_queue *queue);

#endif
