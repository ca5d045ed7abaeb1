/* routing_upcalls.h - what routing/ calls in the layers above, which define it. */
#ifndef PHOENIX_ROUTING_UPCALLS_H
#define PHOENIX_ROUTING_UPCALLS_H

#include "phoenix/core/core.h"

/* In node/life.c: a node is gone for good.  Its name is refused from now on. */
void node_peer_gone(struct phnx *ph, ph_vp_t name);

#endif
