/* nick.h - nicknames: names of computers that stay the same when addresses change.  Pure. */
#ifndef VPG_NICK_H
#define VPG_NICK_H

#include <stdbool.h>
#include <stddef.h>

enum { NICK_BYTES = 33 };	/* with its terminator */

/* Returns whether this is a nickname: a letter or digit, then letters, digits, '-', '_' and '.', at
 * most 32 characters in all; and not `all`, which names all computers (vpg/shell/group.h). */
bool nick_is_valid(const char *nick);

/* Makes a nickname from a host name, cut at its first dot; "here" if no character of it fits. */
void nick_of_host(const char *host, char nick[NICK_BYTES]);

#endif
