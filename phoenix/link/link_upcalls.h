/* link_upcalls.h - what link/ calls in the layers above, which define it. */
#ifndef PHOENIX_LINK_UPCALLS_H
#define PHOENIX_LINK_UPCALLS_H

#include "phoenix/core/bytes.h"
#include "phoenix/link/link.h"

/* ---- routing/: routes.c, tell.c ---- */

/* Bytes that link_open() reserves behind a link for its struct neighbour, all zero. */
extern const size_t route_neighbour_bytes;
/* FRAME_ROUTE; -1: malformed */
int route_on_update(struct phnx *ph, struct plink *l, struct reader *r);
int route_on_seqreq(struct phnx *ph, struct plink *l, struct reader *r);	/* FRAME_SEQREQ */
/* Returns the digest of the routing table: equal tables have equal digests. */
uint64_t route_digest(const struct phnx *ph);
/* Returns the link to a neighbour, or NULL. */
struct plink *route_link_to(struct phnx *ph, ph_vp_t peer);
void route_link_up(struct phnx *ph, struct plink *l);
void route_link_down(struct phnx *ph, struct plink *l);	/* of a link that was up */
void route_resend_all(struct phnx *ph, struct plink *l);	/* the peer may lack any entry */
/* a node of this name, as it says, is connecting */
void tell_heard_greeting(struct phnx *ph, ph_vp_t name);
/* Writes what this node announces with its proof. */
void tell_greet(struct plink *l, struct writer *w);
/* Returns when no connection will have been made for a while. */
uint64_t tell_rests_at(const struct phnx *ph, uint64_t now);
void tell_forget_link(struct plink *l);			/* l is freed right after this */

/* ---- routing/contact.c ---- */

enum { WHERE_ROOM = 160 };
/* Writes where a peer is: c as the user named it or, if c is NULL, its address `from` as far as
 * that is known. */
void contact_where(const struct contact *c, const char *from, char where[WHERE_ROOM]);
bool contact_uses_ssh(const struct contact *c);
bool contact_is_dialing(const struct contact *c);
void contact_dial_failed(struct phnx *ph, struct contact *c);
void contact_linked(struct phnx *ph, struct contact *c, ph_vp_t peer);
/* Another link leads to the peer: the contact point is tried again soon. */
void contact_doubled(struct phnx *ph, struct contact *c, ph_vp_t peer);
void contact_is_self(struct phnx *ph, struct contact *c);	/* it leads to this node itself */
/* No link leads to the peer any more; the last one was open for so long. */
void contact_link_down(struct phnx *ph, ph_vp_t peer, uint64_t lasted_us);

/* ---- flow/flow.c ---- */

/* A frame that is passed on or ends here, its body at `frame`; -1: malformed. */
int flow_on_frame(struct phnx *ph, enum frame_type type, const unsigned char *frame, size_t len);

#endif
