/* debugger.c - see debugger.h. */
#include "vmm/node/debugger.h"

#include <errno.h>
#include <string.h>
#include "base/log.h"
#include "vmm/node/agenda.h"

bool debug_holds(const struct node *node)
{
	return node->debugged;
}

bool debug_stops_all(const struct node *node)
{
	if (node->o.machine.hold && !node->running)
		return true; /* it begins stopped */
	return node->debugged &&
	       node->debug_stopped == (uint32_t)((1ull << node->o.machine.cpus) - 1);
}

void debug_hold_all(struct node *node)
{
	node->debugged = true;
	node->debug_stopped = (uint32_t)((1ull << node->o.machine.cpus) - 1);
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct msg_debug stop = { .cpu = cpu, .op = DEBUG_STOP };

		net_send(node->net, VNODE_CPU(cpu), MSG_DEBUG, &stop, sizeof stop, NULL, 0);
	}
}

static void attach(struct node *node, struct msg_debug *body)
{
	struct msg_header header = packet_header(MSG_DEBUG_ANSWER, VNODE_CLI, node->o.node,
						 sizeof *body);

	if (agenda_may(node, AGENDA_DEBUGGER))
		node->debugged = true;
	else
		body->error = EAGAIN;
	clients_send_run(node, &header, body);
}

void debug_on_client(struct node *node, const struct message *m, const struct msg_debug *body)
{
	struct message readdressed = *m;
	struct msg_debug request = *body;

	if (node->client[m->from].kind != CLIENT_KIND_RUN || request.cpu >= node->o.machine.cpus ||
	    request.op >= DEBUG_OPS) {
		log_warn("a command line sent a debugger's request %u for CPU %u: dropped",
			 request.op, request.cpu);
	} else if (request.op == DEBUG_ATTACH) {
		attach(node, &request);
	} else if (request.op == DEBUG_DETACH) {
		node->debugged = false;
		node->debug_stopped = 0;
	} else {
		if (request.op == DEBUG_GO || request.op == DEBUG_PASS || request.op == DEBUG_FREE)
			node->debug_stopped &= ~(1u << request.cpu);
		readdressed.header.to = VNODE_CPU(request.cpu);
		net_forward(node->net, &readdressed);
	}
}

void debug_on_request(struct node *node, const struct message *m, const struct msg_debug *request)
{
	route_to_cpu(node, request->cpu, m);
}

void debug_on_answer(struct node *node, const struct message *m)
{
	struct msg_debug answer;

	memcpy(&answer, m->body, sizeof answer);
	if ((answer.op == DEBUG_STOP || answer.op == DEBUG_STEP) && !answer.error &&
	    answer.cpu < node->o.machine.cpus)
		node->debug_stopped |= 1u << answer.cpu;
	if (!clients_send_run(node, &m->header, m->body))
		log_warn("a debugger's answer for a run client that is not there");
}
