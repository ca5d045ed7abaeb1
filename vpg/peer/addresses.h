/* addresses.h - the addresses of this computer, and which address of another one is reached
 * directly. */
#ifndef VPG_ADDRESSES_H
#define VPG_ADDRESSES_H

#include <stddef.h>

enum { ADDRESS = 48, ADDRESSES_TEXT = 8 * ADDRESS };

/* Writes the IPv4 addresses of this computer, except loopback, separated by blanks. */
void addresses_own(char text[ADDRESSES_TEXT]);
/* Picks from another computer's list the first one that lies in a network of this computer; "" if
 * there is none.  The list may be any text. */
void addresses_pick(const char *list, char picked[ADDRESS]);

#endif
