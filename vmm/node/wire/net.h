/* net.h - messages between nodes: send to a virtual node; count; nothing else.
 *
 * Whoever sends names a role (VNODE_CPU(3), VNODE_IOSRV, a daemon), never a host, and does not learn where the role is
 * played.  Between hosts a message is one of the Phoenix library's (overlay.c), tagged with its type, to the virtual node
 * VNODE_DAEMON(k) of the host that plays the role; of the roles those of CPUs move: each node knows where it believes each CPU to
 * be, and passes on what comes for one that it has sent away.
 *
 * Why a daemon assumes VNODE_DAEMON(k) alone, and not its roles too: Phoenix keeps the order of the messages of one node to one
 * virtual node, and what comes for one that moves it sends back to its senders.  The page protocol, a CPU's state before its
 * interrupts, and a snapshot's marks need the order of all that one host sends to another, whatever role it is for.
 *
 * Rules of use:
 *  - A message to a role of this node is delivered before net_send() returns: a handler must not send what leads back to
 *    itself.  Between two nodes messages arrive once and in the order in which they were sent.
 *  - What is delivered has been checked by packet_check(), or was made here.
 *  - Hosts that do not take their messages for so long that 64 MiB wait end the machine: nothing between nodes is dropped.
 */
#ifndef VMM_NODE_WIRE_NET_H
#define VMM_NODE_WIRE_NET_H

#include "base/packet.h"
#include "base/types.h"

struct net;

/* Gets the messages for the roles of this node (vmm/node/wire/dispatch.c). m->from: the node that sent it. */
typedef void (*net_deliver_fn)(void *ctx, const struct message *m);

struct net_count { uint64_t messages, bytes; }; /* bytes with headers */
struct net_counts { struct net_count sent[MESSAGE_TYPES], received[MESSAGE_TYPES]; };

/* The node that plays a role when the machine starts; -1 if it names none. Pure. */
int net_vnode_node(vnode_t to, unsigned n_nodes);

/* A CPU lives on `node` since move number `move`. Older news than this node has are ignored. */
void net_cpu_at(struct net *net, unsigned cpu, unsigned node, uint32_t move);
/* Where a message to this role goes from here; -1 as above. */
int net_node_of(const struct net *net, vnode_t to);

struct net *net_new(unsigned node, unsigned n_nodes, net_deliver_fn deliver, void *ctx);
void net_free(struct net *net);

/* What carries messages to another node: 0, or -ENOBUFS when it does not take them any more. Without one they go nowhere. */
typedef int (*net_carrier_fn)(void *ctx, unsigned peer, const struct msg_header *header, const void *body, uint32_t body_bytes,
			      const void *payload, uint32_t payload_bytes);
/* `overflow` is called once when the carrier takes no more: the machine cannot go on. */
void net_carry(struct net *net, net_carrier_fn carrier, void (*overflow)(void *ctx, unsigned peer));
/* A message from a peer: for a role of this node, or to be passed on. */
void net_receive(struct net *net, unsigned peer, const struct message *m);

void net_send(struct net *net, vnode_t to, enum msg_type type, const void *body, uint32_t body_bytes, const void *payload,
	      uint32_t payload_bytes);
/* Pass on a message as it came (m->header.to decides). */
void net_forward(struct net *net, const struct message *m);

const struct net_counts *net_counts(const struct net *net, unsigned peer);

#endif
