/* placement.h - on which host each CPU should run: decisions on what was measured. Pure; policy.c measures and moves.
 *
 * spread and concentrate are those of P2P-MPI (Genaud and Rattanapoka 2009, 3.2) over hosts ranked by their round-trip time from
 * node 0: one CPU for each host in turn, or as many as a host has processors before the next one.  Hosts whose times are
 * within a factor of two rank by number: what was measured a little differently must not move anything.
 *
 * auto moves one CPU at a time, towards the host from which it fetches most of its pages, or away from a computer that has more
 * to do than processors; in either case only when that was so in AUTO_LOOKS looks in a row, and a CPU that has moved stays
 * for AUTO_REST looks.
 */
#ifndef VMM_SHARED_PLACEMENT_H
#define VMM_SHARED_PLACEMENT_H

#include "base/limits.h"
#include "base/wire.h"

enum {
	AUTO_LOOKS = 3,
	AUTO_REST = 10,
	AUTO_PAGES = 100,	  /* fetched between two looks: fewer are not worth a move */
	AUTO_SHARE_PERCENT = 60,  /* of them from one host */
	AUTO_LOADED_PERCENT = 150, /* runnable processes for each processor */
	AUTO_LESS_PERCENT = 75,	  /* what another host must have less */
};

struct placement_look {
	uint32_t hosts; /* bit set */
	unsigned n_cpus;
	struct { uint32_t rtt_us, processors, load_percent; } host[MAX_NODES];
	struct { uint32_t host, fetched[MAX_NODES] /* pages from there since the look before */; } cpu[MAX_CPUS];
};

struct placement_move { unsigned cpu, from, to; char why[160]; };

/* All zero: nothing seen yet. */
struct placement_auto { struct { uint32_t towards, looks, rest; } cpu[MAX_CPUS]; };

const char *policy_name(enum policy policy);
/* -EINVAL: there is none of this name. */
int policy_of_name(const char *name);

/* The next move towards spread or concentrate; false: it is so. */
bool placement_step(enum policy policy, const struct placement_look *look, struct placement_move *move);
/* One look of auto: a move, or false. */
bool placement_auto(struct placement_auto *state, const struct placement_look *look, struct placement_move *move);

#endif
