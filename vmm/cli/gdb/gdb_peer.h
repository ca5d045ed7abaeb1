/* gdb_peer.h - who has connected to --gdb's port: the protocol knows no password, and every user of this computer can reach
 * a port of it.
 *
 * A TCP socket does not tell its peer's user as a UNIX socket does.  But the peer is on this computer, so the kernel's
 * table of connections has a row for its end too, with its user.
 */
#ifndef VMM_CLI_GDB_GDB_PEER_H
#define VMM_CLI_GDB_GDB_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

union gdb_peer { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; };

/* The user of the connection's other end, by a table like /proc/net/tcp; false if it has no such row.  Only an end that is
 * open counts: one that was closed has no user any more, and its row says 0. */
bool gdb_peer_find(FILE *table, const union gdb_peer *peer, const union gdb_peer *own, uid_t *user);

/* 0: this connected socket's other end belongs to our user, or to root.  -EPERM: to `*user`; -ESRCH: that is not known. */
int gdb_peer_check(int fd, uid_t *user);

#endif
