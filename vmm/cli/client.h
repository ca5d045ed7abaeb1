/* client.h - a connection to a machine's control socket (node 0), in a libevent loop.
 *
 * Each packet is checked (base/packet.h) and handed to on_message.  Packets to send are queued, so
 * that a slow daemon never blocks the loop.
 */
#ifndef VMM_CLI_CLIENT_H
#define VMM_CLI_CLIENT_H

#include <event2/event.h>
#include "base/packet.h"
#include "vmm/shared/loop.h"
#include "vmm/shared/problem.h"

/* What a client is, as HELLO's index says: the one `vmp run` that owns the machine, `vmp console`,
 * or another command (enum client_kind in node.h). */
enum { CLIENT_RUN, CLIENT_CONSOLE, CLIENT_QUERY };
/* bytes that a stream may have on the way before the first STREAM_ROOM */
enum { STREAM_WINDOW = 65536 };

struct client {
	struct event_base *base; /* where `loop` runs */
	struct loop loop;
	int fd;
	struct event *readable, *writable;
	struct packet_queue queue; /* to be sent */
	/* why this side ended the connection: the daemon broke the rules, or has another version;
	 * or "" */
	char wrong[200];
	enum wire_link link;	   /* which messages this client may receive */
	void *context;
	/* `m` is valid during the call.  A HELLO is not handed on. */
	void (*on_message)(void *context, const struct message *m);
	void (*on_closed)(void *context);
};

/* Connects and sends HELLO. Returns 0 or -errno: -ENOENT and -ECONNREFUSED while the daemon is not
 * there yet. */
int client_connect(struct client *c, struct event_base *base, const char *rundir, uint32_t kind);
void client_close(struct client *c);

/* Queues a message with its fixed body and its payload. */
void client_send(struct client *c, enum msg_type type, vnode_t to, const void *body,
		 size_t body_bytes, const void *payload, size_t payload_bytes);
/* Returns whether more should be queued; a sender of much data waits while it is false. */
bool client_has_room(const struct client *c);
/* Sends what is queued; waits at most `timeout_ms`. */
void client_flush(struct client *c, int timeout_ms);

/* Returns a loop that can watch regular files too, since standard input may be one.  Returns NULL
 * without memory. */
struct event_base *client_new_loop(void);

#endif
