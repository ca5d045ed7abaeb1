/* turn.h - node 0: whose snapshot is next.  Moves of CPUs, changes of hosts and snapshots keep out of each other's way: who is asked
 * for while another is under way waits, and nobody is refused for it.
 *
 *   a snapshot  begins when no CPU is on its way, no host comes or goes, and no other is being made
 *   a move      begins while CPUs run, but not ahead of a snapshot that waits for moves alone; one of a change of hosts that is under
 *               way always does
 *   a change    of hosts begins when no snapshot is being made; behind one it is the turn of the next change, and behind a change of
 *               the next snapshot
 *
 * So none of them can keep another waiting for ever.
 */
#ifndef VMM_NODE_CUT_TURN_H
#define VMM_NODE_CUT_TURN_H

#include "vmm/node/node.h"

void turn_start(struct node *node);
/* Client `client` wants a snapshot; seq: its request, with its slot.  It is begun, or refused, or told now and then what it waits for. */
void turn_ask(struct node *node, unsigned client, uint32_t seq, enum snapshot_mode mode);
void turn_forget_client(struct node *node, unsigned client);
/* A snapshot waits for the move under way alone: nothing else begins before it. */
bool turn_is_next(const struct node *node);
/* Something has ended: begin the snapshot that waited for it. */
void turn_next(struct node *node);

#endif
