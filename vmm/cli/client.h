/* client.h - a connection to a machine's control socket (node 0), in a libevent loop.
 *
 * Each packet is checked (base/packet.h) and handed to on_message; packets to send are queued, so that a slow daemon never
 * blocks the loop.
 */
#ifndef VMM_CLI_CLIENT_H
#define VMM_CLI_CLIENT_H

#include <event2/event.h>
#include "base/packet.h"
#include "vmm/shared/problem.h"

/* HELLO's index: the one `vmp run` that owns the machine, `vmp console`, another command (enum client_kind in node.h). */
enum { CLIENT_RUN, CLIENT_CONSOLE, CLIENT_QUERY };
enum { STREAM_WINDOW = 65536 }; /* bytes that may be under way in a stream before the first STREAM_ROOM */

struct client {
	struct event_base *base;
	int fd;
	struct event *readable, *writable;
	struct packet_queue queue; /* to be sent */
	char wrong[200];	   /* why this side has ended it: the daemon broke the rules, or is of another version; or "" */
	enum wire_link link;	   /* what this client may be told */
	void *context;
	/* `m` is valid during the call. HELLO is not told. */
	void (*on_message)(void *context, const struct message *m);
	void (*on_closed)(void *context);
};

/* 0, or -errno: -ENOENT and -ECONNREFUSED while the daemon is not there yet. Sends HELLO. */
int client_connect(struct client *c, struct event_base *base, const char *rundir, uint32_t kind);
void client_close(struct client *c);

/* Queue a message with its fixed body and its payload. */
void client_send(struct client *c, enum msg_type type, vnode_t to, const void *body, size_t body_bytes, const void *payload,
		 size_t payload_bytes);
bool client_has_room(const struct client *c); /* whoever has much to send waits while there is none */
/* Send what is queued, waiting at most `timeout_ms`. */
void client_flush(struct client *c, int timeout_ms);

/* A loop whose backend can watch regular files too (standard input may be one). NULL without memory. */
struct event_base *client_new_loop(void);

#endif
