/* routing_private.h - the state of routing/: the table, contact points, neighbours, the failure
 * detector. */
#ifndef PHOENIX_ROUTING_PRIVATE_H
#define PHOENIX_ROUTING_PRIVATE_H

#include "phoenix/routing/contact.h"
#include "phoenix/routing/detect.h"
#include "phoenix/routing/routes.h"
#include "phoenix/routing/routing_upcalls.h"

enum { UNREACHABLE = 255 };
struct rentry {				/* what this node knows of another one, or of itself */
	ph_vp_t name;
	uint64_t seq;			/* even: the node's own; odd: somebody lost the way to it */
	unsigned nhops;			/* or UNREACHABLE */
	/* the next link towards it; NULL: unreachable, or this node itself */
	struct plink *fwd;
	struct plink *direct;		/* the link to it, if there is one */
	struct payload payload;		/* of this node itself: ph->me, which owns the set */
	/* neighbours, by slot, that have this entry or will get it: the thesis's trans and rcpt */
	uint64_t *has;
	unsigned has_words;
	uint64_t lost_us;		/* since when it is unreachable */
	uint64_t request_us;		/* when a SEQREQ for it was last passed on */
	uint64_t heartbeat, heard_us;	/* for the failure detector */
	uint64_t overlap_us;	/* since when it claims what this node assumes; 0: it does not */
	bool reported;	/* that overlap; of this node itself: that others take it for gone */
	bool dirty;			/* some neighbour may lack it */
	bool told;			/* some neighbour was told of it */
	bool disputed;	/* a neighbour has lost the way to it, and this node has not */
	bool learned;			/* its addresses are contact points */
};
struct claim {				/* a range that some node assumes */
	ph_vp_t lo, hi;
	ph_vp_t max_hi;			/* the largest hi of all claims up to this one */
	struct rentry *by;
};
enum routing {	/* the others are for bench/phoenix_routing.c, which compares them */
	ROUTING_OPTIMISED, ROUTING_NAIVE, ROUTING_SILENT
};
struct places {				/* place.c's: sets of neighbours, by slot */
	uint64_t silent[MAX_LINKS / 64];	/* those that have not named their neighbours */
	/* those of this node's place, as far as they have named their neighbours */
	uint64_t here[MAX_LINKS / 64];
	uint64_t away[MAX_LINKS / 64];	/* silent ones that seem to be of another place */
	unsigned n_unsure;		/* neighbours that are `unsure` */
	uint64_t told_us;	/* when a neighbour last named its neighbours for the first time */
};
struct routes {
	enum routing algorithm;
	struct rentry **slots;		/* hash table, linear probing, a power of two */
	unsigned n_slots, n;
	struct rentry **list;
	unsigned room;
	struct rentry *self;
	struct rentry **dirty_list;	/* entries that some neighbour may lack */
	unsigned n_dirty;
	uint64_t dirty_us;		/* since when there are any */
	/* since when a neighbour knows one as it was before; 0: none does */
	uint64_t urgent_us;
	struct places places;
	/* Sets of neighbours, by slot. */
	uint64_t up[MAX_LINKS / 64];	/* all */
	/* those that this node has yet to name all its neighbours to */
	uint64_t owed[MAX_LINKS / 64];
	unsigned up_words;		/* words of `up` that are in use */
	unsigned n_owed;
	/* the names in the last greetings: good for a guess at places, no more */
	ph_vp_t last[LAST_NAMES];
	uint64_t n_last;
	bool news;	/* something has changed since the neighbours were last told */
	bool far_news;			/* something of other places is among that */
	bool new_neighbours;	/* there are neighbours since then, which may lack any entry */
	bool claims_dirty;		/* claims[] has to be built anew */
	struct claim *claims;		/* by lo */
	unsigned n_claims, room_claims;
	uint64_t clock;			/* the largest stamp seen */
	/* the simulator's: news is held so much longer than it must be, at random */
	uint64_t tardy_us, tardy_until;
	uint64_t digest;		/* of all reachable entries */
	uint64_t neighbours;		/* digest of the neighbours' names */
	uint64_t sweep_us;		/* when the next entry has to be forgotten or reported */
	uint64_t dropped;		/* count: data frames that a full link did not take */
};
struct neighbour {			/* what tell.c and place.c know of a link's peer */
	bool greeted;			/* this node's proof said what this node is */
	bool greeted_all;		/* and named all its neighbours */
	/* this node's number then, and the digest of its neighbours */
	uint64_t greeting_seq, greeting_names;
	/* place.c's */
	bool told;			/* the peer has named its neighbours */
	uint64_t *named;		/* these, by slot */
	unsigned named_words;
	ph_vp_t some[SOME_NAMES];	/* of those that it had when the link was new */
	unsigned n_some;
	bool unsure;	/* hardly any of these are this node's: the peer may be of another place */
};

