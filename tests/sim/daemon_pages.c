/* daemon_pages.c - replaces pages.c in daemon-sim: the daemons' own files (vmm/node/pages/) give
 * pages to processors and take them away, on real memory.
 *
 * Here is what surrounds those files: processors, which request pages by their slots or by their
 * monitors' messages and name further pages; messages that arrive close together; and the
 * mechanisms of base/mechanisms.def, each of which is off in some seeds.  Beside the invariants of
 * all simulators, this must hold: a page that has come for a processor stays until that processor
 * has run with it, for HOLD_RUN_MAX_US at least.
 */
#include <stdlib.h>
#include <string.h>
#include "base/mechanisms.h"
#include "tests/sim/daemons.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/pages/batch.h"
#include "vmm/node/pages/hold.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/pages/spill.h"
#include "vmm/node/pages/starts.h"
#include "vmm/node/pages/wants.h"
#include "vmm/node/poll.h"
#include "vmm/node/wire/handlers.h"

enum { LOOK_NS = 3000, BURST_NS = 150000, FEW = 4, NS_PER_US = 1000 };

static struct {
	uint32_t without; /* the mechanisms that are off in this seed */
	uint32_t share;	  /* how many pages each host may hold */
	struct bound {	  /* of a host: how many it may hold now; what it was excused so far */
		uint64_t start_ns, excused, forced;
		uint32_t life, most;
	} bound[MAX_NODES];
	/* before the current event: the rights of the CPUs, and those of the host, which are
	 * more after a snapshot's cut */
	uint8_t right[MAX_NODES][SIM_MAX_PAGES], held[MAX_NODES][SIM_MAX_PAGES];
	bool by_slot[SIM_MAX_CPUS];
	uint64_t fresh_ns[SIM_MAX_CPUS]; /* when the page came that it has yet to run with, or 0 */
	uint64_t burst_ns[MAX_NODES]; /* until then a daemon finds messages together */
	uint64_t delayed_ns[MAX_NODES]; /* when a daemon sends what it has delayed */
} pages;

/* shared memory for each daemon; there are no more daemons */
static _Alignas(4096) uint8_t shm[SIM_MAX_CPUS][(sizeof(struct host_shm) / 4096 + 1) * 4096];

struct host_shm *pages_shm(unsigned node) { return (struct host_shm *)shm[node]; }
_Atomic uint8_t *pages_rights(unsigned node) { return pages_shm(node)->page_right; }
uint32_t pages_without(void) { return pages.without; }

/* Does what vmm/node/poll.c does; that file's loop is not simulated. */
void poll_note(struct node *node) { node->page_event_ns = machine->now_ns; }

static struct vcpu_slot *slot_of(unsigned cpu)
{
	return &pages_shm(machine->cpus[cpu].node)->slot[cpu];
}

/* ---- start and end ---- */

void pages_open(void)
{
	memset(&pages, 0, sizeof pages);
	if (sim_chance(machine, 30))
		pages.without = sim_random(machine, 1u << MECHANISMS);
	pages.share = sim_chance(machine, 50) ? 1 + sim_random(machine, machine->n_pages)
					      : machine->n_pages;
}

void pages_new_node(struct sim *sim, unsigned index, unsigned n_nodes)
{
	(void)n_nodes;
	cluster_make_ram(&sim->nodes[index], sim->n_pages);
	memset((void *)pages_rights(index), PAGE_NONE, sim->n_pages);
	memset(pages.right[index], PAGE_NONE, sim->n_pages);
}

void pages_start(struct node *node)
{
	wants_start(node);
	node->share_pages = pages.share;
	pagestore_start(node);
	machine->nodes[node->o.node].dsm = node->dsm;
}

void pages_end_node(struct sim *sim, unsigned index)
{
	struct node *node = &daemons[index].node;

	wants_end(node);
	pagestore_end(node);
	sim->nodes[index].dsm = NULL;
}

void pages_preloaded(struct sim *sim, gfn_t gfn, unsigned owner)
{
	(void)sim;
	pagestore_preloaded(&daemons[owner].node, gfn, 1);
}

/* ---- processors ---- */

static bool is_locked(const struct sim_cpu *cpu)
{
	return !cpu->buffered && cpu->next_op < cpu->n_ops &&
	       cpu->ops[cpu->next_op].kind == OP_EXCHANGE;
}

static uint32_t choose_ahead(gfn_t ahead[FEW])
{
	uint32_t n = sim_chance(machine, 40) ? sim_random(machine, FEW + 1) : 0;

	for (uint32_t i = 0; i < n; i++) /* also pages that there are not */
		ahead[i] = sim_random(machine, machine->n_pages + 1);
	return n;
}

