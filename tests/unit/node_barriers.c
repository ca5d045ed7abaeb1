/* node_barriers.c - barriers over hosts (vmm/node/pages/barriers.c): two daemons with a CPU each,
 * in random orders of steps.  A CPU adds to its count in memory, asks its daemon to tell it, and
 * waits for the sum of both; a message between daemons is delivered whenever the test likes.
 */
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/mechanisms.h"
#include "tests/unit/unit.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/barriers.h"
#include "vmm/node/poll.h"
#include "vmm/node/wire/handlers.h"

enum { HOSTS = 2, ROUNDS = 6, SEEDS = 200, STEPS = 2000, QUEUE = 64 };

static struct host {
	struct node node;
	uint32_t count; /* in guest memory */
	unsigned passed;
	bool waits;
	struct msg_barrier inbox[QUEUE];
	unsigned first, end;
} hosts[HOSTS];
static unsigned ends_of_holds;

void net_send(struct net *net, vnode_t to, enum msg_type type, const void *body,
	      uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	struct host *host = &hosts[to - VNODE_DAEMON(0)];

	(void)net, (void)payload, (void)payload_bytes;
	if (type != MSG_BARRIER || body_bytes != sizeof host->inbox[0] || host->end == QUEUE)
		abort();
	memcpy(&host->inbox[host->end++], body, body_bytes);
}

void pagestore_synchronises(struct node *node) { (void)node, ends_of_holds++; }
void poll_note(struct node *node) { (void)node; }
static bool reaches(const struct node *node, unsigned peer) { (void)node; return peer < HOSTS; }

static const struct outside outside = { .reaches = reaches };

static void begin(uint32_t without)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		struct host_shm *shm = hosts[i].node.shm;

		if (!shm)
			shm = aligned_alloc(4096, sizeof *shm);
		memset(shm, 0, sizeof *shm);
		hosts[i] = (struct host){ .node = { .shm = shm, .hosts = 3, .outside = &outside } };
		hosts[i].node.o.node = i;
		hosts[i].node.o.machine.cpus = HOSTS;
		hosts[i].node.o.machine.without = without;
	}
	ends_of_holds = 0;
}

/* As vmproc/direct_env.c: the count is in memory before it is told. */
static void arrive(unsigned i)
{
	struct vcpu_slot *slot = &hosts[i].node.shm->slot[i];

	hosts[i].count++;
	atomic_store(&slot->barrier.frame, 5);
	atomic_store(&slot->barrier.serial, 77);
	atomic_store(&slot->barrier.place, i);
	atomic_store(&slot->barrier.count, hosts[i].count);
	atomic_store(&slot->barrier.sum, HOSTS * hosts[i].count);
	atomic_store(&slot->tell, 1);
	atomic_store(&slot->want, WANT_BARRIER);
	hosts[i].waits = true;
}

/* Returns true if it passes. */
static bool look(unsigned i)
{
	const struct barrier_key key = { 5, 77 };

	if (!barrier_reached(&hosts[i].node.shm->barriers, &key, HOSTS * hosts[i].count))
		return false;
	hosts[i].waits = false;
	hosts[i].passed++;
	atomic_store(&hosts[i].node.shm->slot[i].want, WANT_NONE);
	return true;
}

static void deliver(unsigned i)
{
	struct host *host = &hosts[i];
	const struct message m = { 0 };

	if (host->first < host->end) {
		barriers_on_tell(&host->node, &m, &host->inbox[host->first]);
		host->first++;
	}
}

/* Returns how often a CPU has passed before the other one had arrived. */
static unsigned run(unsigned seed)
{
	unsigned early = 0;

	srand(seed);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned i = (unsigned)rand() / 8 % HOSTS;

		switch (rand() / 8 % 4) {
		case 0:
			if (!hosts[i].waits && hosts[i].count < ROUNDS)
				arrive(i);
			break;
		case 1: barriers_look_at(&hosts[i].node, i); break;
		case 2: deliver(i); break;
		case 3:
			if (hosts[i].waits && look(i))
				early += hosts[!i].count < hosts[i].count;
			break;
		}
	}
	return early;
}

static void nobody_passes_early(void)
{
	unsigned early = 0, passed = 0;

	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		begin(0);
		early += run(seed);
		passed += hosts[0].passed + hosts[1].passed;
	}
	CU_ASSERT_EQUAL(early, 0);
	CU_ASSERT_EQUAL(passed, SEEDS * HOSTS * ROUNDS);
	CU_ASSERT_EQUAL(ends_of_holds, HOSTS * ROUNDS); /* of the last seed: each call is a sign */
	CU_ASSERT_EQUAL(hosts[0].node.barrier_tells, ROUNDS);
}

/* A CPU whose sum arrives while it sleeps is woken, and is not halted any more. */
static void sleepers_wake(void)
{
	struct vcpu_slot *slot;
	struct doorbell *bell;
	uint32_t wake;

	begin(0);
	slot = &hosts[0].node.shm->slot[0];
	bell = &hosts[0].node.shm->doorbell[0];
	arrive(0);
	CU_ASSERT(barriers_look_at(&hosts[0].node, 0) && !barriers_look_at(&hosts[0].node, 0));
	atomic_store(&bell->state, SLOT_HALTED);
	wake = atomic_load(&bell->wake);
	arrive(1);
	barriers_look_at(&hosts[1].node, 1);
	CU_ASSERT_EQUAL(atomic_load(&slot->want), WANT_BARRIER);
	deliver(0);
	CU_ASSERT_EQUAL(atomic_load(&slot->want), WANT_NONE);
	CU_ASSERT(atomic_load(&bell->wake) != wake);
	CU_ASSERT_EQUAL(atomic_load(&bell->state), SLOT_MONITOR);
}

/* The slot is written by a VM process. */
static void nonsense_is_not_told(void)
{
	begin(0);
	arrive(0);
	atomic_store(&hosts[0].node.shm->slot[0].barrier.place, BARRIER_PLACES);
	CU_ASSERT(barriers_look_at(&hosts[0].node, 0));
	CU_ASSERT_EQUAL(atomic_load(&hosts[0].node.shm->slot[0].tell), 0);
	CU_ASSERT_EQUAL(hosts[1].end, 0);
}

static void without_barrier_nothing_is_told(void)
{
	begin(1u << MECHANISM_BARRIER);
	arrive(0);
	CU_ASSERT(barriers_look_at(&hosts[0].node, 0));
	CU_ASSERT_EQUAL(hosts[1].end, 0);
	CU_ASSERT_EQUAL(hosts[0].node.barrier_tells, 0);
}

/* This test itself notices a count that is too high. */
static void fault_is_noticed(void)
{
	unsigned early = 0;

	fault_set(FAULT_BARRIER_EARLY, 1);
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		begin(0);
		early += run(seed);
	}
	fault_set(FAULT_BARRIER_EARLY, 0);
	CU_ASSERT(early > SEEDS);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(nobody_passes_early),
		UNIT_TEST(sleepers_wake),
		UNIT_TEST(nonsense_is_not_told),
		UNIT_TEST(without_barrier_nothing_is_told),
		UNIT_TEST(fault_is_noticed),
		UNIT_END
	};

	return UNIT_RUN("barriers over hosts", tests);
}
