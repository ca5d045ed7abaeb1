/* presence.h - a name that a process has while it lives, for others on its computer to see: that of a machine's host there.
 *
 * It is an abstract socket's: nothing of it is left, however the process ends.
 */
#ifndef VMM_SHARED_PRESENCE_H
#define VMM_SHARED_PRESENCE_H

#include "base/limits.h"
#include "base/types.h"

enum { PRESENCE_ID = 16, MAX_PRESENCE = PRESENCE_ID + MAX_HOST_NAME + 2 };

/* What the host of this name is called, of the machine with this random id. */
void presence_name(char name[MAX_PRESENCE], const char *id, const char *host);
/* A descriptor that holds it, or -1: somebody does already. */
int presence_hold(const char *name);
bool presence_is_held(const char *name);

/* Who stands by on that computer (vmm/cli/standby/sender.h) can be told a word there: that the machine's owner lives, and has ended what runs
 * under this name.  A descriptor, which can be polled, or -1: somebody stands by already. */
int presence_listen(const char *name);
/* It was told, by this user's processes alone; forgets that. */
bool presence_heard(int fd);
void presence_tell(const char *name);

#endif
