/* processors.c - see processors.h. */
#include "vmm/node/moves/processors.h"

#include <sched.h>
#include "vmm/node/node.h"

enum { SPINS = 4096, NO_SPINS = 1 };

bool processors_deal(uint32_t cpus, unsigned processors, uint16_t processor[MAX_CPUS])
{
	uint8_t load[CPU_SETSIZE] = { 0 };

	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
		unsigned best = cpu % processors;

		if (!(cpus >> cpu & 1))
			continue;
		for (unsigned i = 1; i < processors; i++)
			if (load[(cpu + i) % processors] < load[best])
				best = (cpu + i) % processors;
		processor[cpu] = (uint16_t)best;
		load[best]++;
	}
	return (unsigned)__builtin_popcount(cpus) > processors;
}

/* The n-th that we are allowed. */
static cpu_set_t only(const cpu_set_t *allowed, unsigned n)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int processor = 0; processor < CPU_SETSIZE; processor++)
		if (CPU_ISSET(processor, allowed) && n-- == 0)
			CPU_SET(processor, &one);
	return one;
}

/* VM processes that are started later take after their monitor. */
static void pin(const struct node *node, const struct child *child, const cpu_set_t *processor)
{
	sched_setaffinity(child->pid, sizeof *processor, processor);
	for (unsigned space = 0; space < MAX_SPACES; space++) {
		pid_t pid = atomic_load(&node->shm->vm_pid[child->cpu][space]);

		if (pid > 0)
			sched_setaffinity(pid, sizeof *processor, processor);
	}
}

void processors_settle(struct node *node)
{
	uint32_t cpus = node->cpus_here;
	uint16_t processor[MAX_CPUS];
	cpu_set_t allowed;
	int processors;
	bool shared;

	if (sched_getaffinity(0, sizeof allowed, &allowed) || !(processors = CPU_COUNT(&allowed)))
		return;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) /* those, too, that are to come */
		if (node->monitor[cpu].pid && node->monitor[cpu].part != PART_FROZEN)
			cpus |= 1u << cpu;
	shared = processors_deal(cpus, (unsigned)processors, processor) ||
		 (!node->o.cluster && node->o.machine.cpus > (unsigned)processors); /* all hosts are on this computer */
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct child *child = &node->monitor[cpu];

		atomic_store(&node->shm->slot[cpu].spins, shared ? NO_SPINS : SPINS);
		if (!(cpus >> cpu & 1) || !child->pid || child->processor == processor[cpu] + 1u)
			continue;
		cpu_set_t one = only(&allowed, processor[cpu]);

		pin(node, child, &one);
		child->processor = processor[cpu] + 1u;
	}
}