static void ask_by_slot(unsigned cpu, gfn_t gfn, enum page_right right)
{
	struct vcpu_slot *slot = slot_of(cpu);
	bool guesses = right == PAGE_READ && !sim_random(machine, 4);
	gfn_t ahead[FEW];
	uint32_t n = choose_ahead(ahead);

	atomic_store(&slot->want_gfn, gfn);
	atomic_store(&slot->want_right, guesses ? PAGE_WRITE : right);
	atomic_store(&slot->want_locked, is_locked(&machine->cpus[cpu]));
	atomic_store(&slot->want_guessed, guesses);
	for (uint32_t i = 0; i < n; i++)
		atomic_store(&slot->want_ahead[i], ahead[i]);
	atomic_store(&slot->want_aheads, n);
	atomic_store(&slot->want, WANT_ASKED);
	world_after_ns(sim_random(machine, LOOK_NS), WORLD_LOOK, machine->cpus[cpu].node, cpu, 0,
		       NULL, 0);
}

static void ask_by_message(unsigned cpu, gfn_t gfn, enum page_right right)
{
	unsigned number = machine->cpus[cpu].node;
	const struct msg_page_want want = { .gfn = gfn, .right = right };
	gfn_t ahead[FEW];
	uint32_t n = choose_ahead(ahead);

	children_say(number, cpu, (uint32_t)daemons[number].node.monitor[cpu].pid, MSG_PAGE_WANT,
		     &want, sizeof want, ahead, n * (uint32_t)sizeof *ahead);
}

void pages_want(struct sim *sim, unsigned cpu, gfn_t gfn, enum page_right right)
{
	const struct node *node = &daemons[sim->cpus[cpu].node].node;

	atomic_store(&slot_of(cpu)->granted, gfn + 1);
	pages.by_slot[cpu] = node->monitor[cpu].part != PART_RUNS || !sim_chance(sim, 20);
	(pages.by_slot[cpu] ? ask_by_slot : ask_by_message)(cpu, gfn, right);
}

/* Writes what an interrupted VM process notes: half of the processors seem to wait in a loop. */
static void show_itself(unsigned cpu)
{
	static const uint32_t states[] = { SLOT_MONITOR, SLOT_RUNNING, SLOT_RUNNING, SLOT_HALTED };

	struct vcpu_slot *slot = slot_of(cpu);

	atomic_store(&pages_shm(machine->cpus[cpu].node)->doorbell[cpu].state,
		     states[sim_random(machine, ARRAY_LEN(states))]);
	atomic_store(&slot->seen.pauses, sim_random(machine, 2));
	atomic_fetch_add(&slot->seen.count, 1);
}

void pages_run(struct sim *sim, unsigned cpu)
{
	(void)sim;
	show_itself(cpu);
	atomic_store(&slot_of(cpu)->granted, 0);
	pages.fresh_ns[cpu] = 0;
}

/* Notes that the CPU was answered.  If the page came for it just now, the page is protected from
 * now on. */
static void answered(unsigned cpu, bool came)
{
	sim_trace(machine, "cpu %u has page %u%s", cpu, machine->cpus[cpu].waits_for - 1,
		  came ? ", which has come for it" : "");
	pages.fresh_ns[cpu] = came ? machine->now_ns : 0;
	cpu_answered(machine, cpu);
}

void pages_on_ready(unsigned cpu, const struct msg_page_ready *ready)
{
	if (machine->cpus[cpu].waits_for != ready->gfn + 1 || pages.by_slot[cpu])
		sim_fail(machine, "CPU %u gets page %u, for which it has not asked", cpu,
			 ready->gfn);
	answered(cpu, false);
}

void pages_fetch(struct sim *sim, unsigned node, gfn_t gfn, enum page_right right)
{
	unsigned other = gfn % sim->n_nodes;

	if (spill_lets_ahead(&daemons[node].node, gfn))
		dsm_want(sim->nodes[node].dsm, gfn, right);
	if (node_has_host(&daemons[node].node, other)) /* as if a CPU started there */
		starts_name(&daemons[node].node, other);
}

void pages_give_up(struct sim *sim, unsigned node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < sim->n_cpus; cpu++)
		if (sim->cpus[cpu].node == node && sim->cpus[cpu].granted == gfn + 1)
			pages.fresh_ns[cpu] = 0;
}

/* ---- the daemon's loop ---- */

void pages_on_look(unsigned node) { wants_look(&daemons[node].node); }

void pages_on_sleep(unsigned node) { batch_serve(&daemons[node].node); }

void pages_on_message(struct node *node, unsigned from, const struct message *m)
{
	batch_before(node, m->header.type);
	net_receive(node->net, from, m);
}

static bool comes_soon(const struct sim_event *event, unsigned node)
{
	return event->kind == EVENT_HOST && event->type == WORLD_MESSAGE && event->node == node &&
	       event->at_ns <= pages.burst_ns[node];
}

/* Returns whether a daemon that was busy, or asleep, finds more messages.  It serves them before it
 * sleeps. */
bool pages_has_more(const struct node *node)
{
	unsigned number = node->o.node;

	if (pages.burst_ns[number] < machine->now_ns) {
		if (sim_chance(machine, 50))
			return false;
		pages.burst_ns[number] = machine->now_ns + sim_random(machine, BURST_NS);
	}
	if (!events_any(comes_soon, number))
		return false;
	world_after_ns(pages.burst_ns[number] - machine->now_ns + 1, WORLD_SLEEP, number, 0, 0,
		       NULL, 0);
	return true;
}

