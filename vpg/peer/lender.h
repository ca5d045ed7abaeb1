/* lender.h - the daemon lends this computer to machines of others (lending.h). */
#ifndef VPG_LENDER_H
#define VPG_LENDER_H

#include "vpg/peer/lending.h"
#include "vpg/peer/tunnel.h"

/* Serves RESERVE, KEEP and RETURN. */
void lender_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m);
void lender_tunnel_closed(const struct tunnel *t);
/* Fills the part of a PONG about loans; `t`: the peer that gets it. */
void lender_describe(const struct tunnel *t, struct vpg_PONG *pong);

/* Sets the owner's limits, from the file.  A limit that is not in the file is what the computer
 * has. */
void lender_limits(const struct daemon *d, struct limits *l);
int lender_set_limits(const struct daemon *d, const struct limits *l, struct why *why);

#endif
