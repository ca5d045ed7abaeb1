/* batch.h - requests for pages that arrive together, as runs do (vcpu/ahead.h), are served
 * together: this host's pages among them leave their mappings with one system call for a run
 * (extract.h), and the answers leave in few packets.
 *
 * The first request of a burst is served at once, since a CPU waits for its page.  Those behind it
 * are kept while more has arrived.  Before they are served, one after the other by the page
 * protocol's tables, the pages that they are expected to take are *staged*: removed from all
 * processes, with their contents here.  pagestore.c finds them so when the protocol takes them.
 * A page that is not taken after all, for example because its home is busy, is put back: the CPUs
 * of this host notice nothing but one more page fault.
 */
#ifndef VMM_NODE_PAGES_BATCH_H
#define VMM_NODE_PAGES_BATCH_H

#include "base/wire.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/extract.h"

struct staged {
	gfn_t gfn;
	enum page_right had, left; /* this host's rights before and after */
	uint8_t *contents;
};

struct batch *batch_new(void);
void batch_free(struct batch *batch);

/* Takes a message of the page protocol to serve it later.  Returns false if it must be served
 * now. */
bool batch_keep(struct node *node, const struct message *m, const struct msg_dsm *dsm);

/* Serves the messages that are kept.  Must be called before the daemon sleeps. */
void batch_serve(struct node *node);

/* Must be called before a message of this type is handled: serves the messages that are kept,
 * unless this one may be kept behind them. */
void batch_before(struct node *node, uint16_t type);

/* Returns the page if it is staged to leave this host with the right `left`; the caller finishes
 * what was begun, and the page is staged no longer.  A page that was staged to leave another right
 * is put back.  Returns NULL if the page is not staged: its right is in page_right. */
const struct staged *batch_take(struct node *node, gfn_t gfn, enum page_right left);

/* ---- pure, for the unit tests ---- */

/* Returns whether a message of this type may be kept, and the right that it leaves its holder: all
 * of it (PAGE_WRITE) if it only causes messages, which leave together. */
bool batch_is_request(uint16_t type, enum page_right *left);

/* Sorts into `page` the pages that are to be staged together: those that this host has with
 * more than the right that is left, each once, at most EXTRACT_MOST.  Returns how many. */
struct batch_wish { gfn_t gfn; enum page_right has, left; bool held; };
unsigned batch_choose(const struct batch_wish *wish, unsigned wishes,
		      struct staged page[EXTRACT_MOST]);

#endif
