/* invitation.h - a text by which one computer may join, once; `vmp peer invite` prints it.  Pure.
 *
 * It contains the inviter's addresses and key, and a token that the inviter remembers.  A computer
 * that has the text can join until it was used or has expired.
 */
#ifndef VPG_INVITATION_H
#define VPG_INVITATION_H

#include <stdint.h>
#include "vpg/peer/members.h"

enum {
	TOKEN_BYTES = 16,
	INVITATION_ADDRESSES = 4,
	INVITATION_HOST = 64,	/* of an address, with its terminator */
	INVITATION_TEXT = 640,	/* of an invitation, with its terminator */
};

struct invitation {
	unsigned char key[KEY_BYTES];	/* the inviter's */
	unsigned char token[TOKEN_BYTES];
	uint64_t expires;		/* seconds since 1970 */
	unsigned port;			/* where the inviter accepts computers that join */
	unsigned n_hosts;
	char hosts[INVITATION_ADDRESSES][INVITATION_HOST];
};

/* Returns 0 or -ENOSPC. */
int invitation_print(const struct invitation *i, char text[INVITATION_TEXT]);
/* Returns 0, or -EPROTO if the text is no invitation, or was damaged. */
int invitation_read(struct invitation *i, const char *text);

#endif
