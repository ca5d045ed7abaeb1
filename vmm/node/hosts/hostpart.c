/* hostpart.c - what each daemon does when a host is added or removed; hosts.h describes the
 * steps. */
#include "vmm/node/hosts/hosts.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/shared/hostmem.h"

enum { STEP_US = 1000, STEPS_PER_REPORT = 200 };

struct hostpart {
	uint32_t others; /* the hosts whose marks a leaver waits for */
	uint32_t marks;
	unsigned steps;
	uint64_t stepped_ns; /* when the last step was made */
	bool leaves;
};

static uint32_t bit_of(unsigned host) { return 1u << host; }

static void tell(struct node *node, unsigned to, enum host_op op, uint32_t nodes)
{
	struct msg_host body = { .host = node->o.node, .op = op, .nodes = nodes };

	net_send(node->net, VNODE_DAEMON(to), MSG_HOST, &body, sizeof body, NULL, 0);
}

/* ---- homes ---- */

void hostpart_on_home_give(struct node *node, const struct message *m, const struct msg_home *home)
{
	(void)m;
	bool sound = home->interval < DSM_INTERVALS && home->to < MAX_NODES &&
		     home->to != node->o.node && !node->ending;

	if (!sound || dsm_home_give(node->dsm, home->interval, home->to))
		log_error("interval %u of homes shall go to host %u: it is not here",
			  home->interval, home->to);
	if (node->hostpart->leaves)
		fault_die_at(FAULT_HOST_LEAVE_DIES, 1);
}

void hostpart_on_home_state(struct node *node, const struct message *m, const struct msg_home *home)
{
	int result;

	if (node->o.join)
		fault_die_at(FAULT_HOST_JOIN_DIES, 4);
	result = dsm_on_home_state(node->dsm, home, m->payload, m->payload_bytes);
	if (result < 0)
		node_end(node, END_FAILURE, 0, "host %u sent damaged homes to host %u; this is a "
			 "bug in vmp", m->from,
			 node->o.node);
	else if (result)
		net_send(node->net, VNODE_DAEMON(0), MSG_HOME_TAKEN, home, sizeof *home, NULL, 0);
}

void hostpart_on_home_taken(struct node *node, const struct message *m, const struct msg_home *home)
{
	hosts_on_home_taken(node, m->from, home);
}

/* ---- leaving ---- */

static void on_leave_step(void *ctx)
{
	struct node *node = ctx;
	struct hostpart *part = node->hostpart;
	uint32_t elapsed_us;
	uint64_t now;

	if (!part->leaves || node->ending)
		return;
	now = node_now_ns(node);
	elapsed_us = part->steps ? (uint32_t)((now - part->stepped_ns) / 1000) : STEP_US;
	part->stepped_ns = now;
	if (dsm_leave_step(node->dsm, elapsed_us)) {
		tell(node, 0, HOST_EMPTY, 0);
		return;
	}
	if (++part->steps % STEPS_PER_REPORT == 0)
		tell(node, 0, HOST_PROGRESS, dsm_pages_here(node->dsm));
	if (loop_once(&node->loop, STEP_US * 1000, on_leave_step, node))
		die("no memory for events");
}

static void on_leave(struct node *node)
{
	fault_die_at(FAULT_HOST_LEAVE_DIES, 2);
	node->hostpart->steps = 0;
	dsm_leave(node->dsm, true);
	on_leave_step(node);
}

/* A host has sent its last message to this one.  When all have, nothing more arrives here, and this
 * host says farewell.  (TRICKS: heard-out) */
static void on_mark(struct node *node, unsigned from)
{
	struct hostpart *part = node->hostpart;

	fault_die_at(FAULT_HOST_LEAVE_DIES, 3);
	part->marks |= bit_of(from);
	if (part->marks != part->others)
		return;
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (part->others & bit_of(peer))
			tell(node, peer, HOST_FAREWELL, 0);
}

static void on_forget(struct node *node, unsigned leaver)
{
	dsm_forget_node(node->dsm, leaver);
	tell(node, leaver, HOST_MARK, 0);
	if (node->o.node) /* node 0 must notice its death until the end */
		node->hosts &= ~bit_of(leaver);
}

/* Returns for how many more pages this computer has memory; UINT32_MAX if that is not known. */
static uint32_t free_pages(const struct node *node)
{
	struct hostmem memory;

	node->outside->memory(&memory, "");
	if (fault_on(FAULT_HOST_FULL))
		memory.mib = 0;
	return memory.mib < UINT32_MAX >> (20 - PAGE_BITS)
		       ? (uint32_t)memory.mib << (20 - PAGE_BITS)
		       : UINT32_MAX;
}

/* ---- all hosts ---- */

static void on_news(struct node *node, const struct msg_host *news, const void *homes,
		    uint32_t bytes)
{
	struct msg_host heard = { .host = node->o.node, .seq = news->seq, .op = HOST_HEARD };
	struct home_place places[DSM_INTERVALS];
	struct hostpart *part = node->hostpart;

	if (bytes != sizeof places || !(news->present & bit_of(node->o.node))) {
		log_error("news of the hosts that make no sense: ignored");
		return;
	}
	if (node->o.join && !(node->hosts & bit_of(node->o.node)))
		fault_die_at(FAULT_HOST_JOIN_DIES, 3);
	memcpy(places, homes, sizeof places);
	dsm_homes_learn(node->dsm, places);
	dsm_set_nodes(node->dsm, news->nodes);
	node->hosts = news->present;
	part->leaves = news->host == node->o.node && !(news->nodes & bit_of(node->o.node));
	part->others = news->present & ~bit_of(node->o.node);
	part->marks = 0;
	heard.nodes = dsm_pages_here(node->dsm);
	heard.present = free_pages(node);
	net_send(node->net, VNODE_DAEMON(0), MSG_HOST, &heard, sizeof heard, NULL, 0);
}

void hostpart_on_host(struct node *node, const struct message *m, const struct msg_host *body)
{
	struct msg_host step = *body;

	if (step.host >= MAX_NODES || node->ending)
		return;
	switch (step.op) {
	case HOST_NEWS: on_news(node, &step, m->payload, m->payload_bytes); return;
	case HOST_LEAVE: on_leave(node); return;
	case HOST_FORGET: on_forget(node, step.host); return;
	case HOST_MARK: on_mark(node, m->from); return;
	case HOST_FAREWELL: tell(node, 0, HOST_GONE, 0); return;
	case HOST_END:
		fault_die_at(FAULT_HOST_LEAVE_DIES, 4);
		node_end_here(node);
		return;
	}
	step.host = m->from;
	if (node->o.node == 0)
		hosts_on_step(node, &step);
}

bool hostpart_peer_lost(struct node *node, unsigned peer)
{
	static const char line[] = "its connection was lost";

	if (node_has_host(node, peer))
		return false;
	if (node->o.node == 0)
		hosts_join_failed(node, peer, line, sizeof line - 1);
	return true;
}

void hostpart_on_start(const struct node *node)
{
	if (node->o.join)
		fault_die_at(FAULT_HOST_JOIN_DIES, 2);
}

void hostpart_start(struct node *node)
{
	node->hostpart = calloc(1, sizeof *node->hostpart);
	if (!node->hostpart)
		die("out of memory");
	if (node->o.join)
		fault_die_at(FAULT_HOST_JOIN_DIES, 1);
}
