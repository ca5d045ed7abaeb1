/* borrow.h - the daemon borrows other computers for a machine of a shell's (P2P-MPI, section 3.2).
 *
 * It asks all peers what they have, chooses (choose.h), and asks each chosen one for an offer.  Are
 * all offers there, it keeps them all; is one refused, it returns all and begins anew, for some
 * seconds.  So of two that want the same computers one gets them all, and neither waits for the
 * other.  The loans end with the shell's connection.
 */
#ifndef VPG_BORROW_H
#define VPG_BORROW_H

#include "vpg/peer/tunnel.h"

struct shell;

/* ASK_BORROW and GIVE_BACK.  ASK_BORROW is answered by LOANs and a DONE. */
void borrow_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m);
void borrow_shell_gone(const struct shell *s);
/* LENT. */
void borrow_hear(struct tunnel *t, const struct vpg_LENT *m);
void borrow_tunnel_closed(const struct tunnel *t);
/* A PONG came. */
void borrow_peer_answered(struct daemon *d);

#endif
