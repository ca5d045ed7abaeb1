/* hosts.c - changes of the nodes while programs run: homes move, nodes join and leave, processors
 * move.
 *
 * Node 0 leads, one change after the other, with messages that travel as all others do:
 *     a home moves      GIVE to where it is; its state to the new node; TAKEN; perhaps NEWS to all
 *     node K joins      NEWS to K; JOINED back; NODES to all; then some homes move there
 *     node K leaves     NODES to all; its processors move, and its homes; NEWS to all; LEAVE;
 *                       EMPTY; FORGET to all others, whose MARK to K is their last message to it;
 *                       FAREWELL from K to each, its last message; GONE
 * The daemons do the same (vmm/node/hosts/hosts.c).  A message to a node that is gone fails the
 * run.  Without FAREWELL, the last messages that K forwarded could still be in flight to a node
 * that leaves next.
 */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "dsm/dsm_private.h"
#include "tests/sim/sim.h"

enum { STEP_NS = 100000, CHANGE_LIMIT_NS = 2000000000 };
enum sim_step {
	SIM_GIVE,
	SIM_STATE,
	SIM_TAKEN,
	SIM_NODES,
	SIM_NEWS,
	SIM_JOINED,
	SIM_LEAVE,
	SIM_EMPTY,
	SIM_FORGET,
	SIM_MARK,
	SIM_FAREWELL,
	SIM_GONE,
	SIM_LEAVE_TIMER,
	SIM_CPUS_TIMER
};

static struct change { /* node 0's */
	bool on, leaves;
	unsigned node; /* that joins or leaves; 0: a home moves */
	uint64_t since_ns;
	struct home_place place[DSM_INTERVALS]; /* where the homes are, as node 0 knows */
	struct { unsigned interval, to; } give[SIM_MAX_PAGES];
	unsigned n_give, waiting; /* homes whose TAKEN is still to come */
	uint32_t marks, gone; /* marks: at the leaving node. gone: at node 0. */
} change;

void hosts_open(struct sim *sim)
{
	(void)sim;
	change = (struct change){ 0 };
}

void hosts_homes(struct sim *sim)
{
	memcpy(change.place, dsm_homes(sim->nodes[0].dsm), sizeof(change.place));
}

void hosts_plan(struct sim *sim)
{
	struct sim_event event = { .kind = EVENT_CHANGE };

	for (unsigned i = sim->changes ? sim_random(sim, sim->changes + 1) : 0; i; i--) {
		event.at_ns = sim->now_ns + sim_random(sim, 3000000);
		events_add(&event);
	}
}

void hosts_watch(struct sim *sim)
{
	if (change.on && sim->now_ns - change.since_ns > CHANGE_LIMIT_NS)
		sim_fail(sim, "node %u does not %s", change.node, change.leaves ? "leave" : "join");
}

static void send_step(struct sim *sim, unsigned from, unsigned to, enum sim_step step,
		      const void *payload, uint32_t bytes)
{
	struct sim_event event = { .kind = EVENT_HOST, .type = (uint16_t)step };

	cluster_send(sim, from, to, &event, payload, bytes);
}

static void send_home_step(struct sim *sim, unsigned from, unsigned to, enum sim_step step,
			   const struct msg_home *home, const void *payload, uint32_t bytes)
{
	struct sim_event event = { .kind = EVENT_HOST, .type = (uint16_t)step, .home = *home };

	cluster_send(sim, from, to, &event, payload, bytes);
}

void hosts_send_home(struct sim *sim, unsigned from, const struct msg_home *body,
		     const void *payload, uint32_t bytes)
{
	sim_trace(sim, "node %u -> %u interval %u, its place %u", from, body->to, body->interval,
		  body->generation);
	send_home_step(sim, from, body->to, SIM_STATE, body, payload, bytes);
}

static void send_to_all(struct sim *sim, enum sim_step step, const void *payload, uint32_t bytes)
{
	for (unsigned i = 0; i < sim->n_nodes; i++)
		if (sim->present >> i & 1)
			send_step(sim, 0, i, step, payload, bytes);
}

static void timer(struct sim *sim, unsigned node, enum sim_step step)
{
	struct sim_event event = { .kind = EVENT_HOST,
				   .type = (uint16_t)step,
				   .node = (uint8_t)node,
				   .at_ns = sim->now_ns + STEP_NS };

	events_add(&event);
}

