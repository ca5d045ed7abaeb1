/* packet.c - see packet.h. */
#include "base/packet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define MESSAGE(name, number, body, bytes, payload) \
	_Static_assert((bytes) <= MAX_BODY_BYTES, #name);
#include "base/msg.def"

struct queued_packet {
	struct queued_packet *next;
	size_t bytes;
	char data[];
};

struct msg_header packet_header(enum msg_type type, vnode_t to, unsigned from_node, uint32_t bytes)
{
	return (struct msg_header){ .type = type,
				    .version = (uint16_t)wire_version,
				    .bytes = bytes,
				    .to = to,
				    .from_node = from_node };
}

struct message packet_message(const struct msg_header *header, const void *body)
{
	uint32_t body_bytes = wire_body_bytes(header->type);

	return (struct message){ .header = *header,
				 .from = header->from_node,
				 .body = body,
				 .payload = (const char *)body + body_bytes,
				 .payload_bytes = header->bytes - body_bytes };
}

int packet_check(const void *packet, size_t n, enum wire_link link, struct message *m, char *why,
		 size_t why_bytes)
{
	struct msg_header header;

	if (n < sizeof header) {
		snprintf(why, why_bytes, "a packet of %zu bytes, shorter than a header", n);
		return -EPROTO;
	}
	memcpy(&header, packet, sizeof header);
	if (header.version != (uint16_t)wire_version) {
		snprintf(why, why_bytes,
			 "it is of another version of vmp (its messages are %04x, ours %04x): "
			 "install one version everywhere",
			 header.version, (uint16_t)wire_version);
		return -EPROTONOSUPPORT;
	}
	if (!wire_is_legal(link, header.type)) {
		snprintf(why, why_bytes, "%s (type %u) is not a message from %s",
			 wire_type_name(header.type), header.type, wire_link_name(link));
		return -EPROTO;
	}
	if (header.bytes != n - sizeof header || !wire_size_is_legal(header.type, header.bytes)) {
		snprintf(why, why_bytes, "%s of %zu bytes that claims %u, with a body of %u",
			 wire_type_name(header.type), n - sizeof header, header.bytes,
			 wire_body_bytes(header.type));
		return -EPROTO;
	}
	if (link == LINK_OVERLAY && header.from_node >= MAX_NODES) { /* handlers count by it */
		snprintf(why, why_bytes, "%s from node %u, which there cannot be",
			 wire_type_name(header.type), header.from_node);
		return -EPROTO;
	}
	*m = packet_message(&header, (const char *)packet + sizeof header);
	return 0;
}

/* True if a send is to be retried later: the socket is full, or the host is short of memory.
 * Nothing is lost. */
static bool later(int error)
{
	return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

int packet_send(int fd, const struct msg_header *header, const void *body, uint32_t body_bytes,
		const void *payload, uint32_t payload_bytes, bool wait)
{
	struct iovec parts[3] = { { (void *)header, sizeof *header },
				  { (void *)body, body_bytes },
				  { (void *)payload, payload_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };

	while (sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) < 0) {
		if (!later(errno))
			return -errno;
		if (!wait)
			return -EAGAIN;
		if (errno != EINTR) /* EAGAIN: the socket itself does not wait */
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1,
			     errno == EAGAIN ? -1 : 1);
	}
	return 0;
}

int packet_receive(int fd, struct packet_buffer *buffer, enum wire_link link, struct message *m,
		   bool wait, char *why, size_t why_bytes)
{
	ssize_t n;
	int error;

	/* If the other end closed without reading all that was sent, the first read returns that
	 * error, once.  Its last packets follow. */
	do
		n = recv(fd, buffer->bytes, sizeof buffer->bytes,
			 MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && (errno == ECONNRESET || (wait && errno == EINTR)));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		error = n < 0 ? errno : EPIPE;
		snprintf(why, why_bytes, "%s", strerror(error));
		return -error;
	}
	if ((size_t)n > sizeof buffer->bytes) {
		snprintf(why, why_bytes, "a packet of %zd bytes, longer than any message", n);
		return -EPROTO;
	}
	error = packet_check(buffer->bytes, (size_t)n, link, m, why, why_bytes);
	return error ? error : 1;
}

/* --- packets that the socket did not take ----------------------------------------------------- */

static char *put(char *to, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
	return to + bytes;
}

int packet_queue_send(struct packet_queue *queue, int fd, size_t limit,
		      const struct msg_header *header, const void *body, uint32_t body_bytes,
		      const void *payload, uint32_t payload_bytes)
{
	size_t bytes = sizeof *header + body_bytes + payload_bytes;
	struct queued_packet *packet;
	int error;

	if (!queue->first) {
		error = packet_send(fd, header, body, body_bytes, payload, payload_bytes, false);
		if (error != -EAGAIN)
			return error ? -EPIPE : 0;
	}
	if (queue->bytes + bytes > limit || !(packet = malloc(sizeof *packet + bytes)))
		return -ENOBUFS;
	packet->next = NULL;
	packet->bytes = bytes;
	put(put(put(packet->data, header, sizeof *header), body, body_bytes), payload,
	    payload_bytes);
	if (queue->last)
		queue->last->next = packet;
	else
		queue->first = packet;
	queue->last = packet;
	queue->bytes += bytes;
	return 0;
}

static void drop_first(struct packet_queue *queue)
{
	struct queued_packet *packet = queue->first;

	queue->first = packet->next;
	if (!queue->first)
		queue->last = NULL;
	queue->bytes -= packet->bytes;
	free(packet);
}

int packet_queue_write(struct packet_queue *queue, int fd)
{
	while (queue->first) {
		if (send(fd, queue->first->data, queue->first->bytes,
			 MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
			drop_first(queue);
			continue;
		}
		if (later(errno))
			return -EAGAIN;
		packet_queue_clear(queue);
	}
	return 0;
}

void packet_queue_clear(struct packet_queue *queue)
{
	while (queue->first)
		drop_first(queue);
}
