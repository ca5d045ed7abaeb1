/* restore.h - the node daemons' part in loading a saved machine (vmm/cli/snapshot/load.h is the
 * other side).
 *
 * Node 0 was started with --restore.  When all hosts are connected it sends READY to the run
 * client, which sends the items.  Pages are dealt to the hosts in stripes (ram.h), and these hosts
 * own them from the start.  CPU states go to the CPUs' monitors, all else to the I/O server.
 * LOADED starts the machine with the saved clock, and ends in THAW.
 *
 * The run client itself writes the pages of hosts on its computer into their memory, with a fifth
 * of the work (bench/notebook/checkpoints.md).  Only pages of other computers come as items.
 *
 * Flow control: the I/O server answers each of its items with TAKEN, and every daemon answers each
 * SYNC, which follows about a thousand pages.
 */
#ifndef VMM_NODE_CUT_RESTORE_H
#define VMM_NODE_CUT_RESTORE_H

#include "vmm/node/node.h"

/* Every daemon, at its start: offers its memory to a process on this computer that loads the
 * machine. */
void restore_offer_ram(const struct node *node);

/* Node 0: restore_begin() when all hosts are connected; the others for items and SYNC from the run
 * client. */
void restore_begin(struct node *node);
void restore_item(struct node *node, const struct msg_snapshot_item *item, const void *data,
		  uint32_t bytes);
void restore_sync(struct node *node);

/* Every daemon: an item for this host, or a SYNC, from node 0. */
void restore_on_item(struct node *node, const struct msg_snapshot_item *item, const void *data,
		     uint32_t bytes);
void restore_on_sync(struct node *node);

/* Dies if the fault point `checkpoint-dies` is on for this step. */
void restore_perhaps_die(const struct node *node, unsigned step);

#endif
