/* policy.c - `vmp policy`: node 0 asks all hosts how they are, placement.c decides, moves.c moves; each decision is in the log.
 *
 * spread and concentrate are applied when they are chosen and when a host has come; a host that goes gives its CPUs away by
 * itself.  auto looks every second.
 */
#include "vmm/node/moves/policy.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/shared/placement.h"

enum { LOOK_S = 1, NOBODY = MAX_CLIENTS };

static struct policy_state { /* node 0 */
	enum policy policy;
	struct placement_look look;
	struct placement_auto automatic;
	uint32_t asked, answered; /* bit sets of hosts */
	bool applying, moving;	  /* spread and concentrate: not as it should be yet; a CPU is moving */
	unsigned moved, client;
	uint32_t seq;
	struct event *timer;
} state = { .client = NOBODY };

enum policy policy_now(void)
{
	return state.policy;
}

/* --- every host ----------------------------------------------------------------------------------------------------- */

static uint32_t load_percent(uint32_t processors)
{
	double load;

	return getloadavg(&load, 1) == 1 ? (uint32_t)(load * 100 / processors) : 0;
}

/* FAULT_LOAD */
static uint32_t faked_load(const struct node *node)
{
	return fault_on(FAULT_LOAD) == node->o.node + 1 ? 2 * AUTO_LOADED_PERCENT : 0;
}

void policy_on_look(struct node *node, const struct message *m, const struct msg_look *look)
{
	struct { struct msg_look look; struct cpu_fetches cpu[MAX_CPUS]; } answer;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	(void)m;
	answer.look = *look;
	answer.look.host = node->o.node;
	answer.look.processors = processors > 0 ? (uint32_t)processors : 1;
	answer.look.load_percent = fault_on(FAULT_LOAD) ? faked_load(node) : load_percent(answer.look.processors);
	answer.look.cpus = 0;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node_has_cpu(node, cpu)) {
			answer.cpu[answer.look.cpus].cpu = cpu;
			memcpy(answer.cpu[answer.look.cpus++].from, node->fetched[cpu], sizeof node->fetched[cpu]);
			memset(node->fetched[cpu], 0, sizeof node->fetched[cpu]);
		}
	net_send(node->net, VNODE_DAEMON(0), MSG_LOOKED, &answer.look, sizeof answer.look, answer.cpu,
		 answer.look.cpus * sizeof *answer.cpu);
}

/* --- node 0 --------------------------------------------------------------------------------------------------------- */

static void answer_to(struct node *node, uint32_t seq, int error, const char *line)
{
	struct { struct msg_policy body; char line[200]; } packet = {
		.body = { .policy = state.policy, .seq = seq, .error = error },
	};
	struct msg_header header = packet_header(MSG_POLICY, VNODE_CLI, node->o.node,
						 sizeof packet.body + strnlen(line, sizeof packet.line));

	memcpy(packet.line, line, header.bytes - sizeof packet.body);
	clients_send_answer(node, &header, &packet);
}

static void answer_client(struct node *node, int error, const char *line)
{
	if (state.client != NOBODY)
		answer_to(node, state.seq, error, line);
	state.client = NOBODY;
}

static void ask_all(struct node *node)
{
	struct msg_look look = { .sent_ns = node_now_ns() };

	state.asked = hosts_that_stay(node);
	state.answered = 0;
	memset(&state.look, 0, sizeof state.look);
	for (unsigned host = 0; host < MAX_NODES; host++)
		if (state.asked >> host & 1)
			net_send(node->net, VNODE_DAEMON(host), MSG_LOOK, &look, sizeof look, NULL, 0);
}

static void move(struct node *node, const struct placement_move *move)
{
	struct msg_cpu_move request = { .cpu = move->cpu, .host = move->to };

	log_info("CPU %u shall move from host %u to host %u; %s", move->cpu, move->from, move->to, move->why);
	state.moving = true;
	moves_request(node, MOVE_CLIENT_POLICY, &request);
}

static void apply(struct node *node)
{
	struct placement_move next;
	char line[100];

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		state.look.cpu[cpu].host = moves_place(node, cpu);
	if (placement_step(state.policy, &state.look, &next))
		return move(node, &next);
	state.applying = false;
	snprintf(line, sizeof line, "%s: %u processor%s moved", policy_name(state.policy), state.moved, state.moved == 1 ? "" : "s");
	log_info("%s", line);
	answer_client(node, 0, line);
}

