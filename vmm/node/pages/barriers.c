/* barriers.c - see barriers.h. */
#include "vmm/node/pages/barriers.h"

#include "base/faultpoint.h"
#include "base/mechanisms.h"
#include "vmm/node/node.h"
#include "vmm/node/poll.h"
#include "vmm/node/wire/handlers.h"

/* Returns the slot's call.  A VM process writes it to its slot, so what it says is checked here. */
static struct barrier_call call_of(const struct vcpu_slot *slot)
{
	return (struct barrier_call){
		.key = { atomic_load_explicit(&slot->barrier.frame, memory_order_relaxed),
			 atomic_load_explicit(&slot->barrier.serial, memory_order_relaxed) },
		.place = atomic_load_explicit(&slot->barrier.place, memory_order_relaxed),
		.count = atomic_load_explicit(&slot->barrier.count, memory_order_relaxed),
		.sum = atomic_load_explicit(&slot->barrier.sum, memory_order_relaxed),
	};
}

static void tell_others(struct node *node, const struct barrier_call *call)
{
	struct msg_barrier tell = { .serial = call->key.serial, .frame = call->key.frame,
				    .place = call->place, .count = call->count };

	for (unsigned host = 0; host < MAX_NODES; host++)
		if (host != node->o.node && node_has_host(node, host) &&
		    node->outside->reaches(node, host))
			net_send(node->net, VNODE_DAEMON(host), MSG_BARRIER, &tell, sizeof tell,
				 NULL, 0);
	node->barrier_tells++;
}

/* Wakes the CPU if the sum that it waits for is here.  It no longer counts as halted: a daemon that
 * polled on its processor would keep it from running. */
static void answer(struct node *node, unsigned cpu)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];
	struct barrier_call call = call_of(slot);
	uint32_t waits = WANT_BARRIER, halted = SLOT_HALTED;

	if (atomic_load(&slot->want) != WANT_BARRIER ||
	    !barrier_reached(&node->shm->barriers, &call.key, call.sum) ||
	    !atomic_compare_exchange_strong(&slot->want, &waits, WANT_NONE))
		return;
	atomic_compare_exchange_strong(&node->shm->doorbell[cpu].state, &halted, SLOT_MONITOR);
	hostshm_kick(node->shm, cpu);
}

static void answer_all(struct node *node)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		answer(node, cpu);
}

bool barriers_look_at(struct node *node, unsigned cpu)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];
	struct barrier_call call;

	if (atomic_load(&slot->want) != WANT_BARRIER || !atomic_load(&slot->tell))
		return false;
	call = call_of(slot);
	if (barrier_call_is_sound(&call) &&
	    mechanism_on(node->o.machine.without, MECHANISM_BARRIER)) {
		tell_others(node, &call);
		barrier_note(&node->shm->barriers, &call.key, call.place, call.count);
	}
	atomic_store(&slot->tell, 0);
	pagestore_synchronises(node);
	poll_note(node);
	answer_all(node);
	return true;
}

void barriers_on_tell(struct node *node, const struct message *m, const struct msg_barrier *tell)
{
	struct barrier_call call = { .key = { tell->frame, tell->serial },
				     .place = tell->place, .count = tell->count };

	(void)m;
	call.count += fault_on(FAULT_BARRIER_EARLY);
	if (!barrier_call_is_sound(&call) || fault_on(FAULT_BARRIER_UNTOLD))
		return;
	barrier_note(&node->shm->barriers, &call.key, call.place, call.count);
	poll_note(node);
	answer_all(node);
}
