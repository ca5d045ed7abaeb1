/* net.h - messages between nodes: send to a virtual node; one handler per message type; nothing else.
 *
 * This is the interface that the Phoenix library will stand behind: whoever sends names a role (VNODE_CPU(3), VNODE_IOSRV,
 * a daemon), never a host, and does not learn where the role is played.  Today every daemon has a direct connection
 * to every other (peer.c makes them), and of the roles those of CPUs move: each node knows where it believes each CPU to be, and
 * passes on what comes for one that it has sent away.
 *
 * Rules of use:
 *  - A message to a role of this node is delivered before net_send() returns: a handler must not send what leads back to
 *    itself.  Between two nodes messages arrive once and in the order in which they were sent.
 *  - Handlers get messages whose size and version are checked (conn.h); they copy the body before they use it.
 *  - A peer that does not take its messages for so long that 8 MiB wait ends the machine: nothing between nodes is dropped.
 */
#ifndef VMM_NET_H
#define VMM_NET_H

#include "base/types.h"
#include "base/wire.h"

struct conn;
struct net;

typedef void (*net_handler_fn)(void *ctx, const struct msg_header *header, const void *body);

enum { NET_TYPES = 96 };

struct net_count { uint64_t messages, bytes; }; /* bytes with headers */
struct net_counts { struct net_count sent[NET_TYPES], received[NET_TYPES]; };

/* The node that plays a role when the machine starts; -1 if it names none. Pure. */
int net_vnode_node(vnode_t to, unsigned n_nodes);

/* A CPU lives on `node` since move number `move`. Older news than this node has are ignored. */
void net_cpu_at(struct net *net, unsigned cpu, unsigned node, uint32_t move);
/* Where a message to this role goes from here; -1 as above. */
int net_node_of(const struct net *net, vnode_t to);

struct net *net_new(unsigned node, unsigned n_nodes, void *ctx);
void net_free(struct net *net);

/* `handler` serves messages of `type` for the roles of this node. */
void net_on(struct net *net, enum msg_type type, net_handler_fn handler);
/* Called once when a peer's queue overflows: the machine cannot go on. */
void net_on_overflow(struct net *net, void (*overflow)(void *ctx, unsigned peer));

void net_send(struct net *net, vnode_t to, enum msg_type type, const void *body, uint32_t body_bytes, const void *payload,
	      uint32_t payload_bytes);
/* Pass on a message as it came (header->to decides). */
void net_forward(struct net *net, const struct msg_header *header, const void *body);

/* --- for peer.c, which owns the connections --- */
void net_set_peer(struct net *net, unsigned peer, struct conn *conn /* or NULL */);
struct conn *net_peer(struct net *net, unsigned peer);
void net_receive(struct net *net, unsigned peer, const struct msg_header *header, const void *body);

const struct net_counts *net_counts(const struct net *net, unsigned peer);

#endif