/* All hosts have said how they are. */
static void decide(struct node *node)
{
	struct placement_move next;

	state.look.hosts = state.asked;
	state.look.n_cpus = node->o.machine.cpus;
	if (state.applying)
		return apply(node);
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		state.look.cpu[cpu].host = moves_place(node, cpu);
	if (state.policy == POLICY_AUTO && !moves_under_way(node) && placement_auto(&state.automatic, &state.look, &next))
		move(node, &next);
}

void policy_on_looked(struct node *node, const struct message *m, const struct msg_look *look)
{
	struct cpu_fetches fetches;

	if (look->host >= MAX_NODES || !(state.asked & ~state.answered & 1u << look->host) ||
	    m->payload_bytes != look->cpus * sizeof fetches)
		return;
	state.answered |= 1u << look->host;
	state.look.host[look->host].rtt_us = look->host ? (uint32_t)((node_now_ns() - look->sent_ns) / 1000) : 0;
	state.look.host[look->host].processors = look->processors;
	state.look.host[look->host].load_percent = look->load_percent;
	for (uint32_t i = 0; i < look->cpus; i++) {
		memcpy(&fetches, (const char *)m->payload + i * sizeof fetches, sizeof fetches);
		if (fetches.cpu < node->o.machine.cpus)
			memcpy(state.look.cpu[fetches.cpu].fetched, fetches.from, sizeof fetches.from);
	}
	if (state.answered == state.asked)
		decide(node);
}

/* A look that is not complete is forgotten: a host has gone meanwhile. */
static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	static const struct timeval pause = { LOOK_S, 0 };
	struct node *node = ctx;

	(void)fd, (void)what;
	if (node->ending || (state.policy != POLICY_AUTO && !state.applying))
		return;
	if (node->running && !state.moving && !freeze_active(node) && !debug_holds() && !hosts_under_way(node))
		ask_all(node);
	event_add(state.timer, &pause);
}

void policy_on_moved(struct node *node, unsigned cpu, int error, const char *why)
{
	state.moving = false;
	if (error)
		log_warn("%s: CPU %u does not move: %s", policy_name(state.policy), cpu, why);
	else
		state.moved++;
	if (state.applying && error) {
		state.applying = false;
		answer_client(node, error, why);
	} else if (state.applying) {
		apply(node);
	}
}

static void begin(void)
{
	state.applying = state.policy == POLICY_SPREAD || state.policy == POLICY_CONCENTRATE;
	state.automatic = (struct placement_auto){ 0 };
	state.moved = 0;
	event_active(state.timer, EV_TIMEOUT, 0);
}

void policy_on_client(struct node *node, const struct message *m, const struct msg_policy *body)
{
	uint32_t seq = clients_tag(m->from, body->seq);
	const char *why = NULL;

	if (state.client != NOBODY || state.moving)
		why = "processors are being placed: try again";
	else if (body->policy >= POLICIES)
		why = "there is no such policy";
	else if (!node->dsm && body->policy != POLICY_FIXED)
		why = "this machine was started for one host: there is nothing to place";
	if (why) {
		answer_to(node, seq, EAGAIN, why);
		return;
	}
	state.client = m->from;
	state.seq = seq;
	log_info("policy %s", policy_name(body->policy));
	state.policy = body->policy;
	hosts_tell_clients(node);
	begin();
	if (!state.applying)
		answer_client(node, 0, policy_name(state.policy));
}

void policy_host_came(void)
{
	if ((state.policy == POLICY_SPREAD || state.policy == POLICY_CONCENTRATE) && !state.applying)
		begin();
}

void policy_forget_client(unsigned client)
{
	if (state.client == client)
		state.client = NOBODY;
}

void policy_start(struct node *node)
{
	if (node->o.node)
		return;
	state.policy = node->o.machine.policy;
	state.timer = evtimer_new(node->base, on_timer, node);
	if (!state.timer)
		die("no memory for events");
	if (state.policy != POLICY_FIXED)
		begin();
}
