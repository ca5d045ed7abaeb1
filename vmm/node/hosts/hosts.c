/* hosts.c - node 0 leads the changes of the machine's hosts: the queue, the messages, the end of a
 * change. hosts.h describes the steps. */
#include "vmm/node/hosts/hostlead.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/wire/conn.h"

enum { NOBODY = MAX_CLIENTS, PROGRESS_AFTER_NS = 2000000000, PROGRESS_S = 1 };

static const char *const stage_texts[] = {
	[STAGE_LAUNCH] = "its daemon starts", [STAGE_CONNECT] = "it connects to the others",
	[STAGE_START] = "it gets ready", [STAGE_TELL] = "the others hear of it",
	[STAGE_CPUS] = "its processors move away", [STAGE_HOMES] = "page homes move",
	[STAGE_PAGES] = "its pages move", [STAGE_FORGET] = "the others take leave of it",
	[STAGE_RETIRE] = "it ends", [STAGE_END] = "it ends",
	[STAGE_BACK] = "its processors move back", [STAGE_CLEAR] = "its daemon ends",
	[STAGE_YIELD] = "the machine goes over to the others",
};

/* ---- messages ---- */

static void tell(struct node *node, unsigned to, enum host_op op, const void *payload,
		 uint32_t bytes)
{
	struct hosts *h = node->hosts_state;
	struct msg_host body = { .host = h->host,
				 .seq = h->news,
				 .op = op,
				 .nodes = h->staying,
				 .present = node->hosts };

	net_send(node->net, VNODE_DAEMON(to), MSG_HOST, &body, sizeof body, payload, bytes);
}

void hosts_tell_all(struct node *node, uint32_t hosts, enum host_op op, const void *payload,
		    uint32_t bytes)
{
	for (unsigned host = 0; host < MAX_NODES; host++)
		if (hosts & bit_of(host))
			tell(node, host, op, payload, bytes);
}

void hosts_see_who_stays(struct node *node, unsigned first)
{
	struct hosts *h = node->hosts_state;

	h->staying = hostplan_staying(&h->queue, first, node->hosts);
}

void hosts_tell_news(struct node *node, uint32_t to)
{
	struct hosts *h = node->hosts_state;

	h->news++;
	h->heard = 0;
	h->told = h->staying;
	hosts_tell_all(node, to, HOST_NEWS, h->place, sizeof h->place);
}

void hosts_tell_owner(struct node *node, enum host_op op, int error)
{
	struct hosts *h = node->hosts_state;
	struct { struct msg_host body; char name[64]; } packet = {
		.body = { .host = h->host, .op = op, .error = error, .nodes = node->hosts },
	};
	struct msg_header header = packet_header(MSG_HOST, VNODE_CLI, node->o.node,
						 sizeof packet.body);

	if (op == HOST_LAUNCH) {
		memcpy(packet.name, h->queue.wait[0].name, sizeof packet.name);
		header.bytes += strnlen(packet.name, sizeof packet.name);
	}
	clients_send_run(node, &header, &packet);
}

static void answer(struct node *node, const struct host_request *request, enum host_op op,
		   int error, const char *line)
{
	struct { struct msg_host body; char line[240]; } packet = {
		.body = { .host = node->hosts_state->host,
			  .seq = clients_tag(node, request->client, request->body.seq), .op = op,
			  .error = error },
	};
	struct msg_header header = packet_header(MSG_HOST, VNODE_CLI, node->o.node,
						 sizeof packet.body +
							 strnlen(line, sizeof packet.line));

	memcpy(packet.line, line, header.bytes - sizeof packet.body);
	if (request->client != NOBODY)
		clients_send_answer(node, &header, &packet);
}

static struct msg_hosts describe(const struct node *node)
{
	return (struct msg_hosts){ .present = node->hosts,
				   .came = node->hosts_state->came,
				   .went = node->hosts_state->went,
				   .policy = policy_now(node) };
}

void hosts_tell_client(struct node *node, struct conn *conn)
{
	struct msg_hosts hosts = describe(node);
	struct msg_header header = packet_header(MSG_HOSTS, VNODE_CLI, node->o.node, sizeof hosts);

	conn_send(conn, &header, &hosts, sizeof hosts, NULL, 0);
}

