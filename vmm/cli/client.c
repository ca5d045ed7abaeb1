/* client.c - see client.h. */
#include "vmm/cli/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/log.h"

struct client_packet {
	struct client_packet *next;
	size_t bytes;
	char data[];
};

enum {
	MAX_PACKET = sizeof(struct msg_header) + 256 + MAX_MSG_PAYLOAD,
	ENOUGH_QUEUED = 1 << 20, /* more than a daemon takes in the moment after which its sender looks again */
};

struct event_base *client_new_loop(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		return NULL;
	event_config_avoid_method(config, "epoll"); /* refuses regular files */
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static void closed(struct client *c)
{
	if (c->readable)
		event_del(c->readable);
	if (c->writable)
		event_del(c->writable);
	if (c->on_closed)
		c->on_closed(c->context);
}

/* False: the daemon does not speak our language. */
static bool packet_is_sound(const char *packet, size_t bytes, struct msg_header *header)
{
	uint32_t min, max;

	if (bytes < sizeof *header)
		return false;
	memcpy(header, packet, sizeof *header);
	return header->version == WIRE_VERSION && header->bytes == bytes - sizeof *header &&
	       !wire_type_bounds(header->type, &min, &max) && header->bytes >= min && header->bytes <= max;
}

static void on_readable(evutil_socket_t fd, short events, void *context)
{
	static _Alignas(16) char packet[MAX_PACKET];
	struct client *c = context;
	struct msg_header header;

	(void)events;
	for (int i = 0; i < 64 && c->fd == fd; i++) { /* then other events get their turn */
		ssize_t n = recv(fd, packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* The daemon closed without reading all that we sent. The error comes first, and once; its last words after it. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n <= 0) {
			closed(c);
			return;
		}
		if ((size_t)n > sizeof packet || !packet_is_sound(packet, n, &header)) {
			log_error("a message from the node daemon is malformed; are all programs of one build?");
			closed(c);
			return;
		}
		c->on_message(c->context, &header, packet + sizeof header);
	}
}

/* Returns false when the socket is full or gone. */
static bool send_first(struct client *c)
{
	struct client_packet *packet = c->first;
	ssize_t n = send(c->fd, packet->data, packet->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	c->queued_bytes -= packet->bytes;
	c->first = packet->next; /* a broken connection shows itself at the reading side */
	if (!c->first)
		c->last = NULL;
	free(packet);
	return true;
}

static void on_writable(evutil_socket_t fd, short events, void *context)
{
	struct client *c = context;

	(void)fd, (void)events;
	while (c->first && send_first(c))
		;
	if (c->first)
		event_add(c->writable, NULL);
}

void client_send(struct client *c, enum msg_type type, vnode_t to, const void *body, size_t body_bytes, const void *payload,
		 size_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .bytes = body_bytes + payload_bytes, .to = to };
	struct client_packet *packet;

	if (c->fd < 0)
		return;
	packet = malloc(sizeof *packet + sizeof header + header.bytes);
	if (!packet)
		die("no memory");
	packet->next = NULL;
	packet->bytes = sizeof header + header.bytes;
	memcpy(packet->data, &header, sizeof header);
	memcpy(packet->data + sizeof header, body, body_bytes);
	if (payload_bytes)
		memcpy(packet->data + sizeof header + body_bytes, payload, payload_bytes);
	if (c->last)
		c->last->next = packet;
	else
		c->first = packet;
	c->last = packet;
	c->queued_bytes += packet->bytes;
	on_writable(c->fd, 0, c);
}

bool client_has_room(const struct client *c)
{
	return c->queued_bytes < ENOUGH_QUEUED;
}

void client_flush(struct client *c, int timeout_ms)
{
	while (c->fd >= 0 && c->first) {
		struct pollfd pollfd = { .fd = c->fd, .events = POLLOUT };

		if (!send_first(c) && poll(&pollfd, 1, timeout_ms) <= 0)
			return;
	}
}

int client_connect(struct client *c, struct event_base *base, const char *rundir, uint32_t kind)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct msg_hello hello = { WIRE_VERSION, PEER_CLI, kind, 0 };
	int fd;

	snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", rundir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		int error = -errno;

		close(fd);
		return error;
	}
	c->base = base;
	c->fd = fd;
	c->first = c->last = NULL;
	c->queued_bytes = 0;
	c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(base, fd, EV_WRITE, on_writable, c);
	if (!c->readable || !c->writable || event_add(c->readable, NULL))
		die("no memory");
	client_send(c, MSG_HELLO, VNODE_CLI, &hello, sizeof hello, NULL, 0);
	return 0;
}

void client_close(struct client *c)
{
	if (c->fd < 0)
		return;
	event_free(c->readable);
	event_free(c->writable);
	c->readable = c->writable = NULL;
	close(c->fd);
	c->fd = -1;
	while (c->first) {
		struct client_packet *packet = c->first;

		c->first = packet->next;
		free(packet);
	}
	c->last = NULL;
}
