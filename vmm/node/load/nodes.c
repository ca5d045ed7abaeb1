/* nodes.c - see nodes.h. */
#include "vmm/node/load/nodes.h"

#include <string.h>
#include "base/layout.h"

enum {
	/* the guest's page allocator hands out up to 4 MiB in one piece, which must not lie in two
	 * nodes */
	BLOCK_PAGES = 1024,
	LEAST_PAGES = 2 * BLOCK_PAGES,
};
_Static_assert(VMP_NODES_CPU + MAX_CPUS == VMP_NODES_COUNT &&
		       VMP_NODES_COUNT + 4 == VMP_NODES_END && VMP_NODES_END % 4 == 0,
	       "layout");

/* Appends one part for each node; the first part is larger by the remainder. */
static void deal(struct nodes_plan *plan, gfn_t first, gfn_t end)
{
	uint32_t part = (end - first) / plan->count / BLOCK_PAGES * BLOCK_PAGES;

	for (unsigned n = 0; n < plan->count; n++)
		plan->end[plan->parts++] = end - (plan->count - 1 - n) * part;
}

void nodes_plan(struct nodes_plan *plan, uint32_t ram_pages, gfn_t taken, unsigned hosts,
		unsigned cpus, const uint8_t *cpu_host)
{
	const gfn_t low_limit = gpa_to_gfn(ram_low_limit(ram_pages)),
		    low_end = ram_pages < low_limit ? ram_pages : low_limit;
	uint32_t left;

	memset(plan, 0, sizeof *plan);
	taken = (taken + BLOCK_PAGES - 1) / BLOCK_PAGES * BLOCK_PAGES;
	left = taken < low_end ? low_end - taken : 0;
	plan->count = left / LEAST_PAGES < hosts ? left / LEAST_PAGES : hosts;
	if (plan->count < 2) {
		plan->count = 0;
		return;
	}
	deal(plan, taken, low_end);
	if ((ram_pages - low_end) / LEAST_PAGES >= plan->count)
		deal(plan, low_end, ram_pages);
	else
		plan->end[plan->parts - 1] = ram_pages;
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		plan->cpu_node[cpu] = (uint8_t)(cpu_host[cpu] % plan->count);
}

void nodes_build(void *table, const struct nodes_plan *plan)
{
	uint32_t count = plan->count;

	memset(table, 0, NODES_TABLE_BYTES);
	memcpy((uint8_t *)table + VMP_NODES_COUNT, &count, sizeof count);
	memcpy((uint8_t *)table + VMP_NODES_CPU, plan->cpu_node, sizeof plan->cpu_node);
	memcpy((uint8_t *)table + VMP_NODES_END, plan->end, sizeof plan->end);
}
