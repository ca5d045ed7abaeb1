/* localsock.h - listening for this user's processes on a socket in the machine's folder (clients.c). */
#ifndef VMM_NODE_WIRE_LOCALSOCK_H
#define VMM_NODE_WIRE_LOCALSOCK_H

#include <sys/un.h>
#include "base/types.h"

int unix_address(struct sockaddr_un *address, const char *dir, const char *name); /* 0 or -ENAMETOOLONG */
/* A listening SOCK_SEQPACKET socket DIR/NAME, for the owner alone; dies if that cannot be. `path` gets its full name. */
int unix_listen(const char *dir, const char *name, char *path, size_t path_bytes);
/* Accept, but only a process of the same user: the descriptor, or -1. */
int unix_accept(int listen_fd);

#endif
