/* phnx_sim.h - many Phoenix nodes in one process, under a seed: a virtual clock, links with
 * delays, cuts, partitions. */
#ifndef PHNX_SIM_H
#define PHNX_SIM_H

#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/link/link_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routing_private.h"
#include "phoenix/services/services_private.h"

struct end;
struct event;
struct simnode {
	struct phnx *ph;
	int id, group;			/* nodes of different groups cannot connect */
	bool dead;
	uint64_t tick_at;		/* when node_poll() is due; UINT64_MAX: the node is dead */
	int place;			/* in the heap of timers */
	uint64_t busy_until, busy_ns, all_busy_ns;	/* all_busy_ns: since the start */
	struct event *waiting, **waiting_end;	/* events that wait until it is not busy any more */
	unsigned unsettled;
	struct end **ends;
	unsigned n_ends, room_ends;
	/* ends that have something to send, in order */
	struct end *kicked, **kicked_end;
	unsigned errors;
	int last_error;
	bool short_of_memory;		/* it has ever reported a lack of memory */
	void *app;
};
struct sim {
	uint64_t now, seed, rng;
	struct simnode *nodes, **timers;
	int n;
	uint64_t delay_min, delay_max;
	uint64_t tardy_us;		/* sim_tardy() sets it */
	uint64_t events;
	/* The time that a node takes, one thing at a time: for a packet, for 1024 of its bytes,
	 * for one end of a new connection; 0: none. */
	uint64_t packet_cost_ns, kib_cost_ns, link_cost_ns;
	/* nodes that share a processor run once in so long, in turns; 0: whenever they want */
	uint64_t turn_us;
	bool cpu_costs;	/* the processor time that the library typically takes is counted too */
	/* NULL: nodes of the same group may */
	bool (*may_connect)(const struct sim *s, int from, int to);
};

void sim_init(struct sim *s, uint64_t seed, int n, ph_vp_t lower, ph_vp_t upper);
void sim_free(struct sim *s);
uint64_t sim_random(struct sim *s, uint64_t below);
/* a's configuration names b; returns false if there is no memory */
bool sim_know(struct sim *s, int a, int b);
void sim_run(struct sim *s, uint64_t until_us);
/* Runs until check() is true.  Returns false if limit_us have passed first. */
bool sim_until(struct sim *s, uint64_t limit_us, bool (*check)(struct sim *s));
/* Holds routing messages at random for up to us microseconds at each node, now and when it
 * starts again; and delays by up to 4 ms what node_can_wait() allows to wait. */
void sim_tardy(struct sim *s, uint64_t us);
/* lets a node send, after calls into it from outside */
void sim_touch(struct sim *s, int node);
/* breaks its k-th link; what was under way is lost */
void sim_cut(struct sim *s, int node, unsigned k);
/* returns the node at the other end of its k-th link */
int sim_peer(const struct sim *s, int node, unsigned k);
void sim_cut_groups(struct sim *s);			/* breaks every link between groups */
void sim_kill(struct sim *s, int node);			/* ends a node without a farewell */
void sim_restart(struct sim *s, int node);	/* starts a new process with the same address */

#endif
