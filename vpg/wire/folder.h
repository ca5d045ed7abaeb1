/* folder.h - the folder of a peer: $VMP_PEER_DIR, or ~/.config/vmp/peer.
 *
 *	key		the peer's private key (PEM)
 *	settings	its nickname, session and port
 *	secret		the session's secret, with which connections of the overlay network begin
 *	members		who belongs to the network
 *	contacts	addresses that the daemon dials: HOST PORT [ssh [USER]]
 *	invitations	tokens that were given out, by their SHA-256
 *	limits		what the owner lends to machines of others (vpg/peer/lending.h)
 *	rules		which commands others may run here (vpg/peer/rules.h)
 *	socket		where the daemon listens for shells
 *	log, audit	what the daemon says; which commands it was asked to run
 *
 * The folder and all in it are this user's alone.  Computers that share one home folder need a
 * folder each.
 */
#ifndef VPG_FOLDER_H
#define VPG_FOLDER_H

#include <stddef.h>
#include "vpg/wire/why.h"

enum { FOLDER_PATH = 96 };	/* so that the socket's path fits into its 108 bytes */

/* Writes the path.  Returns 0, or -1 if it is too long, or if the home folder is not known. */
int folder_path(char path[FOLDER_PATH], struct why *why);
/* Does the same, and makes the folder, or checks that it is this user's alone. */
int folder_make(char path[FOLDER_PATH], struct why *why);

/* Reads a file of the folder: at most `room` - 1 bytes, and a terminating 0.  Returns their number,
 * or -errno; -EACCES if others can read the file. */
long folder_read(const char *folder, const char *name, char *text, size_t room);
/* Replaces a file of the folder by `n` bytes, whole or not at all.  Returns 0 or -errno. */
int folder_write(const char *folder, const char *name, const char *text, size_t n);

#endif