enum contact_state { CONTACT_IDLE, CONTACT_DIALING, CONTACT_LINKED, CONTACT_SELF };
struct contact {
	struct phnx_contact at;
	ph_vp_t name;			/* the node that announced it; 0: it is configured */
	ph_vp_t peer;			/* the node that it led to last */
	enum contact_state state;
	uint64_t due_us;		/* CONTACT_IDLE: when to dial it */
	uint64_t backoff_us;		/* how long to wait after the next failure */
	unsigned place;			/* in the heap */
	unsigned index;			/* among the configured ones */
	bool fresh;			/* configured, and never tried */
	uint64_t awaited_until;		/* until then its node may dial this one; 0: it will not */
	char *complaint;		/* the last report of why it was not reached, or NULL */
	void *transport;
};
struct contacts {
	struct contact **heap;		/* by due_us */
	unsigned n, room, n_learned, n_configured;
	unsigned dialing;
	/* of these, the ones that have not failed since they were last connected */
	unsigned hopeful;
	bool failed;			/* one of them has failed, ever */
	bool fresh;			/* some are: their order has to be settled */
	bool learn;			/* dial nodes known from routing messages */
	enum phnx_protocol learn_protocol;
	char host[64];			/* name of this host */
};

struct detector {
	uint64_t interval_us;		/* 0: no gossip */
	uint64_t timeout_us;		/* 0: no node is ever declared gone */
	bool by_size;			/* timeout_us is not used */
	uint64_t least_us;		/* by_size: at least */
	enum detect_protocol protocol;
	uint64_t next_us;		/* when to gossip */
	unsigned round;
	uint64_t beat;			/* this node's heartbeat */
};

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* ---- routes.c ---- */

struct rentry *route_find(struct phnx *ph, ph_vp_t name);
void route_gone(struct phnx *ph, struct rentry *e);	/* declares a node gone for good */

/* ---- payload.c ---- */

void payload_put(struct writer *w, const struct payload *p);
/* Reads a payload, which the caller frees with payload_free(). */
void payload_get(struct phnx *ph, struct reader *r, struct payload *p);
void payload_free(struct payload *p);

/* ---- contact.c ---- */

/* Makes contact points of the addresses of e's node. */
void contact_learn(struct phnx *ph, struct rentry *e);
/* a node can be reached again: its contact points are due */
void contact_alive(struct phnx *ph, ph_vp_t peer);

struct promise {	/* the neighbours that the sender of an update sent it to, by slot */
	struct plink *sender;
	unsigned words;
	uint64_t bits[MAX_LINKS / 64];	/* the sender's own bit too */
};

/* ---- place.c ---- */

/* Returns a word of the set of neighbours of this place: those whose lists of neighbours say so
 * and, of those without a list, all that do not seem to be elsewhere. */
static inline uint64_t place_here_word(const struct routes *t, unsigned i)
{
	return t->places.here[i] | (t->places.silent[i] & ~t->places.away[i]);
}

static inline bool place_is_here(const struct routes *t, unsigned slot)
{
	return place_here_word(t, slot / 64) >> slot % 64 & 1;
}

/* Returns whether l's peer has named the neighbour of that slot. */
static inline bool place_has_named(const struct plink *l, unsigned slot)
{
	return slot / 64 < l->neighbour->named_words &&
	       (l->neighbour->named[slot / 64] >> slot % 64 & 1);
}

/* Reads the names of some of the peer's neighbours: it will name all of them later. */
void place_get_some(struct plink *l, struct reader *r);
void place_named(struct plink *l);	/* the peer names all its neighbours */
/* Keeps these names.  Returns whether the peer is of another place. */
bool place_keep(struct plink *l, const struct promise *p);
/* Judges again: other nodes may have become neighbours since. */
void place_judge(struct phnx *ph);
/* Returns whether a neighbour of this place has yet to name its neighbours. */
bool place_waits(const struct routes *t);
bool place_any_away(const struct routes *t);	/* whether some neighbour is of another place */
void place_link_up(struct plink *l);
void place_link_down(struct plink *l);
void place_forget(struct plink *l);		/* l is about to be freed */

/* ---- tell.c: who has, or lacks, an entry ---- */

void tell_get_promise(struct phnx *ph, struct plink *sender, struct reader *r, struct promise *p);
void tell_promised(struct rentry *e, const struct promise *p);	/* all of p have e or will get it */
void tell_has_not(struct rentry *e, unsigned slot);
/* The neighbour of that slot lacks e, and is to be told. */
void tell_lacks(struct phnx *ph, struct rentry *e, unsigned slot);
void tell_nobody_has(struct phnx *ph, struct rentry *e);
void tell_link_up(struct phnx *ph, struct plink *l);
void tell_link_down(struct phnx *ph, struct plink *l);
void tell_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
