/* borrow.h - the daemon borrows other computers for a machine that a shell starts (P2P-MPI, section
 * 3.2).
 *
 * It asks all peers what they have, chooses (choose.h), and asks each chosen one for an offer.  If
 * all offers come, it keeps them all.  If one is refused, it returns all and tries again, for some
 * seconds.  So if two borrowers want the same computers, one of them gets them all, and neither
 * waits for the other.  The loans end with the shell's connection.
 */
#ifndef VPG_BORROW_H
#define VPG_BORROW_H

#include "vpg/peer/tunnel.h"

struct shell;

/* Serves ASK_BORROW and GIVE_BACK.  ASK_BORROW is answered by LOANs and a DONE. */
void borrow_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m);
void borrow_shell_gone(const struct shell *s);
/* Serves LENT. */
void borrow_hear(struct tunnel *t, const struct vpg_LENT *m);
void borrow_tunnel_closed(const struct tunnel *t);
/* A PONG has come. */
void borrow_peer_answered(struct daemon *d);

#endif
