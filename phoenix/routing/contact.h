/* contact.h - contact points: end points to keep connected to, from the configuration and from
 * other nodes. */
#ifndef PHOENIX_CONTACT_H
#define PHOENIX_CONTACT_H

#include "phoenix/link/link_upcalls.h"

/* ---- for calls/ ---- */

/* Adds a contact point and dials it soon.  name: the node that announced it, or 0: it is
 * configured.  NULL: out of memory. */
struct contact *contact_add(struct phnx *ph, const struct phnx_contact *at, ph_vp_t name);
unsigned contact_count(const struct phnx *ph);
/* Sets the name of this host, as configurations may have it. */
void contact_set_host(struct phnx *ph, const char *host);
/* Sets whether nodes known from routing messages are dialed. */
void contact_set_learning(struct phnx *ph, bool learn);
/* Sets the protocol for these. */
void contact_set_protocol(struct phnx *ph, enum phnx_protocol protocol);

/* ---- for the transport ---- */

const struct phnx_contact *contact_at(const struct contact *c);
void *contact_transport(const struct contact *c);	/* what dials it now; NULL: nothing */
void contact_set_transport(struct contact *c, void *transport);
bool contact_is_first_try(const struct contact *c);	/* since it was last connected, or ever */
/* Any contact point with files of a certificate and a key, or NULL. */
const struct phnx_contact *contact_with_files(const struct phnx *ph);
/* Whether a neighbour has connected to this node from that host (numeric) already; then c counts
 * as linked. */
bool contact_is_neighbour(struct phnx *ph, struct contact *c, const char *host);
/* Reports why c is not reached, unless the same text was reported last. */
void contact_complain(struct phnx *ph, struct contact *c, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- for node/ ---- */

int contact_init(struct phnx *ph);			/* -1: out of memory */
void contact_free_all(struct phnx *ph);
void contact_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
