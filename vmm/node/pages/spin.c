/* spin.c - see spin.h. */
#include "vmm/node/pages/spin.h"

#include <stdlib.h>
#include "vmm/node/node.h"

enum {
	NS_PER_US = 1000,
	OLD_US = 2000, /* what was seen longer ago says nothing about now */
};

struct spin {
	uint64_t looked_ns;
	struct spin_view before[MAX_CPUS];
};

struct spin *spin_new(void)
{
	return calloc(1, sizeof(struct spin));
}

void spin_free(struct spin *spin)
{
	free(spin);
}

static struct spin_view view_of(const struct vcpu_slot *slot)
{
	return (struct spin_view){
		.count = atomic_load_explicit(&slot->seen.count, memory_order_acquire),
		.eip = atomic_load_explicit(&slot->seen.eip, memory_order_relaxed),
		.sum = atomic_load_explicit(&slot->seen.sum, memory_order_relaxed),
		.pauses = atomic_load_explicit(&slot->seen.pauses, memory_order_relaxed),
	};
}

static bool look_at(struct spin *spin, struct node *node, unsigned cpu)
{
	const struct vcpu_slot *slot = &node->shm->slot[cpu];
	struct spin_view before = spin->before[cpu];

	spin->before[cpu] = view_of(slot);
	switch (atomic_load(&node->shm->doorbell[cpu].state)) {
	case SLOT_HALTED:
		return true;
	case SLOT_RUNNING:
		hostshm_kick(node->shm, cpu);
		return spin_sees(&before, &spin->before[cpu]);
	default:
		return false; /* it runs something else, or waits for a page */
	}
}

/* (TRICKS: spin-ends-holds) */
bool spin_look(struct spin *spin, struct node *node, uint64_t now_ns)
{
	uint64_t since_us = (now_ns - spin->looked_ns) / NS_PER_US;
	bool wait = since_us < OLD_US;

	if (since_us < SPIN_LOOK_US)
		return false;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node->cpus_here >> cpu & 1)
			wait &= look_at(spin, node, cpu);
	spin->looked_ns = now_ns;
	return wait;
}
