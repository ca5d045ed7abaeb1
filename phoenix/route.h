/* route.h - what route.c, tell.c, holder.c and payload.c have in common; nobody else includes it. */
#ifndef PHOENIX_ROUTE_H
#define PHOENIX_ROUTE_H

#include "phoenix/core.h"

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* payload.c */
void put_payload(struct writer *w, const struct payload *p);
void get_payload(struct phnx *ph, struct reader *r, struct payload *p);	/* p's vps are the caller's to free */
void payload_free(struct payload *p);

/* tell.c: the set `has` of an entry, and what is to be told */
struct promise {			/* the neighbours that the sender of an update promised it to */
	struct plink *sender;
	unsigned words;
	uint64_t bits[MAX_LINKS / 64];	/* by slot; the sender's own bit too */
};
void get_promise(struct phnx *ph, struct plink *sender, struct reader *r, struct promise *p);
void has_promised(struct rentry *e, const struct promise *p);
void has_not(struct rentry *e, unsigned slot);
void has_clear(struct phnx *ph, struct rentry *e, unsigned slot);
void has_nobody(struct phnx *ph, struct rentry *e);
void tell_link_up(struct phnx *ph, struct plink *l);
void tell_link_down(struct phnx *ph, struct plink *l);
void tell_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
