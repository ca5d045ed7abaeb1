/* loopback_peer.h - whose process has connected to a port of this computer: for --gdb, whose
 * protocol has no password, and for `vmp web` and `vmp metrics`.  Every user of this computer can
 * connect to its ports.
 *
 * A TCP socket does not say its peer's user, as a UNIX socket does.  But the peer is on this
 * computer, so the kernel's table of connections has a row for the peer's end too, with its user.
 * The kernel is asked for this row alone, by sock_diag(7): whoever opens many connections makes the
 * table long, and reading it slow.  It is read on a kernel that does not have sock_diag for TCP.
 */
#ifndef VMM_CLI_LOOPBACK_PEER_H
#define VMM_CLI_LOOPBACK_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

union loopback_peer { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; };

/* Finds the user of the connection's other end in a table like /proc/net/tcp.  Returns false if
 * there is no such row.  Only an open end counts: the row of a closed one says user 0. */
bool loopback_peer_find(FILE *table, const union loopback_peer *peer,
			const union loopback_peer *own, uid_t *user);

/* Returns 0 if this connected socket's other end belongs to our user or to root; -EPERM if it
 * belongs to `*user`; -ESRCH if its user is not known. */
int loopback_peer_check(int fd, uid_t *user);

#endif
