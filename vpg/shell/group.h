/* group.h - names of several computers: `all`, and h[1-40], h[01,03-07]x.  Pure. */
#ifndef VPG_GROUP_H
#define VPG_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include "vpg/wire/nick.h"

enum { GROUP_MAX = 1024 };

struct group { char (*nicks)[NICK_BYTES]; size_t n; };

/* Returns whether a name is `all` or has brackets. */
bool group_is_one(const char *name);
/* Returns whether a name is a group: its brackets are well-formed. */
bool group_is_valid(const char *name);
/* Adds the nicknames of a name with brackets.  Returns 0; -EINVAL if it is no group, or names more
 * than GROUP_MAX; or -ENOMEM.  The caller calls group_free() in any case. */
int group_expand(struct group *g, const char *name);
/* Adds one nickname.  Returns 0, -EINVAL or -ENOMEM. */
int group_add(struct group *g, const char *nick);
void group_free(struct group *g);

#endif
