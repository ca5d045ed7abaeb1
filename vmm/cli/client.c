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

/* Above this many queued bytes client_has_room() says no.  A daemon takes less before its sender
 * asks again. */
enum { ENOUGH_QUEUED = 1 << 20 };

struct event_base *client_new_loop(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		return NULL;
	event_config_avoid_method(config, "epoll"); /* epoll refuses regular files */
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

static void on_readable(evutil_socket_t fd, short events, void *context)
{
	static struct packet_buffer packet;
	struct client *c = context;
	struct message m;
	char why[160];

	(void)events;
	/* at most 64 packets: other events get their turn */
	for (int i = 0; i < 64 && c->fd == fd; i++) {
		int result = packet_receive(fd, &packet, c->link, &m, false, why, sizeof why);

		if (result == 0)
			return;
		if (result < 0) {
			if (result == -EPROTO || result == -EPROTONOSUPPORT)
				snprintf(c->wrong, sizeof c->wrong, "the machine's node daemon: %s",
					 why);
			closed(c);
			return;
		}
		/* packet_receive() has checked the version, and a HELLO says nothing else */
		if (m.header.type != MSG_HELLO)
			c->on_message(c->context, &m);
	}
}

static void on_writable(evutil_socket_t fd, short events, void *context)
{
	struct client *c = context;

	(void)events;
	if (packet_queue_write(&c->queue, fd))
		event_add(c->writable, NULL);
}

void client_send(struct client *c, enum msg_type type, vnode_t to, const void *body,
		 size_t body_bytes, const void *payload, size_t payload_bytes)
{
	struct msg_header header = packet_header(type, to, 0, body_bytes + payload_bytes);

	if (c->fd < 0)
		return;
	/* If the connection is broken, the reading side notices. */
	if (packet_queue_send(&c->queue, c->fd, SIZE_MAX, &header, body, body_bytes, payload,
			      payload_bytes) == -ENOBUFS)
		die("no memory");
	if (c->queue.first)
		event_add(c->writable, NULL);
}

bool client_has_room(const struct client *c)
{
	return c->queue.bytes < ENOUGH_QUEUED;
}

void client_flush(struct client *c, int timeout_ms)
{
	struct pollfd pollfd = { .fd = c->fd, .events = POLLOUT };

	while (c->fd >= 0 && packet_queue_write(&c->queue, c->fd))
		if (poll(&pollfd, 1, timeout_ms) <= 0)
			return;
}

int client_connect(struct client *c, struct event_base *base, const char *rundir, uint32_t kind)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct msg_hello hello = { wire_version, PEER_CLI, kind, 0 };
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
	c->loop = loop_on_event_base(base);
	c->fd = fd;
	c->queue = (struct packet_queue){ 0 };
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
	packet_queue_clear(&c->queue);
}