/* ---- after each event ---- */

static uint8_t held_right(unsigned node, gfn_t gfn)
{
	const struct dsm *dsm = machine->nodes[node].dsm;

	return dsm ? (uint8_t)dsm_right(dsm, gfn) : PAGE_NONE;
}

static bool look_at_answer(unsigned cpu)
{
	unsigned number = machine->cpus[cpu].node;

	return machine->cpus[cpu].waits_for && pages.by_slot[cpu] && daemons[number].exists &&
	       !daemons[number].dead && atomic_load(&slot_of(cpu)->want) == WANT_NONE;
}

/* Checks that a page does not leave before the CPU that asked for it has run with it
 * (vmm/node/pages/hold.h). */
static void check_progress(unsigned cpu, gfn_t gfn)
{
	const struct sim_cpu *c = &machine->cpus[cpu];

	if (pages.fresh_ns[cpu] && pages_rights(c->node)[gfn] < c->waits_right &&
	    !machine->broken &&
	    machine->now_ns - pages.fresh_ns[cpu] < HOLD_RUN_MAX_US * (uint64_t)NS_PER_US)
		sim_fail(machine, "page %u goes from node %u before CPU %u has run with it", gfn,
			 c->node, cpu);
}

/* A daemon that polls sends its delayed requests when their time has come. */
static void look_at_delayed(unsigned node)
{
	uint64_t next_ns;

	if (!daemons[node].exists || daemons[node].dead)
		return;
	next_ns = pagestore_send_delayed(&daemons[node].node, false);
	if (next_ns && next_ns != pages.delayed_ns[node])
		world_after_ns(next_ns - machine->now_ns, WORLD_SLEEP, node, 0, 0, NULL, 0);
	pages.delayed_ns[node] = next_ns;
}

/* Returns whether the hosts have room for all pages, wherever these are.  A page that moves counts
 * twice. */
static bool is_ample(const struct node *node)
{
	uint32_t hosts = (uint32_t)__builtin_popcount(dsm_nodes(node->dsm));

	return (pages.share - pages.share / 4) * hosts >= machine->n_pages + 2 * hosts;
}

/* Checks that a host holds no more than its share and a little (vmm/node/pages/share.h), whatever
 * its CPUs want.  It may if it held more before, or is excused (vmm/node/pages/spill.h). */
static void check_share(unsigned number)
{
	const struct node *node = &daemons[number].node;
	struct bound *bound = &pages.bound[number];
	uint32_t least = share_most(pages.share), has;
	struct spill_counts counts;

	if (!daemons[number].exists || !node->spill)
		return;
	has = share_held(pagestore_share(node)) + dsm_coming(node->dsm);
	counts = spill_counts(node);
	if (bound->life != daemons[number].life || bound->start_ns != node->start_ns)
		*bound = (struct bound){ node->start_ns, counts.excused, counts.forced,
					 daemons[number].life, ~0u };
	if (counts.excused > bound->excused && is_ample(node) && !freeze_holds(node) &&
	    dsm_nodes(node->dsm) >> number & 1 && trouble.number == NO_TROUBLE)
		sim_fail(machine, "node %u holds %u pages of %u, though others have room", number,
			 has, pages.share);
	bound->most += bound->most == ~0u ? 0 : (uint32_t)(counts.excused - bound->excused +
							  counts.forced - bound->forced);
	bound->excused = counts.excused;
	bound->forced = counts.forced;
	if (has > bound->most && mechanism_on(pages.without, MECHANISM_SPILL))
		sim_fail(machine, "node %u holds %u pages; its share is %u", number, has,
			 pages.share);
	bound->most = has < least ? least : has < bound->most ? has : bound->most;
}

void pages_look(struct sim *sim)
{
	for (unsigned node = 0; node < sim->n_nodes; node++)
		look_at_delayed(node);
	for (unsigned cpu = 0; cpu < sim->n_cpus; cpu++) {
		const struct sim_cpu *c = &sim->cpus[cpu];
		gfn_t gfn = c->waits_for - 1;

		if (c->node >= MAX_NODES)
			continue;
		if (c->granted)
			check_progress(cpu, c->granted - 1);
		else if (look_at_answer(cpu))
			answered(cpu, pages.held[c->node][gfn] < held_right(c->node, gfn));
	}
	for (unsigned node = 0; node < sim->n_nodes; node++)
		check_share(node);
	for (unsigned node = 0; node < sim->n_nodes; node++)
		for (gfn_t gfn = 0; gfn < sim->n_pages; gfn++) {
			uint8_t right = pages_rights(node)[gfn];

			if (right != pages.right[node][gfn])
				sim_trace(sim, "node %u: page %u, right %u", node, gfn, right);
			if (right > pages.right[node][gfn])
				cluster_check_rights(sim, gfn);
			pages.right[node][gfn] = right;
			pages.held[node][gfn] = held_right(node, gfn);
		}
}
