/* borrowing.h - `vmp-peer borrow` and `vmp-peer give-back`, which `vmp` starts for a machine over
 * peers.
 *
 *   vmp-peer borrow OTHERS PROCESSORS MIB MIN_MIB HOW [NICK]
 *
 * It borrows computers (borrow.h).  For each it prints a line of a cluster file (vmp-cluster(5)),
 * the computer itself first, then "done"; or "no" and the reason.  The loans last as long as the
 * connection to the daemon.  If standard output is a socket, the connection is sent with "done" to
 * the process that reads it; otherwise this process keeps it until its standard input ends.
 *
 *   vmp-peer give-back NICK     over such a connection, which is descriptor 3
 */
#ifndef VPG_BORROWING_H
#define VPG_BORROWING_H

#include "vpg/wire/message.h"

/* Both return the exit status. */
int borrow_for_machine(const struct vpg_ASK_BORROW *wanted);
int borrow_give_back(const char *nick);

#endif
