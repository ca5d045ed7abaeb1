/* services_private.h - the state of services/: a migration, reductions under way. */
#ifndef PHOENIX_SERVICES_PRIVATE_H
#define PHOENIX_SERVICES_PRIVATE_H

#include "phoenix/flow/flow.h"
#include "phoenix/services/collective.h"
#include "phoenix/services/migrate.h"
#include "phoenix/services/services.h"

struct unsaid {				/* a message for which there was no memory */
	ph_vp_t to, lo, hi, count;
	int kind, wish, side;
	uint32_t attempt;
};
struct migration {
	bool locked;			/* for a migration, by `holder` */
	bool trying;			/* an attempt of this node's own is under way */
	ph_vp_t holder;			/* the node that holds this node's lock */
	ph_vp_t partner;		/* the other node of the transaction */
	ph_vp_t asked;	/* the node that has yet to answer lock2 or cleanup; 0: none */
	uint32_t attempt;		/* number of the last attempt */
	uint64_t tried_us;		/* when it began */
	bool moving;	/* this node has released [lo, hi) and waits for the taker's answer */
	ph_vp_t lo, hi;
	void *state;			/* the application's, of [lo, hi) */
	size_t state_len;
	struct ph_migration app;
	bool reported;			/* that there is too much state for whoever asks */
	/* the call of the application */
	enum wish wish;
	/* what the attempt under way is for, if its call has given up: what comes goes back */
	enum wish unwanted;
	ph_vp_t count;
	int side;
	int result;			/* > 0: still under way */
	uint64_t retry_us;		/* when to try again */
	struct unsaid unsaid[8];	/* in order; migrate_say.c */
	unsigned n_unsaid;
	uint64_t done, refused;		/* counts */
};

struct gather;	/* reduce.c: a question that other nodes wait to have answered */
struct collectives {
	struct reduction *list;
	struct gather *gathers;
	unsigned n_gathers;
	size_t value_bytes;		/* of values that wait to be combined */
	uint64_t counter;		/* of multicasts and questions */
	struct { ph_vp_t origin; uint64_t counter; } seen[SEEN_MULTICASTS];
	unsigned next_seen;
};

/* ---- migrate.c ---- */

void migrate_on_message(struct phnx *ph, const struct rmsg *m);
void migrate_peer_gone(struct phnx *ph, ph_vp_t peer);

/* ---- collective.c ---- */

typedef void (*tree_fn)(struct phnx *ph, ph_vp_t to, const struct ph_vps *set, void *arg);
/* Divides a set of virtual nodes, none of them this node's, into parts, and calls give() for
 * each: the holder of `to` is to pass it on. */
void collective_share(struct phnx *ph, const struct ph_vps *set, tree_fn give, void *arg);
void collective_put_set(struct writer *w, const struct ph_vps *set);
/* Reads a set.  False: malformed, or empty. */
bool collective_get_set(struct phnx *ph, struct reader *r, struct ph_vps *set);
void collective_on_message(struct phnx *ph, const struct rmsg *m);

/* ---- reduce.c ---- */

void reduce_on_message(struct phnx *ph, const struct rmsg *m);
void reduce_free(struct phnx *ph);

#endif
