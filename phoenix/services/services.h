/* services.h - migration, multicast and reduction, as one layer: for node/. */
#ifndef PHOENIX_SERVICES_H
#define PHOENIX_SERVICES_H

#include "phoenix/core/core.h"

int services_init(struct phnx *ph);			/* -1: out of memory */
void services_free(struct phnx *ph);
void services_peer_gone(struct phnx *ph, ph_vp_t peer);
/* Returns whether a message may lead to a call of the application's functions. */
bool services_call_back(const struct phnx *ph);
void migrate_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void reduce_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