void hosts_tell_clients(struct node *node)
{
	struct msg_hosts hosts = describe(node);

	clients_send_all(node, MSG_HOSTS, &hosts, sizeof hosts, NULL, 0);
}

/* ---- the end of a change ---- */

static void done(struct node *node, int error, const char *line)
{
	struct hosts *h = node->hosts_state;
	struct host_request request = h->queue.wait[0];

	log_info("%s", line);
	h->stage = STAGE_NONE;
	h->staying = node->hosts;
	hostplan_pop(&h->queue);
	if (!h->queue.n)
		loop_disarm(h->progress);
	answer(node, &request, HOST_DONE, error, line);
	hosts_begin(node, AGENDA_CHANGE);
	/* a host whose removal was waiting stays after all */
	if (h->stage == STAGE_NONE && h->told != h->staying)
		hosts_tell_news(node, node->hosts);
	agenda_done(node, AGENDA_CHANGED);
}

void hosts_fail(struct node *node, int error, const char *format, ...)
{
	char line[200];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	done(node, error, line);
}

static unsigned ms_since(const struct node *node)
{
	return (unsigned)((node_now_ns(node) - node->hosts_state->since_ns) / 1000000);
}

/* ---- homes ---- */

static void homes_are_moved(struct node *node);

void hosts_move_homes(struct node *node, const struct home_order *orders, unsigned n)
{
	struct hosts *h = node->hosts_state;

	h->stage = STAGE_HOMES;
	h->homes_moved = h->homes_waiting = n;
	for (unsigned i = 0; i < n; i++) {
		struct msg_home home = { .interval = orders[i].interval, .to = orders[i].to };

		net_send(node->net, VNODE_DAEMON(orders[i].from), MSG_HOME_GIVE, &home, sizeof home,
			 NULL, 0);
	}
	if (!n)
		homes_are_moved(node);
}

void hosts_on_home_taken(struct node *node, unsigned host, const struct msg_home *home)
{
	struct hosts *h = node->hosts_state;

	if (node->ending)
		return;
	if (h->stage != STAGE_HOMES || home->interval >= DSM_INTERVALS || !h->homes_waiting) {
		log_error("host %u took interval %u of homes, which nobody gave it", host,
			  home->interval);
		return;
	}
	h->place[home->interval] = (struct home_place){ host, home->generation };
	if (--h->homes_waiting == 0)
		homes_are_moved(node);
}

static void homes_are_moved(struct node *node)
{
	struct hosts *h = node->hosts_state;
	char line[160];

	hosts_see_who_stays(node, 0);
	hosts_tell_news(node, node->hosts);
	if (!h->comes) {
		h->stage = STAGE_PAGES;
		h->pages_left = 0;
		tell(node, h->host, HOST_LEAVE, NULL, 0);
		return;
	}
	h->came++;
	hosts_tell_clients(node);
	snprintf(line, sizeof line,
		 "host %u is there after %u ms, with %u of the %u intervals of page homes", h->host,
		 ms_since(node), h->homes_moved, DSM_INTERVALS);
	done(node, 0, line);
	policy_host_came(node);
}

/* ---- answers of the owner and the daemons ---- */

static void on_ended(struct node *node, unsigned host, const char *how, unsigned bytes)
{
	struct hosts *h = node->hosts_state;
	char line[160];

	if (node_has_host(node, host)) {
		node_end_lost(node, host, "the daemon of host %u died: %.*s", host, (int)bytes,
			      how);
	} else if (host != h->host || h->stage == STAGE_NONE) {
		log_warn("host %u has ended: %.*s", host, (int)bytes, how);
	} else if (h->comes) {
		if (h->stage != STAGE_CLEAR)
			snprintf(h->why, sizeof h->why, "its daemon ended: %.*s", (int)bytes, how);
		hosts_fail(node, EAGAIN, "host %u does not come: %s", host, h->why);
	} else {
		h->went++;
		hosts_tell_clients(node);
		snprintf(line, sizeof line, "host %u is gone after %u ms", host,
			 ms_since(node));
		done(node, 0, line);
	}
}

