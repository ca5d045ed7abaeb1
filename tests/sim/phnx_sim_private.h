/* phnx_sim_private.h - what phnx_sim.c and phnx_sim_links.c share; nobody else includes it. */
#ifndef PHNX_SIM_PRIVATE_H
#define PHNX_SIM_PRIVATE_H

#include "tests/sim/phnx_sim.h"

enum work { INPUT, POLL, KINDS };
enum event_kind { EV_DIAL, EV_BYTES, EV_EOF, EV_RESUME };
struct end {
	struct simnode *node;
	struct plink *l;		/* NULL: closed on this side */
	struct end *peer, *next_kicked;
	bool kicked, cut;
	uint64_t last_arrival;
	int refs;
};
struct event {
	struct event *next;
	uint64_t at;
	enum event_kind kind;
	struct end *end;		/* receiving side */
	unsigned char *bytes;
	size_t len;
	struct contact *contact;	/* EV_DIAL */
	int from, to;
	bool cancelled;
};

extern struct sim *the_sim;

/* phnx_sim.c */
void sim_push(struct event *e);
/* Charges the node's processor some time. */
void sim_charge(struct simnode *node, uint64_t ns);
uint64_t sim_clock_ns(void); /* processor time of this computer; 0 if it is not counted */
/* Charges the node the typical time (a running median) that the library takes here for this kind of
 * work on so many bytes.  So other work on this computer makes no node late. */
void sim_charge_work(struct simnode *node, enum work kind, size_t bytes, uint64_t ns);
/* Settles a node once for everything that has arrived, as a real node does. */
void sim_settle(struct sim *s, struct simnode *node);

/* phnx_sim_links.c */
extern const struct phnx_ops links_ops; /* a node's environment; ctx: struct simnode */
/* Sends what waits in its links. */
void links_drain(struct simnode *node);
/* Lets an event come true, and frees it. */
void links_happen(struct sim *s, struct event *ev);
void links_forget(struct event *ev);
void links_cut_all(struct sim *s, struct simnode *node);

#endif
