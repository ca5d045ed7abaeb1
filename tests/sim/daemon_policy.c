/* daemon_policy.c - the policies of daemon-sim: what the daemons measure for them, the client who
 * chooses one, and what must result.
 *
 * A policy's moves are made beside all other requests.  What is measured is random.  `auto` looks
 * for as long as it is the policy, so another client ends it after a while.
 */
#include "tests/sim/daemons.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/shared/placement.h"

enum { AUTO_LASTS_NS = 400000000, AGAIN_NS = 1000000 };

static bool spread; /* the machine has been spread, and no request has come since */

void policies_open(void) { spread = false; }

/* Nearly always a processor's pages come from the same host, so that auto finds a reason; and half
 * of the processors are idle, while tasks wait for one in four. */
void policies_measure(void)
{
	unsigned shift = machine->n_pages % machine->n_nodes; /* the same in all of a seed */

	for (unsigned number = 0; number < machine->n_nodes; number++) {
		struct node *node = &daemons[number].node;

		for (unsigned cpu = 0; daemons[number].exists && cpu < machine->n_cpus; cpu++) {
			unsigned from = sim_chance(machine, 95) ? cpu + shift : cpu;

			node->fetched[cpu][from % machine->n_nodes] += sim_random(machine, 100);
			atomic_store(&node->shm->slot[cpu].time_ns[TIME_SHARED_MEMORY],
				     machine->now_ns * sim_random(machine, 3));
			atomic_store(&node->shm->slot[cpu].time_ns[TIME_IDLE],
				     machine->now_ns * (cpu & 1));
			atomic_store(&node->shm->slot[cpu].crowded, sim_chance(machine, 25));
		}
	}
}

void policies_end_auto(uint64_t after_ns)
{
	struct sim_event event = { .kind = EVENT_HOST,
				   .type = WORLD_FIXED,
				   .at_ns = machine->now_ns + after_ns };

	events_add(&event);
}

bool policies_auto_must_end(void)
{
	if (daemons[0].exists && policy_now(&daemons[0].node) != POLICY_AUTO)
		return false;
	policies_end_auto(AGAIN_NS);
	return daemons[0].exists;
}

unsigned policies_ask(unsigned client, uint32_t seq, bool fixed)
{
	struct msg_policy choice = {
		.policy = fixed ? POLICY_FIXED : sim_random(machine, POLICIES), .seq = seq
	};

	world_send_client(client, MSG_POLICY, &choice, sizeof choice);
	return choice.policy;
}

void policies_other_request(void) { spread = false; }

void policies_chosen(unsigned policy, bool alone)
{
	spread = alone && policy == POLICY_SPREAD;
	if (policy == POLICY_AUTO)
		policies_end_auto(sim_random(machine, AUTO_LASTS_NS));
}

void policies_check_idle(void)
{
	const struct node *first = &daemons[0].node;
	unsigned cpus[MAX_NODES] = { 0 }, least = machine->n_cpus, most = 0;

	if (policy_now(first) == POLICY_AUTO)
		sim_fail(machine, "the policy is still auto");
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		cpus[machine->cpus[cpu].node]++;
	for (unsigned host = 0; host < machine->n_nodes; host++) {
		if (!node_has_host(first, host))
			continue;
		least = cpus[host] < least ? cpus[host] : least;
		most = cpus[host] > most ? cpus[host] : most;
	}
	if (spread && most > least + 1)
		sim_fail(machine, "spread, but a host has %u processors and another one %u", most,
			 least);
}
