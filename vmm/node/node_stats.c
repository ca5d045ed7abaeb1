/* node_stats.c - a node's counters: for --stats (STATS), `vmp pages` (PAGES) and the log at the
 * end. */
#include "vmm/node/node.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/pages/spill.h"
#include "vmm/shared/stats.h"

static void count_traffic(const struct node *node, struct node_stats *s)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++) {
		const struct net_counts *counts = net_counts(node->net, peer);

		for (unsigned type = 0; type < MESSAGE_TYPES; type++) {
			s->messages_sent += counts->sent[type].messages;
			s->bytes_sent += counts->sent[type].bytes;
			s->messages_received += counts->received[type].messages;
			s->bytes_received += counts->received[type].bytes;
		}
	}
}

/* Returns the memory that the host has allocated: pages that are not here are holes. */
static uint64_t ram_bytes(const struct node *node)
{
	struct stat st;

	return fstat(node->ram_fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

static void fill_node_stats(const struct node *node, struct node_stats *s)
{
	*s = (struct node_stats){ .node = node->o.node,
				  .user_monotonic_ns = node->user_ns,
				  .ram_bytes = ram_bytes(node),
				  .share_bytes = (uint64_t)node->share_pages << PAGE_BITS };
	if (node->dsm) {
		const struct dsm_stats *dsm = dsm_stats(node->dsm);
		const struct spill_counts spills = spill_counts(node);

		s->page_requests = dsm->wants_read + dsm->wants_write;
		s->page_fetches = dsm->grants_copy + dsm->grants_page;
		s->page_upgrades = dsm->grants_upgrade;
		s->page_zero_fills = dsm->grants_zero;
		s->page_aheads = dsm->wants_ahead;
		s->page_drops = dsm->drops;
		s->page_invalidations = dsm->sent_pages + dsm->invalidated;
		s->page_holds = dsm->holds;
		s->page_spills = spills.spills;
		s->page_spills_refused = spills.refused;
		s->page_put_off = node->put_off;
		s->page_excused = spills.excused;
		s->pages_most = share_held_most(pagestore_share(node));
	}
	s->hold_ends = node->synced;
	s->page_boths = node->boths;
	s->barrier_tells = node->barrier_tells;
	count_traffic(node, s);
}

static void fill_cpu_stats(const struct node *node, unsigned cpu, struct cpu_stats *s)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];

	*s = (struct cpu_stats){ .cpu = cpu, .node = node->o.node };
	for (unsigned i = 0; i < TRAP_KIND_COUNT; i++)
		s->traps[i] = atomic_load(&slot->traps[i]);
	for (unsigned i = 0; i < TIME_KIND_COUNT; i++)
		s->time_ns[i] = atomic_load(&slot->time_ns[i]);
	for (unsigned i = 0; i < FETCH_BUCKETS; i++)
		s->fetch_us8[i] = atomic_load(&slot->fetch_us8[i]);
}

void node_stats_send(struct node *node, uint32_t seq)
{
	static struct { struct node_stats node; struct cpu_stats cpu[CPU_STATS_PER_PART]; } payload;
	struct msg_stats body = { .node = node->o.node, .seq = seq };
	unsigned cpu = 0, local = (unsigned)__builtin_popcount(node->cpus_here);
	unsigned parts = local ? (local + CPU_STATS_PER_PART - 1) / CPU_STATS_PER_PART : 1;

	for (unsigned part = 0; part < parts; part++) {
		unsigned n = 0;

		fill_node_stats(node, &payload.node);
		payload.node.part = part;
		payload.node.parts = parts;
		for (; cpu < node->o.machine.cpus && n < CPU_STATS_PER_PART; cpu++)
			if (node_has_cpu(node, cpu))
				fill_cpu_stats(node, cpu, &payload.cpu[n++]);
		payload.node.cpus_in_part = n;
		net_send(node->net, VNODE_CLI, MSG_STATS, &body, sizeof body, &payload,
			 sizeof payload.node + n * sizeof payload.cpu[0]);
	}
}

static int hotter(const void *a, const void *b)
{
	uint32_t x = ((const struct page_heat *)a)->faults,
		 y = ((const struct page_heat *)b)->faults;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Sends the hottest pages in one message.  Counting over all pages twice is cheaper than sorting
 * them. */
void node_pages_send(struct node *node, uint32_t seq)
{
	enum { MOST = MAX_MSG_PAYLOAD / sizeof(struct page_heat), LEVELS = 33 };
	static struct page_heat heat[MOST];
	_Atomic uint32_t *faults = hostshm_page_faults(node->shm);
	struct msg_pages_here body = { .node = node->o.node,
				       .seq = seq,
				       .synced = node->synced,
				       .barrier_tells = node->barrier_tells };
	uint32_t at_least[LEVELS] = { 0 }; /* [n]: number of pages whose count has n bits */
	unsigned level = LEVELS, n = 0, total = 0;

	for (gfn_t gfn = 0; gfn < node->ram_pages; gfn++)
		if (faults[gfn])
			at_least[32 - __builtin_clz(faults[gfn])]++;
	while (level > 1 && total + at_least[level - 1] <= MOST)
		total += at_least[--level];
	for (gfn_t gfn = 0; gfn < node->ram_pages && n < MOST; gfn++)
		if (faults[gfn] && 32 - (unsigned)__builtin_clz(faults[gfn]) >= level)
			heat[n++] = (struct page_heat){ .gfn = gfn, .faults = faults[gfn] };
	/* The next lower level does not fit as a whole: fill up with some of its pages. */
	for (gfn_t gfn = 0; gfn < node->ram_pages && n < MOST && level > 1; gfn++)
		if (faults[gfn] && 32 - (unsigned)__builtin_clz(faults[gfn]) == level - 1)
			heat[n++] = (struct page_heat){ .gfn = gfn, .faults = faults[gfn] };
	qsort(heat, n, sizeof *heat, hotter);
	net_send(node->net, VNODE_CLI, MSG_PAGES, &body, sizeof body, heat, n * sizeof *heat);
}

static void log_type(unsigned peer, unsigned type, const struct net_counts *counts)
{
	if (counts->sent[type].messages || counts->received[type].messages)
		log_info("host %u, %s: sent %llu (%llu bytes), received %llu (%llu bytes)", peer,
			 wire_type_name(type), (unsigned long long)counts->sent[type].messages,
			 (unsigned long long)counts->sent[type].bytes,
			 (unsigned long long)counts->received[type].messages,
			 (unsigned long long)counts->received[type].bytes);
}

void node_stats_log(struct node *node)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		for (unsigned type = 0; type < MESSAGE_TYPES; type++)
			log_type(peer, type, net_counts(node->net, peer));
}
