/* mapping.h - which virtual nodes this node assumes. */
#ifndef PHOENIX_MAPPING_H
#define PHOENIX_MAPPING_H

#include "phoenix/core/core.h"

/* All return 0 or an error, after which nothing has changed. */
int mapping_assume(struct phnx *ph, const struct ph_vps *vps);
/* Releases virtual nodes; messages that wait for them here travel on. */
int mapping_release(struct phnx *ph, const struct ph_vps *vps);
/* Assumes these virtual nodes and no others; frees vps.  NULL: returns PH_ENOMEM. */
int mapping_become(struct phnx *ph, ph_vps_t vps);

#endif
