/* tunnels.h - starts ssh by vmp-tunnel, a process of this daemon's that is not confined
 * (vmm/shared/sshtunnel.h). */
#ifndef VMM_NODE_WIRE_TUNNELS_H
#define VMM_NODE_WIRE_TUNNELS_H

#include "vmm/node/node.h"

/* Starts vmp-tunnel.  Returns 0, or -1 with the reason in `why`. */
int tunnels_start(struct node *node, char *why, size_t why_bytes);
/* Starts ssh: ph_ssh_fn of phnx.h. */
int tunnels_ssh(void *arg, const char *login, int port, int carry, int say);

#endif
