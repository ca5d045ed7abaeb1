/* links.h - how the daemons on several computers connect.
 *
 * Each daemon listens on a port of [LINKS_PORT, LINKS_PORT + LINKS_PORTS), or as its lines of the
 * cluster file say, and refuses peers that cannot prove the machine's secret.  Node 0 connects to
 * each by TLS 1.3 under that secret.  If that does not succeed within LINKS_PATIENCE_MS, because
 * only SSH gets through, it also tries a tunnel of the system's ssh, on the connection that vmp has
 * (far.h).  Phoenix learns the others' addresses and makes the links between them; nodes that
 * cannot reach each other directly use the others as relays.
 */
#ifndef VMM_NODE_WIRE_LINKS_H
#define VMM_NODE_WIRE_LINKS_H

#include "vmm/node/node.h"

enum { LINKS_PORT = 28100, LINKS_PORTS = 100, LINKS_PATIENCE_MS = 3000 };

/* Call it after ph_init_in_loop().  All nodes but 0 print their port on standard output.  Returns
 * 0, or -1 with the reason in `why`. */
int links_start(struct node *node, char *why, size_t why_bytes);
/* Connects to a host's "ADDRESS PORT DESTINATION" (far.h). */
void links_dial(struct node *node, unsigned peer, const char *where, size_t bytes);

#endif
