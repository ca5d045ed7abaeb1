/* net.c - see net.h. */
#include "vmm/node/wire/net.h"

#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"

enum { LATE_BODY = 16 };

/* Messages to one node that leave with the next one. */
struct late {
	unsigned count;
	struct { struct msg_header header; uint8_t body[LATE_BODY]; } message[NET_LATE_MOST];
};

struct net {
	unsigned node, n_nodes;
	net_deliver_fn deliver;
	void *ctx;
	net_carrier_fn carrier;
	void (*overflow)(void *ctx, unsigned peer);
	void (*cork)(void *ctx, bool on);
	bool overflown;
	struct { int node /* -1: where it was at the start */; uint32_t move; } cpu[MAX_CPUS];
	struct net_counts counts[MAX_NODES];
	struct late late[MAX_NODES];
};

int net_vnode_node(vnode_t to, unsigned n_nodes)
{
	if (to >= 0 && to < MAX_NODES)
		return (int)to; /* VNODE_DAEMON */
	if (to >= VNODE_CPU(0) && to < VNODE_CPU(MAX_CPUS))
		return (int)((to - VNODE_CPU(0)) % n_nodes);
	if (to == VNODE_IOSRV || to == VNODE_CLI)
		return 0;
	return -1;
}

void net_cpu_at(struct net *net, unsigned cpu, unsigned node, uint32_t move)
{
	bug_on(cpu >= MAX_CPUS || node >= MAX_NODES);
	if (move < net->cpu[cpu].move)
		return;
	net->cpu[cpu].node = (int)node;
	net->cpu[cpu].move = move;
}

int net_node_of(const struct net *net, vnode_t to)
{
	if (to >= VNODE_CPU(0) && to < VNODE_CPU(MAX_CPUS) && net->cpu[to - VNODE_CPU(0)].node >= 0)
		return net->cpu[to - VNODE_CPU(0)].node;
	return net_vnode_node(to, net->n_nodes);
}

struct net *net_new(unsigned node, unsigned n_nodes, net_deliver_fn deliver, void *ctx)
{
	struct net *net = calloc(1, sizeof *net);

	if (!net)
		die("out of memory");
	net->node = node;
	net->n_nodes = n_nodes;
	net->deliver = deliver;
	net->ctx = ctx;
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		net->cpu[cpu].node = -1;
	return net;
}

void net_free(struct net *net)
{
	free(net);
}

void net_carry(struct net *net, net_carrier_fn carrier, void (*overflow)(void *ctx, unsigned peer))
{
	net->carrier = carrier;
	net->overflow = overflow;
}

const struct net_counts *net_counts(const struct net *net, unsigned peer)
{
	return &net->counts[peer];
}

void net_carry_together(struct net *net, void (*cork)(void *ctx, bool on))
{
	net->cork = cork;
}

static void carry(struct net *net, unsigned peer, const struct msg_header *header,
		  const void *body, uint32_t body_bytes, const void *payload,
		  uint32_t payload_bytes)
{
	struct net_count *count = &net->counts[peer].sent[header->type];

	if (!net->carrier)
		return;
	if (net->carrier(net->ctx, peer, header, body, body_bytes, payload, payload_bytes) &&
	    !net->overflown) {
		net->overflown = true;
		net->overflow(net->ctx, peer);
	}
	count->messages++;
	count->bytes += sizeof *header + header->bytes;
}

void net_flush_late(struct net *net, unsigned peer)
{
	struct late *late = &net->late[peer];
	unsigned count = late->count;
	bool corks = count > 1 && net->cork;

	late->count = 0;
	if (corks)
		net->cork(net->ctx, true);
	for (unsigned i = 0; i < count && !fault_on(FAULT_LATE_FORGETS); i++)
		carry(net, peer, &late->message[i].header, late->message[i].body,
		      late->message[i].header.bytes, NULL, 0);
	if (corks)
		net->cork(net->ctx, false);
}

/* (TRICKS: one-order) */
static void send_to_peer(struct net *net, unsigned peer, const struct msg_header *header,
			 const void *body, uint32_t body_bytes, const void *payload,
			 uint32_t payload_bytes)
{
	bool corks = net->late[peer].count && net->cork;

	if (corks)
		net->cork(net->ctx, true);
	net_flush_late(net, peer);
	carry(net, peer, header, body, body_bytes, payload, payload_bytes);
	if (corks)
		net->cork(net->ctx, false);
}

static void drop(const struct msg_header *header)
{
	log_error("%s to nobody (virtual node %llx): dropped", wire_type_name(header->type),
		  (unsigned long long)header->to);
}

static void deliver(struct net *net, const struct msg_header *header, const void *body)
{
	struct message m = packet_message(header, body);

	net->deliver(net->ctx, &m);
}

void net_send(struct net *net, vnode_t to, enum msg_type type, const void *body,
	      uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	struct msg_header header = packet_header(type, to, net->node, body_bytes + payload_bytes);
	int node = net_node_of(net, to);
	/* A message's payload must follow its body in memory; only local messages with a payload
	 * pay for this copy. */
	struct packet_buffer whole;

	if (node < 0) {
		drop(&header);
	} else if ((unsigned)node != net->node) {
		send_to_peer(net, node, &header, body, body_bytes, payload, payload_bytes);
	} else if (!payload_bytes) {
		deliver(net, &header, body);
	} else {
		bug_on(body_bytes + payload_bytes > sizeof whole);
		memcpy(whole.bytes, body, body_bytes);
		memcpy(whole.bytes + body_bytes, payload, payload_bytes);
		deliver(net, &header, whole.bytes);
	}
}

void net_send_late(struct net *net, vnode_t to, enum msg_type type, const void *body,
		   uint32_t body_bytes)
{
	int node = net_node_of(net, to);
	struct late *late;

	bug_on(body_bytes > LATE_BODY);
	if (node < 0 || (unsigned)node == net->node)
		return net_send(net, to, type, body, body_bytes, NULL, 0);
	late = &net->late[node];
	if (late->count == NET_LATE_MOST)
		net_flush_late(net, (unsigned)node);
	late->message[late->count].header = packet_header(type, to, net->node, body_bytes);
	memcpy(late->message[late->count++].body, body, body_bytes);
}

void net_forward(struct net *net, const struct message *m)
{
	int node = net_node_of(net, m->header.to);

	if (node < 0)
		drop(&m->header);
	else if ((unsigned)node == net->node)
		net->deliver(net->ctx, m);
	else
		send_to_peer(net, node, &m->header, m->body, m->header.bytes, NULL, 0);
}

void net_receive(struct net *net, unsigned peer, const struct message *m)
{
	struct net_count *count = &net->counts[peer].received[m->header.type];

	count->messages++;
	count->bytes += sizeof m->header + m->header.bytes;
	net_forward(net, m);
}
