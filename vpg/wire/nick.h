/* nick.h - nicknames: names of computers that stay what they are when addresses change.  Pure. */
#ifndef VPG_NICK_H
#define VPG_NICK_H

#include <stdbool.h>
#include <stddef.h>

enum { NICK_BYTES = 33 };	/* with its terminator */

/* A letter or digit, then letters, digits, '-', '_' and '.': at most 32 of them; not `all`, which
 * names all computers (vpg/shell/group.h). */
bool nick_is_valid(const char *nick);

/* Makes a nickname of a host name, cut at its first dot; "here" if nothing of it fits. */
void nick_of_host(const char *host, char nick[NICK_BYTES]);

#endif
