/* addresses.h - by which of its addresses another computer may be reached directly. */
#ifndef VPG_ADDRESSES_H
#define VPG_ADDRESSES_H

#include <stddef.h>

enum { ADDRESS = 48, ADDRESSES_TEXT = 8 * ADDRESS };

/* Writes the IPv4 addresses of this computer, but for loopback, with blanks between. */
void addresses_own(char text[ADDRESSES_TEXT]);
/* Picks from another computer's list the first one that lies in a network of this computer; "" if
 * there is none.  The list may be any text. */
void addresses_pick(const char *list, char picked[ADDRESS]);

#endif
