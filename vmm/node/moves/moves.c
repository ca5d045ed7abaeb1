/* moves.c - node 0 lets CPUs move, one after the other, in the order of the requests.  Each request
 * is answered when the CPU runs at its new place, or with the reason why it does not. handover.c
 * has the picture of a move; movequeue.c decides what comes next.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/node/agenda.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/movequeue.h"
#include "vmm/node/moves/policy.h"

struct moves {
	struct movequeue queue;
	/* since: the number of the move that brought the CPU to `at` */
	uint32_t at[MAX_CPUS], since[MAX_CPUS];
	struct msg_cpu_handover current;
	struct move_note note[MOVE_NOTES]; /* the oldest first */
	unsigned n_notes;
};

static void answer(struct node *node, unsigned client, const struct msg_cpu_move *move, int error,
		   uint32_t pause_us, const char *why)
{
	struct { struct msg_cpu_moved moved; char why[200];
	} packet = {
		.moved = { .cpu = move->cpu,
			   .seq = clients_tag(node, client, move->seq),
			   .error = error,
			   .pause_us = pause_us },
	};
	struct msg_header header = packet_header(MSG_CPU_MOVED, VNODE_CLI, node->o.node,
						 sizeof packet.moved +
							 strnlen(why, sizeof packet.why));

	memcpy(packet.why, why, header.bytes - sizeof packet.moved);
	if (client == MOVE_CLIENT_HOSTS)
		hosts_on_moved(node, move->cpu, error, why);
	else if (client == MOVE_CLIENT_POLICY)
		policy_on_moved(node, move->cpu, error, why);
	else if (client != MOVE_CLIENT_NOBODY)
		clients_send_answer(node, &header, &packet);
}

static void tell_all(struct node *node, const struct msg_cpu_handover *move)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer) &&
		    (!fault_on(FAULT_MOVE_UNTOLD) || peer == move->from || peer == move->to))
			net_send(node->net, VNODE_DAEMON(peer), MSG_CPU_AT, move, sizeof *move,
				 NULL, 0);
}

/* Keeps what `vmp top` and reports say about a move. */
static void note_move(struct node *node, const struct move_request *request, uint32_t pause_us)
{
	struct moves *moves = node->moves;
	struct move_note *note;

	if (moves->n_notes == MOVE_NOTES) {
		memmove(moves->note, moves->note + 1, (MOVE_NOTES - 1) * sizeof *moves->note);
		moves->n_notes--;
	}
	note = &moves->note[moves->n_notes++];
	*note = (struct move_note){ .at_ns = node_now_ns(node), .number = moves->current.move,
				    .cpu = moves->current.cpu, .from = moves->current.from,
				    .to = moves->current.to, .pause_us = pause_us };
	memcpy(note->why, request->why, sizeof note->why);
}

void moves_on_notes_request(struct node *node, const struct message *m,
			    const struct msg_move_notes *request)
{
	struct { struct msg_move_notes body; struct move_note note[MOVE_NOTES]; } packet;
	struct moves *moves = node->moves;
	size_t bytes = moves->n_notes * sizeof *moves->note;
	struct msg_header header = packet_header(MSG_MOVE_NOTES, VNODE_CLI, node->o.node,
						 sizeof packet.body + bytes);

	packet.body = (struct msg_move_notes){ .node = node->o.node,
					       .seq = clients_tag(node, m->from, request->seq) };
	memcpy(packet.note, moves->note, bytes);
	clients_send_answer(node, &header, &packet);
}

