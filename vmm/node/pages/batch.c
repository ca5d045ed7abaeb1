/* batch.c - see batch.h; what is to be staged is batch_choice.c's. */
#include "vmm/node/pages/batch.h"

#include <stdlib.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "base/mechanisms.h"
#include "vmm/node/cut/copy.h"

enum { KEPT_MOST = 32 };

struct batch {
	bool open, serving; /* more may come behind the first; batch_serve() is under way */
	unsigned n, pages;
	struct kept { struct message m; struct msg_dsm dsm; } kept[KEPT_MOST];
	struct staged page[EXTRACT_MOST]; /* contents NULL: taken */
	uint8_t contents[EXTRACT_MOST * PAGE_BYTES];
};

struct batch *batch_new(void)
{
	struct batch *batch = calloc(1, sizeof *batch);

	if (!batch)
		die("out of memory");
	return batch;
}

void batch_free(struct batch *batch)
{
	free(batch);
}

/* ---- staging ---- */

static void choose(struct node *node, struct batch *batch, unsigned first, unsigned end)
{
	struct batch_wish wish[EXTRACT_MOST];
	unsigned n = 0;

	for (unsigned i = first; i < end; i++) {
		gfn_t gfn = batch->kept[i].dsm.gfn;
		enum page_right left;

		if (!ram_has(node->ram_pages, gfn) ||
		    !batch_is_request(batch->kept[i].m.header.type, &left) || left == PAGE_WRITE)
			continue;
		wish[n++] = (struct batch_wish){
			gfn, atomic_load(&node->shm->page_right[gfn]), left,
			pagestore_hold_us(node, gfn, left) != 0,
		};
	}
	batch->pages = batch_choose(wish, n, batch->page);
}

static uint8_t *contents_of(struct batch *batch, unsigned place)
{
	return batch->contents + ((size_t)place << PAGE_BITS);
}

/* Removes the pages that could be written, or all others, as `written` says.  Puts their contents
 * side by side from `place` on.  Returns the place behind them. */
static unsigned remove_pages(struct node *node, struct batch *batch, bool written, unsigned place)
{
	gfn_t gfn[EXTRACT_MOST];
	unsigned n = 0;

	for (unsigned i = 0; i < batch->pages; i++) {
		if ((batch->page[i].had == PAGE_WRITE) != written)
			continue;
		batch->page[i].contents =
			contents_of(batch, fault_on(FAULT_BATCH_MIXES) ? place : place + n);
		gfn[n++] = batch->page[i].gfn;
	}
	if (n)
		extract_pages(pagestore_extract(node), gfn, n, written, contents_of(batch, place));
	return place + n;
}

/* Puts back those that stay as copies.  Pages that follow each other in `page` and could be written
 * have their contents side by side. */
static void put_back_copies(struct node *node, struct batch *batch)
{
	for (unsigned i = 0, n; i < batch->pages; i += n ? n : 1) {
		gfn_t gfn[EXTRACT_MOST];

		for (n = 0; i + n < batch->pages && batch->page[i + n].left == PAGE_READ &&
		     batch->page[i + n].had == PAGE_WRITE; n++)
			gfn[n] = batch->page[i + n].gfn;
		if (n)
			extract_put_back(pagestore_extract(node), gfn, n, batch->page[i].contents);
	}
}

static void stage(struct node *node, struct batch *batch, unsigned first, unsigned end)
{
	choose(node, batch, first, end);
	if (batch->pages < 2) { /* a single page is taken as fast without staging */
		batch->pages = 0;
		return;
	}
	for (unsigned i = 0; i < batch->pages; i++)
		atomic_store(&node->shm->page_right[batch->page[i].gfn], PAGE_NONE);
	for (unsigned i = 0; i < batch->pages; i++)
		pagestore_drain(node, batch->page[i].gfn);
	remove_pages(node, batch, false, remove_pages(node, batch, true, 0));
	put_back_copies(node, batch);
}

static void put_back(struct node *node, struct staged *page)
{
	if (page->left == PAGE_NONE)
		extract_put_back(pagestore_extract(node), &page->gfn, 1, page->contents);
	atomic_store(&node->shm->page_right[page->gfn], page->had);
	page->contents = NULL;
}

const struct staged *batch_take(struct node *node, gfn_t gfn, enum page_right left)
{
	static struct staged taken;
	struct batch *batch = pagestore_batch(node);

	for (unsigned i = 0; i < batch->pages; i++) {
		struct staged *page = &batch->page[i];

		if (page->gfn != gfn || !page->contents)
			continue;
		if (page->left != left) {
			put_back(node, page);
			return NULL;
		}
		taken = *page;
		page->contents = NULL;
		return &taken;
	}
	return NULL;
}

/* ---- messages ---- */

/* Returns whether pages may be staged.  Not during a snapshot, which copies pages before they
 * leave; and not if a fault point delays acknowledgements. */
static bool may_stage(const struct node *node)
{
	return !node->ending && !copy_is_pending(node) && !fault_on(FAULT_DELAY_INVALIDATIONS) &&
	       !fault_on(FAULT_SLOW_INVALIDATIONS);
}

bool batch_keep(struct node *node, const struct message *m, const struct msg_dsm *dsm)
{
	struct batch *batch = pagestore_batch(node);
	bool more = node->outside->has_more(node);
	enum page_right left;

	if (!mechanism_on(node->o.machine.without, MECHANISM_BATCH) || batch->serving ||
	    m->from == node->o.node ||
	    !batch_is_request(m->header.type, &left))
		return false;
	if (!batch->open && !batch->n) {
		batch->open = more;
		return false;
	}
	batch->kept[batch->n].m = *m;
	batch->kept[batch->n++].dsm = *dsm;
	if (!more || batch->n == KEPT_MOST)
		batch_serve(node);
	return true;
}

static void serve(struct node *node, struct batch *batch, unsigned first, unsigned end)
{
	if (may_stage(node))
		stage(node, batch, first, end);
	for (unsigned i = first; i < end; i++) {
		batch->kept[i].m.body = &batch->kept[i].dsm;
		pagestore_serve(node, &batch->kept[i].m, &batch->kept[i].dsm);
	}
	for (unsigned i = 0; i < batch->pages; i++)
		if (batch->page[i].contents && !fault_on(FAULT_BATCH_FORGETS))
			put_back(node, &batch->page[i]);
	batch->pages = 0;
}

/* (TRICKS: kept-then-served) */
void batch_serve(struct node *node)
{
	struct batch *batch = node->dsm ? pagestore_batch(node) : NULL;

	if (!batch || batch->serving)
		return;
	batch->open = false;
	if (!batch->n)
		return;
	batch->serving = true;
	node->outside->cork(node);
	for (unsigned i = 0; i < batch->n; i += EXTRACT_MOST)
		serve(node, batch, i, batch->n - i < EXTRACT_MOST ? batch->n : i + EXTRACT_MOST);
	node->outside->uncork(node);
	batch->n = 0;
	batch->serving = false;
}

void batch_before(struct node *node, uint16_t type)
{
	enum page_right left;

	if (!batch_is_request(type, &left))
		batch_serve(node);
}
