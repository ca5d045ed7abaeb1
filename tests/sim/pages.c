/* pages.c - the pages of dsm-sim's nodes: the callbacks of dsm/, in place of the daemon's own files
 * (daemon_pages.c has those for daemon-sim).  Lost pages are poisoned; how long a page is held, and
 * when it is asked about again, is random. */
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

enum { POISON = 0xdddddddd };

static struct sim *the_sim; /* the callbacks' context is a node */

static void on_send(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body,
		    const void *payload, uint32_t payload_bytes)
{
	struct sim_node *node = ctx;
	struct sim *sim = the_sim;
	unsigned peer = dsm_node_of(node->dsm, to);
	struct sim_event event = { .kind = EVENT_DELIVER, .type = type, .body = *body, .to = to };

	cluster_send(sim, node->index, peer, &event, payload, payload_bytes);
	sim_trace(sim, "node %u -> %u %s page %u txn %u for %u acks %u, at %llu", node->index, peer,
		  wire_type_name(type), body->gfn, body->txn, body->requester, body->acks,
		  (unsigned long long)event.at_ns);
}

static void on_send_home(void *ctx, const struct msg_home *body, const void *payload,
			 uint32_t payload_bytes)
{
	hosts_send_home(the_sim, ((struct sim_node *)ctx)->index, body, payload, payload_bytes);
}

static void on_take(void *ctx, gfn_t gfn, enum page_right new_right, void *contents)
{
	struct sim_node *node = ctx;

	sim_trace(the_sim, "node %u: take page %u down to %d", node->index, gfn, new_right);
	if (node->right[gfn] < new_right)
		sim_fail(the_sim, "node %u: take raises page %u from %d to %d", node->index, gfn,
			 node->right[gfn], new_right);
	node->right[gfn] = (uint8_t)new_right;
	if (contents)
		memcpy(contents, node->memory[gfn], PAGE_BYTES);
	for (int i = 0; new_right == PAGE_NONE && i < SIM_WORDS; i++)
		node->memory[gfn][i] = POISON;
}

static void on_fill(void *ctx, gfn_t gfn, const void *contents, enum page_right right)
{
	struct sim_node *node = ctx;

	sim_trace(the_sim, "node %u: fill page %u, right %d%s", node->index, gfn, right,
		  contents ? "" : ", zeros");
	if (node->right[gfn] != PAGE_NONE)
		sim_fail(the_sim, "node %u: fill of page %u, which has right %d", node->index, gfn,
			 node->right[gfn]);
	if (contents)
		memcpy(node->memory[gfn], contents, PAGE_BYTES);
	else
		memset(node->memory[gfn], 0, PAGE_BYTES);
	node->right[gfn] = (uint8_t)right;
	cluster_check_rights(the_sim, gfn);
}

static void on_upgrade(void *ctx, gfn_t gfn)
{
	struct sim_node *node = ctx;

	sim_trace(the_sim, "node %u: raise page %u", node->index, gfn);
	if (node->right[gfn] != PAGE_READ && !the_sim->expect_fault)
		sim_fail(the_sim, "node %u: raise of page %u, which has right %d", node->index, gfn,
			 node->right[gfn]);
	node->right[gfn] = PAGE_WRITE;
	cluster_check_rights(the_sim, gfn);
}

static void on_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	cpu_ready(the_sim, ((struct sim_node *)ctx)->index, gfn, right);
}

static uint32_t on_hold_us(void *ctx, gfn_t gfn, enum page_right new_right)
{
	(void)new_right;
	if (!cpu_holds(the_sim, ((struct sim_node *)ctx)->index, gfn))
		return 0;
	return 1 + sim_random(the_sim, sim_chance(the_sim, 5) ? 5000 : 100);
}

static void on_after_us(void *ctx, gfn_t gfn, uint32_t us)
{
	struct sim_event event = { .kind = EVENT_RETRY,
				   .node = (uint8_t)((struct sim_node *)ctx)->index,
				   .at_ns = the_sim->now_ns + us * 1000ull,
				   .body.gfn = gfn };

	events_add(&event);
	if (sim_chance(the_sim, 20)) { /* a retry that comes too early is harmless */
		event.at_ns = the_sim->now_ns + 1;
		events_add(&event);
	}
}

/* A node may refuse a page that is handed over to it alone. */
static bool on_adopts(void *ctx, gfn_t gfn, unsigned owner, bool must)
{
	(void)ctx, (void)gfn, (void)owner;
	return must || !sim_chance(the_sim, 30);
}

_Atomic uint8_t *pages_rights(unsigned node)
{
	static _Atomic uint8_t rights[MAX_NODES][SIM_MAX_PAGES];

	return rights[node];
}

void pages_new_node(struct sim *sim, unsigned index, unsigned n_nodes)
{
	struct sim_node *node = &sim->nodes[index];
	struct dsm_host host = { node,	     on_send,  on_send_home, on_take,	  on_fill,
				 on_upgrade, on_ready, on_hold_us,   on_after_us, NULL, NULL,
				 on_adopts };

	the_sim = sim;
	node->dsm = dsm_new(index, n_nodes, sim->n_pages, &host);
	cluster_make_ram(node, sim->n_pages);
	for (unsigned page = 0; page < sim->n_pages; page++) {
		memset(node->memory[page], 0xdd, PAGE_BYTES);
		node->right[page] = PAGE_NONE;
	}
}

void pages_end_node(struct sim *sim, unsigned index)
{
	dsm_free(sim->nodes[index].dsm);
	sim->nodes[index].dsm = NULL;
}

void pages_preloaded(struct sim *sim, gfn_t gfn, unsigned owner)
{
	sim->nodes[owner].right[gfn] = PAGE_WRITE;
	memset(sim->nodes[owner].memory[gfn], 0, PAGE_BYTES);
}

void pages_want(struct sim *sim, unsigned cpu, gfn_t gfn, enum page_right right)
{
	dsm_want(sim->nodes[sim->cpus[cpu].node].dsm, gfn, right);
}

void pages_fetch(struct sim *sim, unsigned node, gfn_t gfn, enum page_right right)
{
	dsm_want(sim->nodes[node].dsm, gfn, right);
}

void pages_give_up(struct sim *sim, unsigned node, gfn_t gfn) { (void)sim, (void)node, (void)gfn; }
void pages_run(struct sim *sim, unsigned cpu) { (void)sim, (void)cpu; }
void pages_look(struct sim *sim) { (void)sim; }
