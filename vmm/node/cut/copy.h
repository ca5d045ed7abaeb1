/* copy.h - what one host adds to a snapshot: the states of its CPUs, and the pages that it owns, each as it was at the cut.
 *
 * At the cut, when nothing runs, pages are only marked: those to be saved (`pending`) in a bit set, and every right to write
 * becomes a right to read, which monitors have seen to in their VM processes (monitor/cpu_freeze.c).  So whoever changes a page
 * afterwards comes by the daemon first, and so does whoever takes it away: pagestore.c calls copy_before_change() and
 * copy_before_loss(), which copy a page that is still pending.  All others are sent from where they are.
 *
 * The same tells what has changed since the last checkpoint: `changed` has the pages that came here, or that somebody here asked
 * to write to, since then.  Any other page's contents are those of the last checkpoint, whoever owned it meanwhile: a write drops
 * all copies, and a copy that is fetched again came.
 *
 * A host that shares its memory with none for ever has the right to write to all of it, but from a cut until all is sent.
 */
#ifndef VMM_NODE_CUT_COPY_H
#define VMM_NODE_CUT_COPY_H

#include "base/wire.h"
#include "vmm/node/node.h"

enum { CPU_STATE_LIMIT = 4096 };

/* Once, when the daemon starts; and when it ends, though the process lives on. */
void copy_start(struct node *node);
void copy_end(struct node *node);
/* Room for what the other functions note: 0 or -ENOMEM. copy_forget() frees it, and whatever was copied. */
int copy_prepare(const struct node *node);
void copy_forget(const struct node *node);

/* While everything stands still. copy_cpu: false: nobody has asked for it, or it is too long. */
bool copy_cpu(const struct node *node, unsigned cpu, const void *state, uint32_t bytes);
int copy_mark(struct node *node, enum snapshot_mode mode);

/* The page is about to be taken away; it is about to be written to, or has just come. */
void copy_before_loss(const struct node *node, gfn_t gfn);
void copy_before_change(const struct node *node, gfn_t gfn);

/* The next item to be sent, in `item` without sequence number; data is valid until the next call. False: that was all. */
struct copy_item { enum snapshot_kind kind; uint32_t index, bytes; const void *data; };
bool copy_next(const struct node *node, struct copy_item *item);

#endif
