/* freeze.h - the node daemon's part in saving a machine: one consistent cut over all hosts.
 *
 * In order (base/wire.h has the steps; node 0 leads):
 *   1. A client sends SAVE. When it is its turn (turn.h), every daemon PREPAREs. Then each is told
 *      to FREEZE, and tells its monitors: each CPU stops at an instruction boundary, after the
 *      pages and the I/O that it waits for have arrived. Daemons and I/O server keep serving.
 *   2. When all CPUs of all hosts are FROZEN, the I/O server copies its devices (SAVED) and
 *      stands still. Interrupts that it raised before are ahead of its answer.
 *   3. CUT: every daemon sends every other one a MARK, twice. Between two daemons messages keep
 *      their order, so behind the marks no interrupt is in flight. Then each CPU's state is
 *      taken, and the pages that this host owns are marked (copy.h).
 *   4. All DONE: THAW. The pause ends here, whatever the file is written to.
 *   5. The client pulls the parts, item by item (pull.h). END, or the client's end, frees what is
 *      left of the copies. A page that is about to change before it was pulled is copied first.
 * Every page has one owner, so the owned pages of all hosts together are the RAM. A page in flight
 * that no CPU waits for may be marked by both hosts (saved.h).
 *
 * The owner of the machine may ask for a checkpoint.  It is the same, but later ones hold only what
 * has changed (checkpoint.h).  After a CHECKPOINT_LAST nothing thaws: it is pulled while the
 * machine stands still.  Then the machine goes on elsewhere, or here after END.
 *
 * Loading: restore.h.
 */
#ifndef VMM_NODE_CUT_FREEZE_H
#define VMM_NODE_CUT_FREEZE_H

#include "vmm/node/node.h"

void freeze_start(struct node *node);
/* Returns whether the CPUs of this host stand still, or are about to. */
bool freeze_holds(const struct node *node);

/* Node 0: begins a snapshot for client `number`.  `seq` is the client's request number, with its
 * slot. */
void freeze_begin(struct node *node, unsigned number, uint32_t seq, enum snapshot_mode mode);
/* Node 0: returns whether a snapshot is being made or pulled. */
bool freeze_is_led(const struct node *node);
/* Sends an item to the client of that request. */
void freeze_answer(struct node *node, uint32_t seq, enum snapshot_kind kind, uint32_t index,
		   const void *data, uint32_t bytes);
/* Sends a message to a monitor of this host, or to the I/O server.  The machine ends if it does not
 * take its messages. */
void freeze_send_to_child(struct node *node, struct child *child, enum msg_type type,
			  const void *body, uint32_t body_bytes, const void *payload,
			  uint32_t payload_bytes);
void freeze_client_gone(struct node *node, unsigned number);

/* Node 0, --restore: all hosts have started with what was loaded. */
void freeze_thaw_all(struct node *node);

#endif
