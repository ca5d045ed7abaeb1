/* routes.h - the routing table, for the layers above: where messages go, and what this node
 * announces. */
#ifndef PHOENIX_ROUTES_H
#define PHOENIX_ROUTES_H

#include "phoenix/link/link_upcalls.h"

/* ---- where messages go ---- */

/* Returns the node that assumes vp as far as this node knows, this node itself, or 0: nobody. */
ph_vp_t holder_of(struct phnx *ph, ph_vp_t vp);
struct plink *route_way(struct phnx *ph, ph_vp_t to);	/* the link towards a node, or NULL */
/* Begins a frame with a routing header (destination, source, hops) for link_commit().  NULL: it
 * cannot be sent over l. */
struct outframe *route_begin(struct plink *l, ph_vp_t to, enum frame_type type, struct writer *w);
/* Sends a frame towards a node.  False: there is no way. */
bool route_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, const struct writer *head,
		 struct pbuf *body);
/* Something of this node has arrived.  False: it is gone for good, and nothing of it is
 * accepted. */
bool route_heard(struct phnx *ph, ph_vp_t name);
bool route_is_gone(struct phnx *ph, ph_vp_t name);
/* Whether a neighbour will still be there for a while: it neither leaves nor is it gone. */
bool route_stays(struct phnx *ph, ph_vp_t neighbour);

struct route_view {			/* an entry of the table, as others see it */
	/* the link towards the node; NULL: this node itself, or unreachable */
	struct plink *way;
	bool direct;			/* that link ends there */
	const struct ph_vps *vps;	/* what it assumes; valid until the table changes */
};
unsigned route_count(const struct phnx *ph);
struct route_view route_entry(const struct phnx *ph, unsigned k);	/* k < route_count() */

/* ---- what this node announces ---- */

void route_self_changed(struct phnx *ph);		/* ph->me has changed */
uint64_t route_clock(const struct phnx *ph);	/* the largest stamp of a claim that was seen */
uint64_t route_next_stamp(struct phnx *ph);	/* a larger one, for a claim of this node's */
void route_saw_stamp(struct phnx *ph, uint64_t seen);
/* This node is gone for good: tells all neighbours at once. */
void route_say_goodbye(struct phnx *ph);
void tell_now(struct phnx *ph);	/* tells the neighbours everything that they may lack */

/* ---- for node/ ---- */

int route_init(struct phnx *ph);			/* -1: out of memory */
void route_free(struct phnx *ph);
void route_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
