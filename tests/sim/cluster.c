/* cluster.c - nodes with memory, the network between them, and what must always hold. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/log.h"
#include "dsm/dsm_private.h"
#include "tests/sim/sim.h"

enum { WATCH_NS = 5000000 };

static void print_repeat(const struct sim *sim)
{
	fprintf(stderr, "  seed %llu failed; repeat: build/tests/sim/%s --seed %llu --nodes "
		"%u%s%s --trace\n",
		(unsigned long long)sim->seed, program_invocation_short_name,
		(unsigned long long)sim->seed, sim->n_nodes, sim->fault_name ? " --fault " : "",
		sim->fault_name ? sim->fault_name : "");
}

void sim_fail(struct sim *sim, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: %llu ns: ", program_invocation_short_name,
		(unsigned long long)sim->now_ns);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	print_repeat(sim);
	exit(1);
}

void sim_trace(struct sim *sim, const char *format, ...)
{
	va_list arguments;

	if (!sim->verbose)
		return;
	printf("%10llu ", (unsigned long long)sim->now_ns);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

/* Most messages are quick.  Some take long, and at times a pair of nodes is slow for a while. */
static uint64_t network_delay(struct sim *sim, unsigned from, unsigned to)
{
	if (sim_chance(sim, 2))
		sim->slow_until[from][to] = sim->now_ns + sim_random(sim, SIM_MAX_DELAY_NS);
	if (sim->now_ns < sim->slow_until[from][to] || sim_chance(sim, 3))
		return sim_random(sim, SIM_MAX_DELAY_NS);
	return 5000 + sim_random(sim, 50000);
}

void cluster_send(struct sim *sim, unsigned from, unsigned to, struct sim_event *event,
		  const void *payload, uint32_t payload_bytes)
{
	uint64_t *last = &sim->last_delivery[from][to];

	event->node = (uint8_t)to;
	event->from = (uint8_t)from;
	event->at_ns = sim->now_ns + network_delay(sim, from, to);
	if (event->at_ns <= *last)
		event->at_ns = *last + 1;
	*last = event->at_ns;
	event->payload = NULL;
	event->payload_bytes = payload_bytes;
	if (payload_bytes) {
		event->payload = malloc(payload_bytes);
		memcpy(event->payload, payload, payload_bytes);
	}
	sim->messages++;
	events_add(event);
}

/* Checks that a page has one writer or many readers. */
void cluster_check_rights(struct sim *sim, gfn_t gfn)
{
	unsigned readers = 0, writers = 0;

	for (unsigned i = 0; i < sim->n_nodes; i++) {
		readers += sim->nodes[i].right[gfn] == PAGE_READ;
		writers += sim->nodes[i].right[gfn] == PAGE_WRITE;
	}
	if (writers <= 1 && !(writers && readers))
		return;
	if (!sim->expect_fault)
		sim_fail(sim, "page %u has %u writers and %u readers", gfn, writers, readers);
	sim->broken_invariants++;
}

/* Makes the node's memory: a file, as a daemon's memory is, mapped as long as this process
 * lives. */
void cluster_make_ram(struct sim_node *node, unsigned n_pages)
{
	static struct { int fd; uint8_t *bytes; } ram[MAX_NODES];
	const size_t bytes = (size_t)SIM_MAX_PAGES * PAGE_BYTES;

	if (!ram[node->index].bytes) {
		ram[node->index].fd = memfd_create("ram", MFD_CLOEXEC);
		ram[node->index].bytes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
					      ram[node->index].fd, 0);
		if (ram[node->index].bytes == MAP_FAILED)
			die("no memory for a node");
	}
	if (ftruncate(ram[node->index].fd, 0) ||
	    ftruncate(ram[node->index].fd, (off_t)n_pages * PAGE_BYTES))
		die("no memory for a node");
	node->ram_fd = ram[node->index].fd;
	node->ram = ram[node->index].bytes;
	for (unsigned page = 0; page < SIM_MAX_PAGES; page++)
		node->memory[page] = (uint32_t *)(node->ram + (size_t)page * PAGE_BYTES);
}

