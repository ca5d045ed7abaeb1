/* links.h - the daemons of several computers find each other.
 *
 * Each listens on a port of [LINKS_PORT, LINKS_PORT + LINKS_PORTS), or as its lines of the cluster file say, and lets nobody in
 * who does not prove the machine's secret.  Node 0 connects to each by TLS 1.3 under that secret; where that does not succeed
 * within LINKS_PATIENCE_MS, because only SSH gets through, by a tunnel of the system's ssh too, on the connection that vmp has
 * (far.h).  What Phoenix learns of the others' addresses makes the links between them; who cannot reach another directly does so
 * through the others.
 */
#ifndef VMM_NODE_WIRE_LINKS_H
#define VMM_NODE_WIRE_LINKS_H

#include "vmm/node/node.h"

enum { LINKS_PORT = 28100, LINKS_PORTS = 100, LINKS_PATIENCE_MS = 3000 };

/* After ph_init_in_loop(): 0, or -1 with the reason in `why`. Other nodes than 0 say their port on standard output. */
int links_start(struct node *node, char *why, size_t why_bytes);
/* "ADDRESS PORT DESTINATION" of a host (far.h). */
void links_dial(struct node *node, unsigned peer, const char *where, size_t bytes);

#endif
