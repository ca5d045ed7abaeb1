/* migrate_say.h - what two nodes say to each other when virtual nodes move between them.  When they
 * say it, and what they then do: migrate.c. */
#ifndef PHOENIX_MIGRATE_SAY_H
#define PHOENIX_MIGRATE_SAY_H

#include "phoenix/services/services_private.h"

enum kind {
	QUERY,
	LOCK_YOU_FIRST,
	LOCK2,
	FAIL1,
	FAIL2,
	OK1,
	OK2,
	CLEANUP,
	CLEANUP_ACK,
	ASK,
	TRANSFER,
	DONE,
	ABORT,
	N_KINDS
};
struct note {				/* a message of the protocol */
	enum kind kind;
	ph_vp_t from;
	uint32_t attempt;
	ph_vp_t lo, hi;			/* an interval: the sender's, or the one that moves */
	uint64_t clock;			/* the sender's clock of claims */
	int wish, side;			/* ASK: what its sender wants */
	ph_vp_t count;
	const void *state;
	size_t state_len;
};

/* Sends a message about [lo, hi), with what this node's call wants; a TRANSFER with the state that
 * moves.  What there is no memory for is sent later, in order. */
void migrate_say(struct phnx *ph, ph_vp_t to, enum kind kind, uint32_t attempt, ph_vp_t lo,
		 ph_vp_t hi);
void migrate_say_rest(struct phnx *ph);		/* sends what there was no memory for */
/* Reads a message; n->state lies in it.  False: it is malformed. */
bool migrate_read(const struct rmsg *msg, struct note *n);

#endif