void cluster_begin(struct sim *sim)
{
	unsigned n_start = (unsigned)__builtin_popcount(sim->present), n = 0;
	struct page_range range[SIM_MAX_PAGES];
	bool near;

	for (unsigned i = 0; i < sim->n_nodes; i++) {
		sim->nodes[i].index = i;
		sim->nodes[i].right = pages_rights(i);
		memset((void *)sim->nodes[i].right, PAGE_NONE, sim->n_pages);
	}
	for (unsigned i = 0; i < n_start; i++)
		pages_new_node(sim, i, n_start);
	hosts_open(sim);
	for (unsigned page = 0; page < sim->n_pages; page++) {
		unsigned owner = sim_random(sim, n_start);

		if (!sim_chance(sim, 50))
			range[n++] = (struct page_range){ page, 1, owner, 0 };
	}
	near = sim->seed % 2;
	for (unsigned i = 0; near && i < n_start; i++)
		dsm_homes_near(sim->nodes[i].dsm, range, n);
	hosts_homes(sim);
	for (unsigned k = 0; k < n; k++) {
		for (unsigned i = 0; i < n_start; i++)
			dsm_preloaded(sim->nodes[i].dsm, range[k].first_gfn, 1, range[k].owner);
		pages_preloaded(sim, range[k].first_gfn, range[k].owner);
	}
}

void cluster_end(struct sim *sim)
{
	hosts_close(sim);
	for (unsigned i = 0; i < sim->n_nodes; i++)
		pages_end_node(sim, i);
	events_clear();
}

static void deliver(struct sim *sim, struct sim_event *event)
{
	struct msg_header header = { .type = event->type,
				     .to = event->to,
				     .from_node = event->from,
				     .bytes = (uint32_t)sizeof(event->body) +
					      (event->payload ? PAGE_BYTES : 0) };

	if (hosts_lost(sim, event)) {
		free(event->payload);
		return;
	}
	sim_trace(sim, "node %u <- %u %s page %u txn %u", event->node, event->from,
		  wire_type_name(event->type), event->body.gfn, event->body.txn);
	if (!sim->nodes[event->node].dsm)
		sim_fail(sim, "%s from node %u comes to node %u, which is gone",
			 wire_type_name(event->type), event->from, event->node);
	if (dsm_on_message(sim->nodes[event->node].dsm, &header, &event->body, event->payload))
		sim_fail(sim, "node %u refuses %s from node %u", event->node,
			 wire_type_name(event->type), event->from);
	free(event->payload);
}

/* Does what a host may do at any time: drop a copy, hand a page over, fetch ahead.  Before the host
 * itself takes a page or a right from its CPUs: pages_give_up(). */
static void poke(struct sim *sim, const struct sim_event *event)
{
	struct dsm *dsm = sim->nodes[event->node].dsm;

	if (!(sim->present & ~sim->leaving & 1u << event->node))
		return;
	switch (sim_random(sim, 4)) {
	case 0:
	case 1:
		pages_give_up(sim, event->node, event->body.gfn);
		dsm_drop(dsm, event->body.gfn);
		break;
	case 2:
		dsm_handover(dsm, event->body.gfn,
			     sim_chance(sim, 50) ? DSM_ANY_NODE : sim_random(sim, sim->n_nodes));
		break;
	case 3:
		pages_fetch(sim, event->node, event->body.gfn,
			    sim_chance(sim, 70) ? PAGE_READ : PAGE_WRITE);
		break;
	}
}

static void handle(struct sim *sim, struct sim_event *event)
{
	switch ((enum sim_event_kind)event->kind) {
	case EVENT_DELIVER:
		return deliver(sim, event);
	case EVENT_CPU:
		return cpu_step(sim, event->node);
	case EVENT_RETRY:
		if (sim->nodes[event->node].dsm)
			dsm_retry(sim->nodes[event->node].dsm, event->body.gfn);
		return;
	case EVENT_POKE:
		return poke(sim, event);
	case EVENT_CHANGE:
		return hosts_change(sim, event);
	case EVENT_HOST:
		return hosts_on_event(sim, event);
	case EVENT_WATCH:
		cpu_watch(sim);
		hosts_watch(sim);
		if (sim->cpus_running)
			cluster_watch(sim);
		return;
	}
}

