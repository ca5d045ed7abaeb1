/* presence.h - a name that a process has while it lives, for others on its computer to see: that of a machine's host there.
 *
 * It is an abstract socket's: nothing of it is left, however the process ends.
 */
#ifndef VMM_CLUSTER_PRESENCE_H
#define VMM_CLUSTER_PRESENCE_H

#include "vmm/cluster/file.h"

enum { PRESENCE_ID = 16, MAX_PRESENCE = PRESENCE_ID + MAX_HOST_NAME + 2 };

/* What the host of this name is called, of the machine with this random id. */
void presence_name(char name[MAX_PRESENCE], const char *id, const char *host);
/* A descriptor that holds it, or -1: somebody does already. */
int presence_hold(const char *name);
bool presence_is_held(const char *name);

#endif