/* Returns a node other than `but` that is present and stays; MAX_NODES if there is none. */
static unsigned some_node(struct sim *sim, unsigned but)
{
	uint32_t able = sim->present & ~sim->leaving & ~(1u << but);
	unsigned skip = able ? sim_random(sim, (uint32_t)__builtin_popcount(able)) : 0;

	while (able && skip--)
		able &= able - 1;
	return able ? (unsigned)__builtin_ctz(able) : MAX_NODES;
}

static void tell_nodes(struct sim *sim)
{
	uint32_t nodes = sim->present & ~sim->leaving;

	if (sim_chance(sim, 30)) /* one more node waits to leave, or is told to stay after all */
		nodes &= ~(1u << sim_random(sim, sim->n_nodes)) | 1;
	send_to_all(sim, SIM_NODES, &nodes, sizeof(nodes));
}

/* ---- homes ---- */

static void want_home_at(unsigned interval, unsigned to)
{
	for (unsigned i = 0; i < change.n_give; i++)
		if (change.give[i].interval == interval)
			return;
	change.give[change.n_give].interval = interval;
	change.give[change.n_give++].to = to;
}

static void homes_are_moved(struct sim *sim);

static void move_homes(struct sim *sim)
{
	change.waiting = change.n_give;
	for (unsigned i = 0; i < change.n_give; i++) {
		struct msg_home home = { .interval = change.give[i].interval,
					 .to = change.give[i].to };

		send_home_step(sim, 0, change.place[home.interval].node, SIM_GIVE, &home, NULL, 0);
	}
	if (!change.n_give)
		homes_are_moved(sim);
	change.n_give = 0;
}

static void homes_are_moved(struct sim *sim)
{
	if (change.leaves || sim_chance(sim, 70))
		send_to_all(sim, SIM_NEWS, change.place, sizeof(change.place));
	if (change.leaves)
		send_step(sim, 0, change.node, SIM_LEAVE, NULL, 0);
	else
		change.on = false;
}

static void on_taken(struct sim *sim, const struct sim_event *event)
{
	sim->moves++;
	change.place[event->home.interval] = (struct home_place){ event->from,
								  event->home.generation };
	if (--change.waiting == 0)
		homes_are_moved(sim);
}

/* ---- a change begins ---- */

static void begin_home(struct sim *sim)
{
	unsigned interval = dsm_interval(sim_random(sim, sim->n_pages), sim->n_pages);
	unsigned to = some_node(sim, change.place[interval].node);

	if (to == MAX_NODES) {
		change.on = false;
		return;
	}
	want_home_at(interval, to);
	move_homes(sim);
}

static void begin_join(struct sim *sim, unsigned node)
{
	sim_trace(sim, "node %u joins", node);
	sim->joins++;
	change.node = node;
	pages_new_node(sim, node, 0);
	send_step(sim, 0, node, SIM_NEWS, change.place, sizeof(change.place));
	for (gfn_t gfn = 0; gfn < sim->n_pages; gfn++)
		if (sim_chance(sim, 40))
			want_home_at(dsm_interval(gfn, sim->n_pages), node);
	send_step(sim, 0, node, SIM_JOINED, NULL, 0);
}

static void move_cpus_away(struct sim *sim)
{
	bool all = true;

	for (unsigned i = 0; i < sim->n_cpus; i++)
		if (sim->cpus[i].node == change.node)
			all &= cpu_move(sim, i, some_node(sim, change.node));
	if (!all)
		return timer(sim, 0, SIM_CPUS_TIMER);
	for (gfn_t gfn = 0; gfn < sim->n_pages; gfn++)
		if (change.place[dsm_interval(gfn, sim->n_pages)].node == change.node)
			want_home_at(dsm_interval(gfn, sim->n_pages), some_node(sim, change.node));
	move_homes(sim);
}

static void begin_leave(struct sim *sim, unsigned node)
{
	sim_trace(sim, "node %u leaves", node);
	sim->leaves++;
	change.node = node;
	change.leaves = true;
	change.marks = change.gone = 0;
	sim->leaving |= 1u << node;
	tell_nodes(sim);
	move_cpus_away(sim);
}