void cluster_watch(struct sim *sim)
{
	struct sim_event event = { .kind = EVENT_WATCH, .at_ns = sim->now_ns + WATCH_NS };

	events_add(&event);
}

void cluster_run(struct sim *sim)
{
	struct sim_event event;

	sim->runs++;
	sim->went_back = false;
	cluster_watch(sim);
	for (unsigned i = sim_random(sim, 12); i; i--) {
		event = (struct sim_event){ .kind = EVENT_POKE,
					    .at_ns = sim->now_ns + sim_random(sim, 2000000),
					    .node = (uint8_t)sim_random(sim, sim->n_nodes),
					    .body.gfn = sim_random(sim, sim->n_pages) };
		events_add(&event);
	}
	hosts_plan(sim);
	while (!sim->ended && events_next(&event)) {
		sim->now_ns = event.at_ns;
		sim->steps++;
		handle(sim, &event);
		pages_look(sim);
		if (sim->cpus_running && !sim->ended && events_only_watch())
			sim_fail(sim, "%u CPUs wait, and nothing is on its way", sim->cpus_running);
	}
}

unsigned cluster_home_of(struct sim *sim, gfn_t gfn)
{
	unsigned home = MAX_NODES;

	for (unsigned i = 0; i < sim->n_nodes; i++) {
		if (!sim->nodes[i].dsm || !home_is_here(sim->nodes[i].dsm, gfn))
			continue;
		if (home != MAX_NODES)
			sim_fail(sim, "page %u has its home on node %u and on node %u", gfn, home,
				 i);
		home = i;
	}
	if (home == MAX_NODES)
		sim_fail(sim, "page %u has no home", gfn);
	return home;
}

/* Called when nothing is in flight.  Checks that no page is between two states, and that each
 * touched page has one owner, which its home knows. */
void cluster_check_idle(struct sim *sim)
{
	for (gfn_t gfn = 0; gfn < sim->n_pages; gfn++) {
		struct home_page *home = &sim->nodes[cluster_home_of(sim, gfn)].dsm->homes[gfn];
		uint32_t owners = 0, holders = 0;

		for (unsigned i = 0; i < sim->n_nodes; i++) {
			struct dsm *dsm = sim->nodes[i].dsm;
			uint8_t state;

			if (!dsm)
				continue;
			state = dsm->pages[gfn].state;
			if (state != NODE_NONE && state != NODE_COPY && state != NODE_OWNED &&
			    state != NODE_WRITE)
				sim_fail(sim, "node %u leaves page %u in %s", i, gfn,
					 node_state_name[state]);
			if (dsm_right(dsm, gfn) != sim->nodes[i].right[gfn] &&
			    !(sim->lowers && dsm_right(dsm, gfn) == PAGE_WRITE &&
			      sim->nodes[i].right[gfn] == PAGE_READ))
				sim_fail(sim, "node %u: page %u: the rights differ", i, gfn);
			owners |= (uint32_t)dsm_is_owner(dsm, gfn) << i;
			holders |= (uint32_t)(dsm_right(dsm, gfn) != PAGE_NONE) << i;
		}
		if (home->state == HOME_BUSY || home->queue)
			sim_fail(sim, "the home of page %u is left busy", gfn);
		if (home->state == HOME_IDLE &&
		    (owners != 1u << home->owner || (holders & ~home->copyset)))
			sim_fail(sim, "page %u: owners %#x, holders %#x, but the home has %u, %#x",
				 gfn, owners, holders, home->owner, home->copyset);
		if (home->state == HOME_UNTOUCHED && holders)
			sim_fail(sim, "page %u: held by %#x, but untouched", gfn, holders);
	}
	hosts_check_idle(sim);
}
