/* localsock.h - a socket in the machine's folder that only this user's processes can connect to
 * (control.c). */
#ifndef VMM_NODE_WIRE_LOCALSOCK_H
#define VMM_NODE_WIRE_LOCALSOCK_H

#include <sys/un.h>
#include "base/types.h"

/* Returns a listening SOCK_SEQPACKET socket DIR/NAME for the owner alone, or dies.  `path` gets its
 * full name. */
int localsock_listen(const char *dir, const char *name, char *path, size_t path_bytes);
/* Accepts a connection of a process of the same user.  Returns its descriptor, or -1. */
int localsock_accept(int listen_fd);

#endif
