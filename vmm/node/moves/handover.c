/* handover.c - a CPU moves from one host (the source) to another (the target).  Node 0 decides when
 * (moves.c); the state goes directly from one to the other:
 *
 *     node 0                   target                          source
 *     CPU_PREPARE  ------->    starts a spare monitor
 *              <------- PREPARED
 *     CPU_GIVE  ------------------------------------------>    its monitor freezes the CPU
 *                              the spare loads it     <-----   CPU_STATE; messages for the CPU
 *                                                              are forwarded from here on
 *              <------- TAKEN, and the CPU runs
 *     CPU_AT  -----> all                                       its monitor ends
 *
 * and if the target cannot take it:
 *                              CPU_BACK  ------------------>    its monitor goes on
 *              <--------------------------------------- BACK
 *
 * The CPU belongs to the source until CPU_STATE leaves, and to the target from its arrival;
 * `cpus_here` of each says so.  While both say no, it is between them.  Messages for a CPU that is
 * not here go to the node where this one believes it to be (net_cpu_at()).  The state and the
 * forwarded messages travel the same way, in order, so an interrupt never overtakes its CPU. Node 0
 * numbers the moves, and a node believes the news with the highest number; therefore forwarding
 * ends.
 *
 * Until the target has answered, the source's monitor stands still with the whole CPU in it.  If
 * the target's monitor dies before its answer, nothing is lost.  If it dies later, it had a running
 * CPU, and the machine ends.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/wire/conn.h"

static uint32_t bit_of(unsigned cpu) { return 1u << cpu; }

static void has_cpu(struct node *node, unsigned cpu, bool here)
{
	node->cpus_here = here ? node->cpus_here | bit_of(cpu) : node->cpus_here & ~bit_of(cpu);
	processors_settle(node);
}

static void step(struct node *node, vnode_t to, const struct msg_cpu_handover *move,
		 enum cpu_step what, int error, uint32_t pause_us, const char *why)
{
	struct msg_cpu_step body = { .cpu = move->cpu,
				     .move = move->move,
				     .step = what,
				     .error = error,
				     .pause_us = pause_us };

	net_send(node->net, to, MSG_CPU_STEP, &body, sizeof body, why, strlen(why));
}

static bool is_sound(const struct node *node, const struct msg_cpu_handover *move)
{
	if (move->cpu < node->o.machine.cpus && move->from < MAX_NODES && move->to < MAX_NODES)
		return true;
	log_error("a move of CPU %u from host %u to %u: ignored", move->cpu, move->from, move->to);
	return false;
}

/* Host `m->from` has sent a message about a move that contradicts this daemon's state. */
static void wrong(struct node *node, const struct message *m, unsigned cpu)
{
	char why[100];

	snprintf(why, sizeof why, "%s for CPU %u at a wrong moment; this is a bug in vmp",
		 wire_type_name(m->header.type), cpu);
	route_peer_is_wrong(node, m->from, why);
}

/* Forwards what was posted here to a CPU that has gone, after the CPU. Only this daemon writes
 * posts into an absent CPU's slot. */
static void send_posts_on(struct node *node, unsigned cpu)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];
	struct doorbell *bell = &node->shm->doorbell[cpu];
	struct msg_interrupt interrupt = { .cpu_mask = bit_of(cpu) };
	uint32_t post = atomic_exchange(&slot->post, 0);

	for (unsigned word = 0; word < 8; word++)
		for (uint32_t bits = atomic_exchange(&bell->irr[word], 0); bits; bits &= bits - 1) {
			interrupt.vector = word * 32 + __builtin_ctz(bits);
			route_interrupt(node, &interrupt);
		}
	if (post & POST_NMI) {
		interrupt.kind = INTERRUPT_NMI;
		route_interrupt(node, &interrupt);
	}
	if (post & POST_START) {
		struct msg_cpu_start start = { .cpu = cpu, .eip = atomic_load(&slot->start_eip) };

		net_send(node->net, VNODE_CPU(cpu), MSG_CPU_START, &start, sizeof start, NULL, 0);
	}
}

/* ---- the target ---- */

void handover_on_prepare(struct node *node, const struct message *m,
			 const struct msg_cpu_handover *move)
{
	struct child *child;
	char why[160];

	if (!is_sound(node, move) || node->ending)
		return;
	fault_die_at(FAULT_MOVE_HOST_DIES, 1);
	child = &node->monitor[move->cpu];
	if (child->pid) {
		wrong(node, m, move->cpu);
		return;
	}
	if (fault_on(FAULT_MOVE_NO_SPARE)) {
		step(node, VNODE_DAEMON(0), move, STEP_PREPARED, EAGAIN, 0,
		     "no monitor could be started there");
		return;
	}
	if (supervise_start_monitor(node, move->cpu, why, sizeof why)) {
		step(node, VNODE_DAEMON(0), move, STEP_PREPARED, EAGAIN, 0, why);
		return;
	}
	child->part = PART_SPARE;
	child->handover = *move;
	if (fault_on(FAULT_MOVE_SPARE_DIES))
		supervise_kill(node, child);
}

void handover_spare_ready(struct node *node, struct child *child)
{
	step(node, VNODE_DAEMON(0), &child->handover, STEP_PREPARED, 0, 0, "");
}

/* This host does not take the CPU.  The CPU is the source's again, with all messages that were
 * forwarded here. */
static void give_back(struct node *node, const struct msg_cpu_handover *move, const char *why)
{
	log_warn("CPU %u goes back to host %u: %s", move->cpu, move->from, why);
	has_cpu(node, move->cpu, false);
	net_cpu_at(node->net, move->cpu, move->from, move->move);
	net_send(node->net, VNODE_DAEMON(move->from), MSG_CPU_BACK, move, sizeof *move, why,
		 strlen(why));
	send_posts_on(node, move->cpu);
}

