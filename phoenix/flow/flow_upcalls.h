/* flow_upcalls.h - what flow/ calls in the layer above, which defines it. */
#ifndef PHOENIX_FLOW_UPCALLS_H
#define PHOENIX_FLOW_UPCALLS_H

#include "phoenix/core/core.h"

/* In services/services.c: a message with DATA_INTERNAL has arrived, other than TAG_DOUBT and
 * TAG_CERTAINTY.  m is valid during the call. */
void services_on_message(struct phnx *ph, const struct rmsg *m);

#endif
