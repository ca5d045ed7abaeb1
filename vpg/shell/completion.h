/* completion.h - what Tab adds behind an @: the rest of a nickname.  Pure. */
#ifndef VPG_COMPLETION_H
#define VPG_COMPLETION_H

#include "vpg/shell/group.h"

/* Returns the beginning of the nickname that ends at `text + n`; NULL if there is no @ before
 * it. */
const char *completion_start(const char *text, size_t n);
/* How many nicknames of `g` begin with the `n` bytes at `begin`; *first is one of them, and *common
 * the number of bytes in which they all agree. */
size_t completion_match(const struct group *g, const char *begin, size_t n, const char **first,
			size_t *common);

#endif
