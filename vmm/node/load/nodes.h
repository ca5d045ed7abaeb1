/* nodes.h - the machine's hosts as the guest's NUMA nodes: which CPUs and which part of RAM belong
 * to each.  Pure. */
#ifndef VMM_NODE_LOAD_NODES_H
#define VMM_NODE_LOAD_NODES_H

#include "base/limits.h"
#include "base/types.h"

struct nodes_plan {
	unsigned count;		    /* node n is host n; 0: the guest gets no nodes */
	/* Part p of RAM, from the end of part p-1 up to here, is node p % count's.  Each node has
	 * one part, or two in a machine with high memory: its low memory and its high memory. */
	unsigned parts;
	gfn_t end[2 * MAX_NODES];
	uint8_t cpu_node[MAX_CPUS]; /* by where each CPU begins */
};

/* `taken`: pages at the start of RAM that always belong to the first host.  The rest of the low
 * memory, below ram_low_limit(), is dealt in equal parts, and so is the high memory: the guest
 * kernel keeps its own lists, tables and stacks in low memory.  If a part of low memory would be
 * too small to be useful, there are fewer nodes than hosts, and the CPUs of the other hosts are
 * dealt to the nodes in turn.  If a part of high memory would be too small, all high memory is the
 * last node's. */
void nodes_plan(struct nodes_plan *plan, uint32_t ram_pages, gfn_t taken, unsigned hosts,
		unsigned cpus, const uint8_t *cpu_host);

/* Writes the table at VMP_NODES_GPA, NODES_TABLE_BYTES long. */
enum { NODES_TABLE_BYTES = MAX_CPUS + 4 * (2 * MAX_NODES + 2) };
void nodes_build(void *table, const struct nodes_plan *plan);

#endif
