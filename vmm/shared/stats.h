/* stats.h - the payload of STATS messages: the counters of one node and of its CPUs.
 *
 * A node answers STATS_REQUEST with one or more STATS messages.  Each payload is one struct
 * node_stats, followed by `cpus_in_part` struct cpu_stats; parts 0 to parts-1 together name every
 * CPU on the node once.  The node's own counters are the same in every part.  Times are ns of
 * CLOCK_MONOTONIC (the nodes of this version share one host).  The per-CPU arrays are copies of
 * those in struct vcpu_slot, so that --stats means what base/hostshm.h says.
 */
#ifndef VMM_SHARED_STATS_H
#define VMM_SHARED_STATS_H

#include "base/hostshm.h"
#include "base/limits.h"
#include "base/types.h"

/* A node's counters, from one list: X(field, text) */
#define NODE_COUNTERS(X) \
	X(page_requests, "pages asked for by this node's CPUs") \
	X(page_fetches, "of these, answered with a page's contents from another node") \
	X(page_upgrades, "of these, rights raised without data") \
	X(page_zero_fills, "of these, pages never touched before") \
	X(page_aheads, "pages asked for in a run before a CPU asked for them; " \
	  "not among the requests, but the fetches") \
	X(page_boths, "of these, requested to write for a CPU that only read, since it " \
	  "writes next") \
	X(page_invalidations, "pages given up to other nodes") \
	X(page_drops, "copies that this node let go of, to keep to its share") \
	X(page_spills, "owned pages that this node gave to others, to keep to its share") \
	X(page_spills_refused, "times that another node had no room for such a page") \
	X(page_put_off, "requests of CPUs that waited until such pages had left") \
	X(page_excused, "pages asked for though this node was full") \
	X(pages_most, "the most pages that this node has held") \
	X(page_holds, "requests of other nodes that were held for a while") \
	X(hold_ends, "times that a locked instruction or a barrier ended all holds") \
	X(barrier_tells, "counts of barriers told to the other nodes") \
	X(ram_bytes, "bytes of guest RAM that this node holds at the moment") \
	X(share_bytes, "bytes of guest RAM that this node may hold") \
	X(messages_sent, "messages sent to other nodes") \
	X(messages_received, "messages received from other nodes") \
	X(bytes_sent, "bytes sent to other nodes") \
	X(bytes_received, "bytes received from other nodes")

/* How long the end of a machine waits for the counters of all hosts, if somebody asked for them. */
enum { STATS_LIMIT_MS = 20000 };

struct node_stats {
	uint32_t node, part, parts, cpus_in_part;
	/* when the guest's init first used a stream register; 0: not yet, or on another node */
	uint64_t user_monotonic_ns;
#define X(field, text) uint64_t field;
	NODE_COUNTERS(X)
#undef X
};

struct cpu_stats {
	uint32_t cpu, node;
	uint64_t traps[TRAP_KIND_COUNT];
	uint64_t time_ns[TIME_KIND_COUNT];
	uint64_t fetch_us8[FETCH_BUCKETS];
};

enum {
	CPU_STATS_PER_PART = (MAX_MSG_PAYLOAD - sizeof(struct node_stats)) /
			     sizeof(struct cpu_stats)
};
_Static_assert(CPU_STATS_PER_PART >= 16, "two parts hold every CPU");

#endif
