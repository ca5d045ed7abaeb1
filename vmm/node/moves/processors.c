/* processors.c - see processors.h. */
#include "vmm/node/moves/processors.h"

#include <sched.h>
#include <stdlib.h>
#include "base/log.h"
#include "base/mechanisms.h"
#include "vmm/node/node.h"

enum { SPINS = 4096, NO_SPINS = 1 };

struct processors {
	cpu_set_t allowed; /* the processors that the daemon may use, from its start */
	cpu_set_t own;	   /* those that it uses now */
	unsigned count;	   /* how many there are; 0: not known, and no CPU is bound */
	uint16_t number[CPU_SETSIZE]; /* the host's number of each */
	enum processors_room room;
};

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

enum processors_room processors_room(unsigned cpus, unsigned processors)
{
	return cpus < processors    ? PROCESSORS_SPARE
	       : cpus == processors ? PROCESSORS_EXACT
				    : PROCESSORS_CROWDED;
}

void processors_start(struct node *node)
{
	struct processors *p = calloc(1, sizeof *p);

	if (!p)
		die("out of memory");
	node->processors = p;
	if (!node->outside->processors(&p->allowed))
		return;
	p->own = p->allowed;
	for (unsigned number = 0; number < CPU_SETSIZE; number++)
		if (CPU_ISSET(number, &p->allowed))
			p->number[p->count++] = (uint16_t)number;
}

uint32_t processors_count(const struct node *node)
{
	return node->processors->count ? node->processors->count : 1;
}

/* Binds a monitor and its VM processes.  VM processes that are started later inherit their
 * monitor's processor. */
static void bind_child(const struct node *node, const struct child *child,
		       const cpu_set_t *processor)
{
	node->outside->bind(child->pid, processor);
	for (unsigned space = 0; space < MAX_SPACES; space++) {
		const pid_t pids[] = {
			atomic_load(&node->shm->vm_pid[child->cpu][space]),
			atomic_load(&node->shm->user_pid[child->cpu][space]),
		};

		for (unsigned i = 0; i < ARRAY_LEN(pids); i++)
			if (pids[i] > 0)
				node->outside->bind(pids[i], processor);
	}
}

/* Returns the CPUs here, and those that are about to arrive. */
static uint32_t cpus_to_bind(const struct node *node)
{
	uint32_t cpus = node->cpus_here;

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node->monitor[cpu].pid && node->monitor[cpu].part != PART_FROZEN)
			cpus |= 1u << cpu;
	return cpus;
}

static cpu_set_t one_of(const struct processors *p, unsigned index)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(p->number[index], &one);
	return one;
}

/* Those of the CPU's last monitor are gone; another process may have one of their numbers. */
static void forget_processes(const struct node *node, unsigned cpu)
{
	for (unsigned space = 0; space < MAX_SPACES; space++) {
		atomic_store(&node->shm->vm_pid[cpu][space], 0);
		atomic_store(&node->shm->user_pid[cpu][space], 0);
	}
}

void processors_before_fork(const struct node *node, const struct child *child)
{
	const struct processors *p = node->processors;
	uint16_t processor[MAX_CPUS];
	cpu_set_t one;

	if (child->role == CHILD_MONITOR)
		forget_processes(node, child->cpu);
	if (!p->count)
		return;
	if (child->role != CHILD_MONITOR) {
		node->outside->bind(0, &p->allowed);
		return;
	}
	processors_deal(cpus_to_bind(node) | 1u << child->cpu, p->count, processor);
	one = one_of(p, processor[child->cpu]);
	node->outside->bind(0, &one);
}

void processors_after_fork(const struct node *node)
{
	if (node->processors->count)
		node->outside->bind(0, &node->processors->own);
}

/* Binds the daemon to its CPUs' processors, if it polls there.
 * (TRICKS: poll-where-nothing-runs) */
static void bind_daemon(struct node *node, bool polls, uint32_t cpus,
			const uint16_t processor[MAX_CPUS])
{
	struct processors *p = node->processors;
	cpu_set_t own;

	CPU_ZERO(&own);
	for (uint32_t left = cpus; left; left &= left - 1)
		CPU_SET(p->number[processor[__builtin_ctz(left)]], &own);
	if (!polls || p->room != PROCESSORS_EXACT || !CPU_COUNT(&own))
		own = p->allowed;
	p->own = own;
	node->outside->bind(0, &own);
}

void processors_settle(struct node *node)
{
	struct processors *p = node->processors;
	uint32_t cpus = cpus_to_bind(node);
	uint16_t processor[MAX_CPUS];
	bool shared;

	if (!p->count)
		return;
	p->room = processors_room(node->o.cluster ? (unsigned)__builtin_popcount(cpus)
						  : node->o.machine.cpus,
				  p->count);
	shared = processors_deal(cpus, p->count, processor) || p->room == PROCESSORS_CROWDED;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct child *child = &node->monitor[cpu];
		cpu_set_t one;

		atomic_store(&node->shm->slot[cpu].spins, shared ? NO_SPINS : SPINS);
		if (!(cpus >> cpu & 1) || !child->pid || child->processor == processor[cpu] + 1u)
			continue;
		one = one_of(p, processor[cpu]);
		bind_child(node, child, &one);
		child->processor = processor[cpu] + 1u;
	}
	bind_daemon(node, mechanism_on(node->o.machine.without, MECHANISM_POLL), cpus, processor);
}

uint32_t processors_users(const struct node *node, unsigned *others)
{
	const struct processors *p = node->processors;
	int here = sched_getcpu();
	uint32_t users = 0;

	*others = !p->count || p->room == PROCESSORS_CROWDED;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus && !*others; cpu++) {
		const struct child *child = &node->monitor[cpu];

		if (child->processor && child->pid && p->number[child->processor - 1] == here)
			users |= 1u << cpu;
		else if (!child->pid && !node->o.cluster && p->number[cpu % p->count] == here)
			/* a CPU of another host on this computer, dealt in the same way */
			*others = 1;
	}
	return users & node->cpus_here;
}
