/* turn.h - node 0: the snapshots that wait, in the order of the requests.  agenda.h says when one
 * begins. */
#ifndef VMM_NODE_CUT_TURN_H
#define VMM_NODE_CUT_TURN_H

#include "vmm/node/node.h"

void turn_start(struct node *node);
/* Asks for a snapshot for client `client`.  `seq` is its request number, with its slot.  The
 * snapshot begins, waits, or is refused; while it waits, the client is told now and then what
 * for. */
void turn_ask(struct node *node, unsigned client, uint32_t seq, enum snapshot_mode mode);
void turn_forget_client(struct node *node, unsigned client);
bool turn_waits(const struct node *node); /* returns whether a snapshot waits */
/* Begins the next snapshot, if the agenda allows it. */
void turn_begin(struct node *node);

#endif
