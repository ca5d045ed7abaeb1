/* restore.h - the node daemons' part in loading a machine that was saved (vmm/cli/snapshot/load.h is the other side).
 *
 * Node 0 was started with --restore.  When all hosts are connected it tells the run client READY, which sends the items.  Pages are
 * dealt over the hosts in stripes (ram.h) and are their owners' from the start; CPUs go to their hosts' monitors, the rest to the I/O
 * server.  LOADED starts the machine with the saved clock, and ends in THAW.
 *
 * The run client itself writes those pages that belong to hosts on its computer into their memory, with a fifth of the work
 * (bench/notebook/checkpoints.md).  Only those of other computers come as items.
 * Flow: the I/O server answers each of its items with TAKEN, and every daemon each SYNC, which comes behind some thousand pages.
 */
#ifndef VMM_NODE_CUT_RESTORE_H
#define VMM_NODE_CUT_RESTORE_H

#include "vmm/node/node.h"

/* Every daemon, at its start: who loads the machine on this computer finds its memory. */
void restore_offer_ram(const struct node *node);

/* Node 0: all hosts are connected. Then what the run client sends: items, and SYNC. */
void restore_begin(struct node *node);
void restore_item(struct node *node, const struct msg_snapshot_item *item, const void *data, uint32_t bytes);
void restore_sync(struct node *node);

/* Every daemon: an item from node 0, for this host; SYNC from node 0. */
void restore_on_item(struct node *node, const struct msg_snapshot_item *item, const void *data, uint32_t bytes);
void restore_on_sync(struct node *node);

/* The fault point `checkpoint-dies`. */
void restore_perhaps_die(const struct node *node, unsigned step);

#endif
