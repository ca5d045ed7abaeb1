/* phnx_sim.h - many Phoenix nodes in one process, under a seed: a virtual clock, links with delays, cuts, partitions. */
#ifndef PHNX_SIM_H
#define PHNX_SIM_H

#include "phoenix/core.h"

struct end;
struct event;
struct simnode {
	struct phnx *ph;
	int id, group;			/* nodes of different groups cannot connect */
	bool dead;
	uint64_t tick_at;		/* UINT64_MAX: dead */
	int place;			/* among the timers */
	uint64_t busy_until, busy_ns, all_busy_ns;	/* all_busy_ns: since the start */
	struct event *waiting, **waiting_end;	/* until it is not busy any more */
	unsigned unsettled;
	struct end **ends;
	unsigned n_ends, room_ends;
	struct end *kicked, **kicked_end;	/* of these the ones that have something to send, in their order */
	unsigned errors;
	int last_error;
	bool short_of_memory;		/* it has reported that, ever */
	void *app;
};
struct sim {
	uint64_t now, seed, rng;
	struct simnode *nodes, **timers;
	int n;
	uint64_t delay_min, delay_max;
	uint64_t tardy_us;		/* sim_tardy() */
	uint64_t events;
	/* What a node is busy with, one thing at a time: of a packet, 1024 of its bytes, an end of a new connection; 0: free. */
	uint64_t packet_cost_ns, kib_cost_ns, link_cost_ns;
	uint64_t turn_us;		/* nodes that share a processor run once in so long, one after the other; 0: whenever they want */
	bool cpu_costs;			/* and the processor time that the library typically takes here */
	bool (*may_connect)(const struct sim *s, int from, int to);	/* NULL: all of the same group */
};

void sim_init(struct sim *s, uint64_t seed, int n, ph_vp_t lower, ph_vp_t upper);
void sim_free(struct sim *s);
uint64_t sim_random(struct sim *s, uint64_t below);
bool sim_know(struct sim *s, int a, int b);		/* a's configuration names b; false: no memory */
void sim_run(struct sim *s, uint64_t until_us);
/* Runs until check() is true; false when limit_us have passed first. */
bool sim_until(struct sim *s, uint64_t limit_us, bool (*check)(struct sim *s));
/* News waits up to so long at each node, at random, now and when it starts again; and up to 4 ms what phnx_can_wait() for. */
void sim_tardy(struct sim *s, uint64_t us);
void sim_touch(struct sim *s, int node);		/* after calls into a node from outside: let it send */
void sim_cut(struct sim *s, int node, unsigned k);	/* breaks its k-th link; what was under way is lost */
int sim_peer(const struct sim *s, int node, unsigned k);	/* whom its k-th link leads to */
void sim_cut_groups(struct sim *s);			/* breaks every link between groups */
void sim_kill(struct sim *s, int node);			/* without a word */
void sim_restart(struct sim *s, int node);		/* a new process with the same address */

#endif