/* Does what the move at the front needs next, and begins the next one when it has ended. */
static void act(struct node *node, enum move_action action, const struct msg_cpu_step *step,
		const char *why)
{
	struct moves *moves = node->moves;
	struct move_request front = moves->queue.wait[0];

	switch (action) {
	case MOVE_NOTHING:
		return;
	case MOVE_PREPARE:
		moves->current = (struct msg_cpu_handover){ .cpu = front.move.cpu,
							    .from = moves->at[front.move.cpu],
							    .to = front.move.host,
							    .move = moves->queue.number };
		log_debug("CPU %u begins to move from host %u to host %u", front.move.cpu,
			  moves->current.from, front.move.host);
		net_send(node->net, VNODE_DAEMON(front.move.host), MSG_CPU_PREPARE, &moves->current,
			 sizeof moves->current, NULL, 0);
		return;
	case MOVE_GIVE:
		net_send(node->net, VNODE_DAEMON(moves->current.from), MSG_CPU_GIVE,
			 &moves->current, sizeof moves->current, NULL, 0);
		return;
	case MOVE_DONE:
		log_info("CPU %u moved from host %u to host %u in %u us", moves->current.cpu,
			 moves->current.from, moves->current.to, step->pause_us);
		moves->at[front.move.cpu] = front.move.host;
		moves->since[front.move.cpu] = moves->current.move;
		note_move(node, &front, step->pause_us);
		movequeue_pop(&moves->queue);
		tell_all(node, &moves->current);
		answer(node, front.client, &front.move, 0, step->pause_us, "");
		break;
	case MOVE_FAILED:
		movequeue_pop(&moves->queue);
		answer(node, front.client, &front.move, step ? step->error : EINVAL, 0, why);
		break;
	}
}

void moves_begin(struct node *node)
{
	struct moves *moves = node->moves;
	enum move_action action = MOVE_FAILED;
	char why[160];

	while (action == MOVE_FAILED && agenda_may(node, AGENDA_MOVE)) {
		action = movequeue_begin(&moves->queue, moves->at, node->o.machine.cpus,
					 hosts_that_stay(node), why, sizeof why);
		act(node, action, NULL, why);
	}
}

void moves_on_step(struct node *node, const struct message *m, const struct msg_cpu_step *step)
{
	char why[200];

	snprintf(why, sizeof why, "CPU %u stays on host %u: %.*s", step->cpu,
		 node->moves->current.from, (int)m->payload_bytes, (const char *)m->payload);
	act(node, movequeue_step(&node->moves->queue, step), step, why);
	if (!moves_one_goes(node))
		hosts_after_move(node);
	agenda_done(node, AGENDA_MOVED);
}

void moves_request(struct node *node, unsigned client, const struct msg_cpu_move *move,
		   const char *reason)
{
	struct move_request request = { .move = *move, .client = client };
	const char *why = agenda_why_not(node, AGENDA_MOVE);

	snprintf(request.why, sizeof request.why, "%s", reason);
	if (why)
		answer(node, client, move, EAGAIN, 0, why);
	else if (!movequeue_push(&node->moves->queue, &request))
		answer(node, client, move, EAGAIN, 0, "too many moves wait already");
	else
		moves_begin(node);
}

void moves_on_client(struct node *node, const struct message *m, const struct msg_cpu_move *move)
{
	moves_request(node, m->from, move, "asked for by vmp cpu move");
}

bool moves_asked(const struct node *node)
{
	return node->moves->queue.n;
}

bool moves_one_goes(const struct node *node)
{
	return node->moves->queue.stage != MOVE_WAITS;
}

unsigned moves_place(const struct node *node, unsigned cpu)
{
	return node->moves->at[cpu];
}

void moves_tell(struct node *node, unsigned host)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct msg_cpu_handover place = { .cpu = cpu,
						  .from = node->moves->at[cpu],
						  .to = node->moves->at[cpu],
						  .move = node->moves->since[cpu] };

		net_send(node->net, VNODE_DAEMON(host), MSG_CPU_AT, &place, sizeof place, NULL, 0);
	}
}

/* The client's moves go on, but no client gets the answers, since another one may get the slot. */
void moves_forget_client(struct node *node, unsigned client)
{
	for (unsigned i = 0; i < node->moves->queue.n; i++)
		if (node->moves->queue.wait[i].client == client)
			node->moves->queue.wait[i].client = MOVE_CLIENT_NOBODY;
}

void moves_start(struct node *node)
{
	node->moves = calloc(1, sizeof *node->moves);
	if (!node->moves)
		die("out of memory");
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		node->moves->at[cpu] = (uint32_t)net_node_of(node->net, VNODE_CPU(cpu));
}