/* The state has arrived from the source. */
void handover_on_state(struct node *node, const struct message *m,
		       const struct msg_cpu_state *state)
{
	struct child *child;

	if (state->cpu >= node->o.machine.cpus)
		return;
	if (node_has_cpu(node, state->cpu)) {
		wrong(node, m, state->cpu);
		return;
	}
	fault_die_at(FAULT_MOVE_HOST_DIES, 4);
	child = &node->monitor[state->cpu];
	net_cpu_at(node->net, state->cpu, node->o.node, child->handover.move);
	has_cpu(node, state->cpu, true);
	if (child->part != PART_SPARE || !child->pid) {
		give_back(node, &child->handover, "the monitor that was to take it has died");
		return;
	}
	if (fault_on(FAULT_MOVE_SLOW))
		usleep(fault_on(FAULT_MOVE_SLOW) * 1000);
	route_to_child(node, child, m);
	hostshm_post(node->shm, state->cpu, POST_MESSAGE);
}

/* The spare has answered.  Whatever it says about itself, it is the spare of this move. */
void handover_on_monitor_step(struct node *node, const struct message *m,
			      const struct msg_cpu_step *taken)
{
	struct child *child = &node->monitor[m->from];
	struct msg_cpu_handover move = child->handover;
	char why[160];

	if (child->part != PART_SPARE || !node_has_cpu(node, child->cpu)) {
		log_error("the %s speaks of a move that there is not", child->name);
		return;
	}
	if (!taken->error) {
		child->part = PART_RUNS;
		step(node, VNODE_DAEMON(0), &move, STEP_TAKEN, 0, taken->pause_us, "");
		return;
	}
	snprintf(why, sizeof why, "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	supervise_release(node, child);
	give_back(node, &move, why);
}

/* ---- the source ---- */

void handover_on_give(struct node *node, const struct message *m,
		      const struct msg_cpu_handover *move)
{
	struct child *child;

	if (!is_sound(node, move) || node->ending)
		return;
	child = &node->monitor[move->cpu];
	fault_die_at(FAULT_MOVE_HOST_DIES, 2);
	if (!node_has_cpu(node, move->cpu) || child->part != PART_RUNS) {
		wrong(node, m, move->cpu);
		return;
	}
	child->handover = *move;
	route_to_child(node, child, m);
	hostshm_post(node->shm, move->cpu, POST_MESSAGE);
}

void handover_on_monitor_state(struct node *node, const struct message *m,
			       const struct msg_cpu_state *body)
{
	struct child *child = &node->monitor[m->from];
	const struct msg_cpu_handover *move = &child->handover;
	struct msg_cpu_state state = *body;

	state.cpu = child->cpu;
	if (child->part != PART_RUNS || !node_has_cpu(node, child->cpu) ||
	    move->from != node->o.node || node->ending) {
		log_error("the %s gives its CPU away: nobody has asked for it", child->name);
		return;
	}
	child->part = PART_FROZEN;
	has_cpu(node, child->cpu, false);
	net_cpu_at(node->net, child->cpu, move->to, move->move);
	net_send(node->net, VNODE_DAEMON(move->to), MSG_CPU_STATE, &state, sizeof state, m->payload,
		 m->payload_bytes);
	send_posts_on(node, child->cpu);
	if (fault_on(FAULT_MOVE_HOST_DIES) == 3)
		node->outside->flush(node);
	fault_die_at(FAULT_MOVE_HOST_DIES, 3);
}

void handover_on_back(struct node *node, const struct message *m,
		      const struct msg_cpu_handover *move)
{
	struct child *child;
	char why[160];

	if (!is_sound(node, move))
		return;
	child = &node->monitor[move->cpu];
	if (child->part != PART_FROZEN || child->handover.move != move->move) {
		wrong(node, m, move->cpu);
		return;
	}
	snprintf(why, sizeof why, "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	has_cpu(node, move->cpu, true);
	net_cpu_at(node->net, move->cpu, node->o.node, move->move);
	child->part = PART_RUNS;
	if (!child->pid) {
		node_end(node, END_PART_DIED, 0, "the %s died while its CPU was on its way, and "
			 "the way led back (%s)",
			 child->name, why);
		return;
	}
	route_to_child(node, child, m);
	step(node, VNODE_DAEMON(0), move, STEP_BACK, EAGAIN, 0, why);
}

/* ---- both, and all hosts ---- */

void handover_on_at(struct node *node, const struct message *m, const struct msg_cpu_handover *move)
{
	struct child *child;

	(void)m;
	if (!is_sound(node, move))
		return;
	net_cpu_at(node->net, move->cpu, move->to, move->move);
	child = &node->monitor[move->cpu];
	if (child->part == PART_FROZEN && child->handover.move == move->move)
		supervise_release(node, child);
}

/* A frozen monitor's death matters only if its CPU comes back; a spare's, if it is about to take a
 * CPU. */
void handover_child_died(struct node *node, struct child *child, const char *how)
{
	struct msg_cpu_handover move = child->handover;
	bool was_ready = child->ready;
	char why[160];

	snprintf(why, sizeof why, "the %s %s", child->name, how);
	if (child->part == PART_FROZEN) {
		log_warn("%s; its CPU has left before", why);
		return;
	}
	supervise_release(node, child);
	if (node_has_cpu(node, child->cpu))
		give_back(node, &move, why);
	else if (!was_ready)
		step(node, VNODE_DAEMON(0), &move, STEP_PREPARED, EAGAIN, 0, why);
}

void handover_start(struct node *node)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (!node->o.join && net_node_of(node->net, VNODE_CPU(cpu)) == (int)node->o.node)
			node->cpus_here |= bit_of(cpu);
}
