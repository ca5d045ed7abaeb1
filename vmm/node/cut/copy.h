/* copy.h - what one host adds to a snapshot: the states of its CPUs, and the pages that it owns,
 * each as it was at the cut.
 *
 * At the cut, when nothing runs, pages are only marked: those to be saved get a bit in `pending`,
 * and every right to write becomes a right to read; monitors have done the same in their VM
 * processes (monitor/cpu_freeze.c).  So a CPU that wants to change a page afterwards must ask the
 * daemon first, and so must a host that takes the page away. pagestore.c then calls
 * copy_before_change() or copy_before_loss(), which copy a page that is still pending.  All other
 * pages are sent from where they are.
 *
 * The same calls record what has changed since the last checkpoint: `changed` has the pages that
 * arrived here, or that a CPU here asked to write to, since then.  Any other page has the contents
 * of the last checkpoint, whoever owned it meanwhile: a write drops all copies, and a copy that is
 * fetched again counts as arrived.
 *
 * A host that never shares its memory has the right to write to all of it, except from a cut until
 * all is sent.
 */
#ifndef VMM_NODE_CUT_COPY_H
#define VMM_NODE_CUT_COPY_H

#include "base/wire.h"
#include "vmm/node/node.h"

enum { CPU_STATE_LIMIT = 4096, COPY_GUESSED = 64 };

/* Called at the daemon's start; and, to free it, at the machine's end, since the process lives
 * on. */
void copy_start(struct node *node);
void copy_end(struct node *node);
/* Allocates what the other functions need.  Returns 0 or -ENOMEM. copy_forget() frees it, and all
 * copies. */
int copy_prepare(const struct node *node);
void copy_forget(const struct node *node);

/* Called while all CPUs stand still. copy_cpu() returns false if no snapshot is being made, or if
 * the state is too long. */
bool copy_cpu(const struct node *node, unsigned cpu, const void *state, uint32_t bytes);
int copy_mark(struct node *node, enum snapshot_mode mode);

/* Returns whether a snapshot is being made: pages are copied before they change or leave. */
bool copy_is_pending(const struct node *node);
/* before_loss: the page is about to be taken away. before_change: a CPU is about to write to it, or
 * it has just arrived. */
void copy_before_loss(const struct node *node, gfn_t gfn);
void copy_before_change(const struct node *node, gfn_t gfn);
/* Returns which of the COPY_GUESSED aligned pages around `gfn` the guest will probably write to
 * soon, one bit each: a program that writes to a page in each interval between two cuts should not
 * have to ask for it each time. */
uint64_t copy_guess_changes(const struct node *node, gfn_t gfn);

/* Gives the next item to send, without its sequence number; `data` is valid until the next call.
 * Returns false if there is none left. */
struct copy_item { enum snapshot_kind kind; uint32_t index, bytes; const void *data; };
bool copy_next(const struct node *node, struct copy_item *item);

#endif