void hosts_change(struct sim *sim, struct sim_event *event)
{
	unsigned node = sim_random(sim, sim->n_nodes), cpu = sim_random(sim, sim->n_cpus);

	if (change.on) { /* later */
		event->at_ns += STEP_NS + sim_random(sim, STEP_NS);
		return events_add(event);
	}
	if (sim_chance(sim, 30)) {
		cpu_move(sim, cpu, some_node(sim, MAX_NODES - 1));
		return;
	}
	change.on = true;
	change.leaves = false;
	change.node = 0;
	change.since_ns = sim->now_ns;
	if (node == 0 || sim_chance(sim, 30))
		begin_home(sim);
	else if (sim->present >> node & 1)
		begin_leave(sim, node);
	else
		begin_join(sim, node);
}

/* ---- what the nodes do ---- */

static void leave_step(struct sim *sim, unsigned node)
{
	if (dsm_leave_step(sim->nodes[node].dsm, STEP_NS / 1000 * 10))
		send_step(sim, node, 0, SIM_EMPTY, NULL, 0);
	else
		timer(sim, node, SIM_LEAVE_TIMER);
}

static void on_mark(struct sim *sim, unsigned node, unsigned from)
{
	change.marks |= 1u << from;
	if (change.marks != (sim->present & ~sim->leaving))
		return;
	dsm_free(sim->nodes[node].dsm);
	sim->nodes[node].dsm = NULL;
	for (unsigned i = 0; i < sim->n_nodes; i++)
		if (change.marks >> i & 1)
			send_step(sim, node, i, SIM_FAREWELL, NULL, 0);
}

static void on_gone(struct sim *sim, unsigned from)
{
	change.gone |= 1u << from;
	if (change.gone != (sim->present & ~sim->leaving))
		return;
	sim->present &= ~(1u << change.node);
	sim->leaving = 0;
	change.on = false;
}

static void on_joined(struct sim *sim, unsigned node)
{
	if (node)
		return send_step(sim, node, 0, SIM_JOINED, NULL, 0);
	sim->present |= 1u << change.node;
	tell_nodes(sim);
	move_homes(sim);
}

void hosts_on_event(struct sim *sim, struct sim_event *event)
{
	struct dsm *dsm = sim->nodes[event->node].dsm;
	uint32_t nodes;

	switch ((enum sim_step)event->type) {
	case SIM_GIVE:
		if (dsm_home_give(dsm, event->home.interval, event->home.to))
			sim_fail(sim, "node %u cannot give interval %u", event->node,
				 event->home.interval);
		break;
	case SIM_STATE:
		switch (dsm_on_home_state(dsm, &event->home, event->payload,
					  event->payload_bytes)) {
		case 1:
			send_home_step(sim, event->node, 0, SIM_TAKEN, &event->home, NULL, 0);
			break;
		case 0: break;
		default:
			sim_fail(sim, "node %u refuses interval %u", event->node,
				 event->home.interval);
		}
		break;
	case SIM_TAKEN:
		on_taken(sim, event);
		break;
	case SIM_NODES:
		memcpy(&nodes, event->payload, sizeof(nodes));
		dsm_set_nodes(dsm, nodes);
		break;
	case SIM_NEWS:
		dsm_homes_learn(dsm, event->payload);
		break;
	case SIM_JOINED:
		on_joined(sim, event->node);
		break;
	case SIM_LEAVE:
		dsm_leave(dsm, true);
		leave_step(sim, event->node);
		break;
	case SIM_EMPTY:
		for (unsigned i = 0; i < sim->n_nodes; i++)
			if (sim->present & ~sim->leaving & 1u << i)
				send_step(sim, 0, i, SIM_FORGET, NULL, 0);
		break;
	case SIM_FORGET:
		dsm_forget_node(dsm, change.node);
		send_step(sim, event->node, change.node, SIM_MARK, NULL, 0);
		break;
	case SIM_MARK:
		on_mark(sim, event->node, event->from);
		break;
	case SIM_FAREWELL:
		send_step(sim, event->node, 0, SIM_GONE, NULL, 0);
		break;
	case SIM_GONE:
		on_gone(sim, event->from);
		break;
	case SIM_LEAVE_TIMER:
		leave_step(sim, event->node);
		break;
	case SIM_CPUS_TIMER:
		move_cpus_away(sim);
		break;
	}
	free(event->payload);
}

bool hosts_lost(struct sim *sim, const struct sim_event *event)
{
	(void)sim, (void)event;
	return false;
}

void hosts_close(struct sim *sim) { (void)sim; }
void hosts_check_idle(struct sim *sim) { (void)sim; }
int hosts_report(void) { return 0; }