static void on_heard(struct node *node, const struct msg_host *heard)
{
	struct hosts *h = node->hosts_state;
	struct home_order orders[DSM_INTERVALS];

	if (heard->seq != h->news)
		return;
	h->heard |= bit_of(heard->host);
	if (heard->host == h->host)
		h->held_pages = heard->nodes;
	else if (h->staying & bit_of(heard->host))
		h->room_pages += heard->present;
	if (h->stage != STAGE_TELL || (h->heard & node->hosts) != node->hosts)
		return;
	if (h->comes)
		hosts_move_homes(node, orders,
				 hostplan_homes_for(h->place, node->hosts, h->host, orders));
	else if (hostplan_has_room(h->held_pages, h->room_pages, h->why, sizeof h->why))
		hosts_stay(node);
	else
		hosts_move_cpus_away(node);
}

void hosts_on_step(struct node *node, const struct msg_host *step)
{
	struct hosts *h = node->hosts_state;

	if (step->op == HOST_HEARD)
		on_heard(node, step);
	else if (step->op == HOST_GONE && h->stage == STAGE_FORGET)
		hosts_on_gone(node, step->host);
	else if (step->op == HOST_EMPTY && h->stage == STAGE_PAGES && step->host == h->host)
		hosts_on_empty(node);
	else if (step->op == HOST_PROGRESS && h->stage == STAGE_PAGES && step->host == h->host)
		h->pages_left = step->nodes;
	else
		log_error("unexpected step %u of host %u", step->op, step->host);
}

/* ---- the queue ---- */

static void tell_those_who_wait(struct node *node)
{
	const struct hosts *h = node->hosts_state;
	char line[160];

	for (unsigned i = 1; i < h->queue.n && h->stage != STAGE_NONE; i++) {
		snprintf(line, sizeof line,
			 "hosts come and go one after the other: host %u %s, %u before this one",
			 h->host, h->comes ? "comes" : "goes", i);
		answer(node, &h->queue.wait[i], HOST_PROGRESS, 0, line);
	}
}

/* A snapshot is being pulled until its client has all of the machine. */
static void tell_those_who_wait_for_snapshot(struct node *node)
{
	const struct hosts *h = node->hosts_state;

	for (unsigned i = 0; i < h->queue.n; i++)
		if (node_now_ns(node) - h->queue.wait[i].since_ns > PROGRESS_AFTER_NS)
			answer(node, &h->queue.wait[i], HOST_PROGRESS, 0,
			       "waiting for the snapshot that is being made");
}

static void tell_those_concerned(struct node *node)
{
	const struct hosts *h = node->hosts_state;
	char line[160];

	if (h->stage == STAGE_PAGES && h->pages_left)
		snprintf(line, sizeof line, "host %u: %s, %u MiB are left", h->host,
			 stage_texts[h->stage], h->pages_left >> 8);
	else
		snprintf(line, sizeof line, "host %u: %s", h->host, stage_texts[h->stage]);
	if (node_now_ns(node) - h->since_ns > PROGRESS_AFTER_NS)
		answer(node, &h->queue.wait[0], HOST_PROGRESS, 0, line);
	tell_those_who_wait(node);
}

static void on_progress(void *ctx)
{
	struct node *node = ctx;
	struct hosts *h = node->hosts_state;

	if (h->stage == STAGE_NONE)
		tell_those_who_wait_for_snapshot(node);
	else
		tell_those_concerned(node);
	if (h->queue.n)
		loop_after(h->progress, PROGRESS_S * (uint64_t)LOOP_S);
}

void hosts_begin(struct node *node, enum agenda_operation operation)
{
	struct hosts *h = node->hosts_state;

	if (!h->queue.n || !agenda_may(node, operation))
		return;
	h->comes = h->queue.wait[0].body.op == HOST_ADD;
	h->host = h->queue.wait[0].body.host;
	h->since_ns = node_now_ns(node);
	h->why[0] = 0;
	hosts_see_who_stays(node, 0);
	if (h->comes)
		hosts_begin_add(node);
	else
		hosts_begin_remove(node);
}

