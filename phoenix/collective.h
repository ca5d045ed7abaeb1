/* collective.h - what collective.c and reduce.c have in common; nobody else includes it. */
#ifndef PHOENIX_COLLECTIVE_H
#define PHOENIX_COLLECTIVE_H

#include "phoenix/flow.h"

typedef void (*tree_fn)(struct phnx *ph, ph_vp_t to, const struct ph_vps *set, void *arg);
/* Divides a set of virtual nodes, none of them this node's, into parts, each to be passed on by the holder of `to`. */
void tree_share(struct phnx *ph, const struct ph_vps *set, tree_fn give, void *arg);
void put_set(struct writer *w, const struct ph_vps *set);
bool get_set(struct phnx *ph, struct reader *r, struct ph_vps *set);	/* false: bad, or empty */

/* reduce.c */
void reduce_on_message(struct phnx *ph, ph_vp_t from, int tag, struct reader *r);
void reduce_free(struct phnx *ph);

#endif
