/* placement.h - on which host each CPU should run: decisions from measurements.  Pure; policy.c
 * measures and moves.
 *
 * spread and concentrate are those of P2P-MPI (Genaud and Rattanapoka 2009, 3.2), over hosts ranked
 * by their round-trip time from node 0: one CPU for each host in turn, or as many as a host has
 * processors before the next one.  Hosts whose times are within a factor of two rank by number, so
 * that small differences between measurements move nothing.
 *
 * auto moves one CPU at a time: to the host from which most of its pages come, if it waits for
 * pages during much of its time; if it is idle, to a host for whose CPUs tasks wait; or away from a
 * computer that has more to do than processors.  It moves a CPU only after that was so for a while,
 * and only to a host that has a free processor, so that no CPU becomes slower.  A CPU that has
 * moved stays for AUTO_REST_MS.
 */
#ifndef VMM_SHARED_PLACEMENT_H
#define VMM_SHARED_PLACEMENT_H

#include "base/limits.h"
#include "base/wire.h"

enum {
	/* A CPU moves to a host if it has waited for pages for AUTO_PULL_MS: at least
	 * AUTO_WAIT_PERCENT of its time, for at least AUTO_PAGES pages between two samples, of
	 * which AUTO_SHARE_PERCENT came from that host. */
	AUTO_PULL_MS = 40,
	AUTO_WAIT_PERCENT = 15,
	AUTO_PAGES = 10,
	AUTO_SHARE_PERCENT = 60,
	/* An idle CPU moves to where tasks wait if both have been so for AUTO_CROWD_MS. */
	AUTO_CROWD_MS = 60,
	AUTO_IDLE_PERCENT = 60,
	/* A CPU leaves a computer that has been loaded for AUTO_LOAD_MS: runnable processes for
	 * each processor, and how much less another host must have. */
	AUTO_LOAD_MS = 3000,
	AUTO_LOADED_PERCENT = 150,
	AUTO_LESS_PERCENT = 75,
	AUTO_REST_MS = 3000,
};

struct placement_look {
	uint32_t hosts; /* bit set */
	unsigned n_cpus;
	uint32_t window_ms; /* since the previous sample */
	struct { uint32_t rtt_us, processors, load_percent; } host[MAX_NODES];
	/* Pages from each host since the previous sample, the share of its time in which the CPU
	 * waited for them, and in which it was halted, and whether tasks wait for it. */
	struct {
		uint32_t host, waited_percent, idle_percent, fetched[MAX_NODES];
		bool crowded;
	} cpu[MAX_CPUS];
};

struct placement_move { unsigned cpu, from, to; char why[160]; };

/* The state of auto; all zero at the start. */
struct placement_auto { struct { uint32_t towards, so_long_ms, rest_ms; } cpu[MAX_CPUS]; };

const char *placement_policy_name(enum policy policy);
/* Returns -EINVAL if there is no policy of this name. */
int placement_policy_of_name(const char *name);

/* Finds the next move towards spread or concentrate.  Returns false if none is needed. */
bool placement_step(enum policy policy, const struct placement_look *look,
		    struct placement_move *move);
/* Takes a sample.  Returns true with a move, or false. */
bool placement_auto(struct placement_auto *state, const struct placement_look *look,
		    struct placement_move *move);

#endif