static void request(struct node *node, unsigned client, const struct msg_host *body,
		    const char *name, unsigned name_bytes)
{
	struct hosts *h = node->hosts_state;
	struct host_request request = { *body, client, "", node_now_ns(node) };
	const char *why = agenda_why_not(node, AGENDA_CHANGE);

	snprintf(request.name, sizeof request.name, "%.*s", (int)name_bytes, name);
	if (!why && !hostplan_push(&h->queue, &request))
		why = "too many hosts wait to come or go";
	if (why)
		return answer(node, &request, HOST_DONE, EAGAIN, why);
	if (h->queue.n == 1)
		loop_after(h->progress, PROGRESS_S * (uint64_t)LOOP_S);
	hosts_begin(node, AGENDA_CHANGE);
	tell_those_who_wait(node);
}

/* The machine's owner is the client that starts and reaps daemons. */
static void on_owner(struct node *node, const struct msg_host *body, const char *line,
		     unsigned bytes)
{
	struct hosts *h = node->hosts_state;

	if (body->op == HOST_LAUNCHED) {
		hosts_on_launched(node, body, line, bytes);
	} else if (body->op == HOST_ENDED) {
		on_ended(node, body->host, line, bytes);
	} else if (body->op == HOST_STAYS && h->stage == STAGE_YIELD) {
		hosts_fail(node, EAGAIN, "host 0 stays: %.*s", (int)bytes, line);
	} else if (body->op == HOST_AT) {
		node->outside->dial(node, body->host, line, bytes);
	} else if (body->op == HOST_RETIRED && h->stage == STAGE_RETIRE) {
		h->stage = STAGE_END;
		tell(node, h->host, HOST_END, NULL, 0);
	}
}

void hosts_on_client(struct node *node, const struct message *m, const struct msg_host *host)
{
	if (host->op == HOST_ADD || host->op == HOST_REMOVE)
		request(node, m->from, host, m->payload, m->payload_bytes);
	else if (node->client[m->from].kind == CLIENT_KIND_RUN && host->host < MAX_NODES)
		on_owner(node, host, m->payload, m->payload_bytes);
	else
		log_warn("a command line sent step %u of a host: dropped", host->op);
}

/* The change goes on, but its answer goes to no client, since another one may get the slot. */
void hosts_forget_client(struct node *node, unsigned client)
{
	struct hosts *h = node->hosts_state;

	for (unsigned i = 0; i < h->queue.n; i++)
		if (h->queue.wait[i].client == client)
			h->queue.wait[i].client = NOBODY;
}

bool hosts_under_way(const struct node *node)
{
	return node->hosts_state->queue.n;
}

bool hosts_one_goes(const struct node *node)
{
	const struct hosts *h = node->hosts_state;

	return h->stage != STAGE_NONE && h->stage != STAGE_YIELD;
}

bool hosts_host_0_goes(const struct node *node)
{
	return node->hosts_state->stage == STAGE_YIELD;
}

void hosts_describe(const struct node *node, char *line, size_t bytes)
{
	snprintf(line, bytes, "host %u, which %s", node->hosts_state->host,
		 node->hosts_state->comes ? "comes" : "goes");
}

uint32_t hosts_that_stay(const struct node *node)
{
	return node->hosts_state->staying & node->hosts;
}

bool hosts_joins(const struct node *node, unsigned host)
{
	const struct hosts *h = node->hosts_state;

	return h && h->stage != STAGE_NONE && h->comes && h->host == host &&
	       !node_has_host(node, host);
}

void hosts_start(struct node *node)
{
	struct hosts *h = node->hosts_state = calloc(1, sizeof *h);

	if (!h)
		die("out of memory");
	h->staying = h->told = node->hosts;
	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		h->place[i].node = dsm_interval_start(i, node->o.machine.hosts);
	h->progress = loop_timer(&node->loop, on_progress, node);
	if (!h->progress)
		die("no memory for events");
}

void hosts_on_homes(struct node *node)
{
	if (node->hosts_state)
		memcpy(node->hosts_state->place, dsm_homes(node->dsm),
		       sizeof node->hosts_state->place);
}
