/* share.c - see share.h. */
#include "vmm/node/pages/share.h"

#include <stdlib.h>
#include "base/log.h"

enum kind { UNLISTED, COPY, OWNED, OFFERED /* owned, and in no ring */ };

/* Two rings, of copies and of owned pages, oldest first, through links 0 and 1.  The link of a page
 * has the index frame + 2. */
struct share {
	uint32_t n_pages, limit, newest, held, held_most, copies, owned, offered;
	bool full;
	struct page { uint8_t kind, adopted; } *page;
	struct link { uint32_t older, newer; } link[];
};

enum { RING_COPIES, RING_OWNED, RINGS };

static uint32_t less(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

struct share *share_new(uint32_t n_pages, uint32_t limit)
{
	struct share *share = calloc(1, sizeof *share + (n_pages + RINGS) * sizeof *share->link);

	if (share)
		share->page = calloc(n_pages, sizeof *share->page);
	if (!share || !share->page)
		die("no memory for the lists of pages");
	share->n_pages = n_pages;
	share->limit = limit;
	share->newest = less(SHARE_NEWEST, limit / 4);
	for (uint32_t ring = 0; ring < RINGS; ring++)
		share->link[ring] = (struct link){ ring, ring };
	return share;
}

void share_free(struct share *share)
{
	if (share)
		free(share->page);
	free(share);
}

/* ---- the rings ---- */

static void put_behind(struct share *share, uint32_t older, gfn_t gfn)
{
	struct link *link = share->link;
	uint32_t at = gfn + RINGS, newer = link[older].newer;

	link[at] = (struct link){ older, newer };
	link[older].newer = link[newer].older = at;
}

static void put_newest(struct share *share, uint32_t ring, gfn_t gfn)
{
	put_behind(share, share->link[ring].older, gfn);
}

static void put_oldest(struct share *share, uint32_t ring, gfn_t gfn)
{
	put_behind(share, ring, gfn);
}

static void take_out(struct share *share, gfn_t gfn)
{
	struct link *link = share->link, *page = &link[gfn + RINGS];

	link[page->older].newer = page->newer;
	link[page->newer].older = page->older;
}

/* The page is in no list from now on. */
static void unlist(struct share *share, gfn_t gfn)
{
	struct page *page = &share->page[gfn];

	if (page->kind == COPY || page->kind == OWNED)
		take_out(share, gfn);
	share->copies -= page->kind == COPY;
	share->owned -= page->kind == OWNED;
	share->offered -= page->kind == OFFERED;
	page->kind = UNLISTED;
}

static void list_owned(struct share *share, gfn_t gfn, bool oldest)
{
	share->page[gfn] = (struct page){ .kind = OWNED };
	share->owned++;
	(oldest ? put_oldest : put_newest)(share, RING_OWNED, gfn);
}

/* ---- what comes and goes ---- */

static void hold(struct share *share, uint32_t count)
{
	share->held += count;
	if (share->held > share->held_most)
		share->held_most = share->held;
}

/* A host without a limit has no use for a list of all its memory.  A page that is here already is
 * an error of the host that leads, which the page protocol finds. */
void share_loaded(struct share *share, gfn_t first, uint32_t count)
{
	if (share->limit >= share->n_pages) {
		hold(share, count);
		return;
	}
	for (gfn_t gfn = first; gfn < first + count; gfn++)
		if (share->page[gfn].kind == UNLISTED) {
			hold(share, 1);
			list_owned(share, gfn, false);
		}
}

void share_came(struct share *share, gfn_t gfn)
{
	bug_on(share->page[gfn].kind != UNLISTED);
	hold(share, 1);
	list_owned(share, gfn, share->page[gfn].adopted);
}

void share_came_copy(struct share *share, gfn_t gfn)
{
	bug_on(share->page[gfn].kind != UNLISTED);
	hold(share, 1);
	share->page[gfn].kind = COPY;
	share->copies++;
	put_newest(share, RING_COPIES, gfn);
}

void share_owned(struct share *share, gfn_t gfn)
{
	if (share->page[gfn].kind != COPY)
		return;
	unlist(share, gfn);
	list_owned(share, gfn, share->page[gfn].adopted);
}

void share_went(struct share *share, gfn_t gfn)
{
	bug_on(!share->held);
	unlist(share, gfn);
	share->page[gfn].adopted = false;
	share->held--;
}

void share_adopts(struct share *share, gfn_t gfn)
{
	share->page[gfn].adopted = true;
}

void share_wanted(struct share *share, gfn_t gfn)
{
	share->page[gfn].adopted = false;
}

bool share_adopted(const struct share *share, gfn_t gfn)
{
	return share->page[gfn].adopted;
}

void share_offers(struct share *share, gfn_t gfn)
{
	bug_on(share->page[gfn].kind != OWNED);
	unlist(share, gfn);
	share->page[gfn].kind = OFFERED;
	share->offered++;
}

void share_stays(struct share *share, gfn_t gfn)
{
	if (share->page[gfn].kind != OFFERED)
		return;
	unlist(share, gfn);
	list_owned(share, gfn, true);
}

void share_renew(struct share *share, gfn_t gfn)
{
	bug_on(share->page[gfn].kind != OWNED);
	unlist(share, gfn);
	list_owned(share, gfn, false);
}

bool share_is_offered(const struct share *share, gfn_t gfn)
{
	return share->page[gfn].kind == OFFERED;
}

uint32_t share_offered(const struct share *share)
{
	return share->offered;
}

/* ---- decisions ---- */

bool share_excess(const struct share *share, gfn_t *gfn)
{
	if (share->held <= share->limit || share->copies <= share->newest)
		return false;
	*gfn = share->link[RING_COPIES].newer - RINGS;
	return true;
}

bool share_spills(const struct share *share, gfn_t *gfn)
{
	if (share_kept(share) - share->offered <= share->limit || share->owned <= share->newest)
		return false;
	*gfn = share->link[RING_OWNED].newer - RINGS;
	return true;
}

uint32_t share_most(uint32_t limit)
{
	return limit + (limit < SHARE_ABOVE ? 1 : limit / SHARE_ABOVE);
}

bool share_full(struct share *share, uint32_t coming)
{
	uint32_t most = share_most(share->limit), all = share->held + coming,
		 run = less(SHARE_RUN, share->limit / SHARE_RUN_PART);

	share->full = share->limit < share->n_pages &&
		      (share->full ? all + run > most || all >= most : all >= most);
	return share->full;
}

uint32_t share_limit(const struct share *share)
{
	return share->limit;
}

uint32_t share_held(const struct share *share)
{
	return share->held;
}

uint32_t share_held_most(const struct share *share)
{
	return share->held_most;
}

uint32_t share_kept(const struct share *share)
{
	return share->held - share->copies + less(share->copies, share->newest);
}
