/* net.h - messages between nodes: sends to a virtual node, and counts messages; nothing else.
 *
 * A sender names a role (VNODE_CPU(3), VNODE_IOSRV, a daemon), never a host, and does not learn
 * which host has the role.  Between hosts a message is one of the Phoenix library's (overlay.c),
 * tagged with its type, to the virtual node VNODE_DAEMON(k) of the host that has the role.  Only
 * the CPUs' roles move.  Each node knows where it believes each CPU to be, and forwards messages
 * for a CPU that it has sent away.
 *
 * A daemon assumes VNODE_DAEMON(k) alone, and not its roles too, for this reason: Phoenix keeps the
 * order of messages from one node to one virtual node, and returns messages for a virtual node that
 * moves to their senders.  The page protocol, a CPU's state ahead of its interrupts, and a
 * snapshot's marks need the order of all messages from one host to another, whatever their role.
 *
 * Rules of use:
 *  - A message to a role of this node is delivered before net_send() returns: a handler must not
 *    send a message that leads back to itself.
 *  - Between two nodes messages arrive once, in the order in which they were sent.
 *  - What is delivered has been checked by packet_check(), or was made here.
 *  - If a host does not take its messages for so long that 64 MiB are waiting, the machine ends:
 *    nothing between nodes is dropped.
 */
#ifndef VMM_NODE_WIRE_NET_H
#define VMM_NODE_WIRE_NET_H

#include "base/packet.h"
#include "base/types.h"

enum { NET_LATE_MOST = 64 }; /* messages to one node that wait for the next one */

struct net;

/* Gets the messages for the roles of this node (vmm/node/wire/dispatch.c). m->from is the sending
 * node. */
typedef void (*net_deliver_fn)(void *ctx, const struct message *m);

struct net_count { uint64_t messages, bytes; }; /* bytes with headers */
struct net_counts { struct net_count sent[MESSAGE_TYPES], received[MESSAGE_TYPES]; };

/* Returns the node that has a role when the machine starts; -1 if there is no such role.  Pure. */
int net_vnode_node(vnode_t to, unsigned n_nodes);

/* Notes that a CPU has been on `node` since move number `move`.  Ignores it if this node knows of a
 * later move. */
void net_cpu_at(struct net *net, unsigned cpu, unsigned node, uint32_t move);
/* Returns the node to which a message to this role goes from here; -1 if there is no such role. */
int net_node_of(const struct net *net, vnode_t to);

struct net *net_new(unsigned node, unsigned n_nodes, net_deliver_fn deliver, void *ctx);
void net_free(struct net *net);

/* Carries messages to another node.  Returns 0, or -ENOBUFS when it takes no more.  Without a
 * carrier they are dropped. */
typedef int (*net_carrier_fn)(void *ctx, unsigned peer, const struct msg_header *header,
			      const void *body, uint32_t body_bytes, const void *payload,
			      uint32_t payload_bytes);
/* `overflow` is called once when the carrier takes no more: the machine cannot go on. */
void net_carry(struct net *net, net_carrier_fn carrier, void (*overflow)(void *ctx, unsigned peer));
/* What is sent between cork(true) and cork(false) leaves together.  Without it late messages leave
 * just before the next one. */
void net_carry_together(struct net *net, void (*cork)(void *ctx, bool on));
/* Takes a message from a peer: for a role of this node, or to be forwarded. */
void net_receive(struct net *net, unsigned peer, const struct message *m);

void net_send(struct net *net, vnode_t to, enum msg_type type, const void *body,
	      uint32_t body_bytes, const void *payload, uint32_t payload_bytes);
/* The same for a message that nobody waits for, which has no payload and a small body: it leaves
 * together with the next message to that node, before it, or at net_flush_late(). */
void net_send_late(struct net *net, vnode_t to, enum msg_type type, const void *body,
		   uint32_t body_bytes);
void net_flush_late(struct net *net, unsigned peer);
/* Forwards a message unchanged (m->header.to decides where). */
void net_forward(struct net *net, const struct message *m);

const struct net_counts *net_counts(const struct net *net, unsigned peer);

#endif
