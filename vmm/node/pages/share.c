/* share.c - see share.h. */
#include "vmm/node/pages/share.h"

#include <stdlib.h>
#include "base/log.h"

/* The kinds of pages: those from COPIES on have a ring each, oldest first. */
enum kind { UNLISTED, OFFERED, COPIES, FOREIGN /* adopted */, NEW, SETTLED, KINDS };

/* The ring of a kind goes through the link of that index.  The link of a page has the index frame +
 * KINDS.
 *
 * Time is counted in owned pages that leave: `part` goes on by 1 when as many have left as a part
 * of the share.  A page's `left` is the part in which it left; 0: it was not owned here yet. */
struct share {
	uint32_t n_pages, limit, newest, together, settled_most, held, held_most, leaving;
	uint32_t count[KINDS];
	uint16_t part;
	bool full;
	struct page { uint8_t kind, adopted; uint16_t left; } *page;
	struct link { uint32_t older, newer; } link[];
};

static uint32_t less(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

struct share *share_new(uint32_t n_pages, uint32_t limit)
{
	struct share *share = calloc(1, sizeof *share + (n_pages + KINDS) * sizeof *share->link);

	if (share)
		share->page = calloc(n_pages, sizeof *share->page);
	if (!share || !share->page)
		die("no memory for the lists of pages");
	share->n_pages = n_pages;
	share->limit = limit;
	share->newest = less(SHARE_NEWEST, limit / 4);
	share->together = less(SHARE_TOGETHER, limit / SHARE_TOGETHER);
	share->settled_most = limit - limit / SHARE_NEW_PART;
	share->part = 1;
	for (uint32_t ring = 0; ring < KINDS; ring++)
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
	uint32_t at = gfn + KINDS, newer = link[older].newer;

	link[at] = (struct link){ older, newer };
	link[older].newer = link[newer].older = at;
}

static void take_out(struct share *share, gfn_t gfn)
{
	struct link *link = share->link, *page = &link[gfn + KINDS];

	link[page->older].newer = page->newer;
	link[page->newer].older = page->older;
}

/* The page is in no list from now on. */
static void unlist(struct share *share, gfn_t gfn)
{
	struct page *page = &share->page[gfn];

	if (page->kind == UNLISTED)
		return;
	if (page->kind >= COPIES)
		take_out(share, gfn);
	share->count[page->kind]--;
	page->kind = UNLISTED;
}

static void list(struct share *share, gfn_t gfn, enum kind ring, bool oldest)
{
	share->page[gfn].kind = ring;
	share->count[ring]++;
	put_behind(share, oldest ? ring : share->link[ring].older, gfn);
}

static gfn_t oldest(const struct share *share, enum kind ring)
{
	return share->link[ring].newer - KINDS;
}

static uint32_t owned(const struct share *share)
{
	return share->count[FOREIGN] + share->count[NEW] + share->count[SETTLED];
}

static bool is_owned(const struct share *share, gfn_t gfn)
{
	return share->page[gfn].kind >= FOREIGN;
}

/* ---- new and settled pages ---- */

/* So many new pages stay new: CPUs wait for them. */
static uint32_t new_least(const struct share *share)
{
	uint32_t least = less(share->newest, share->limit / SHARE_NEW_PART / 2);

	return least ? least : 1;
}

static void move(struct share *share, enum kind from, enum kind to, bool to_oldest)
{
	gfn_t gfn = oldest(share, from);

	unlist(share, gfn);
	list(share, gfn, to, to_oldest);
}

/* New pages settle while there is room for that.  If too many are settled, the first are new
 * again. */
static void settle(struct share *share)
{
	while (share->count[SETTLED] > share->settled_most)
		move(share, SETTLED, NEW, true);
	while (share->count[SETTLED] < share->settled_most &&
	       share->count[NEW] > new_least(share))
		move(share, NEW, SETTLED, false);
}

static bool has_left_lately(const struct share *share, gfn_t gfn)
{
	uint16_t left = share->page[gfn].left;

	return left && (uint16_t)(share->part - left) < SHARE_LATELY;
}

static void list_owned(struct share *share, gfn_t gfn)
{
	if (share->page[gfn].adopted)
		list(share, gfn, FOREIGN, false);
	else
		list(share, gfn, has_left_lately(share, gfn) ? SETTLED : NEW, false);
	share->page[gfn].adopted = false;
	settle(share);
}

static void note_left(struct share *share, gfn_t gfn)
{
	if (share->leaving++ >= share->limit / SHARE_LATELY) {
		share->leaving = 0;
		share->part += share->part == UINT16_MAX ? 2 : 1;
	}
	share->page[gfn].left = share->part;
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
			list_owned(share, gfn);
		}
}

void share_came(struct share *share, gfn_t gfn)
{
	bug_on(share->page[gfn].kind != UNLISTED);
	hold(share, 1);
	list_owned(share, gfn);
}

void share_came_copy(struct share *share, gfn_t gfn)
{
	bug_on(share->page[gfn].kind != UNLISTED);
	hold(share, 1);
	list(share, gfn, COPIES, false);
}

void share_owned(struct share *share, gfn_t gfn)
{
	if (share->page[gfn].kind != COPIES)
		return;
	unlist(share, gfn);
	list_owned(share, gfn);
}

void share_went(struct share *share, gfn_t gfn)
{
	bug_on(!share->held);
	if (is_owned(share, gfn) || share->page[gfn].kind == OFFERED)
		note_left(share, gfn);
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
	bug_on(!is_owned(share, gfn));
	unlist(share, gfn);
	share->page[gfn].kind = OFFERED;
	share->count[OFFERED]++;
}

void share_stays(struct share *share, gfn_t gfn)
{
	if (share->page[gfn].kind != OFFERED)
		return;
	unlist(share, gfn);
	list(share, gfn, FOREIGN, true);
}

void share_renew(struct share *share, gfn_t gfn)
{
	bug_on(!is_owned(share, gfn));
	unlist(share, gfn);
	list(share, gfn, NEW, false);
}

bool share_is_offered(const struct share *share, gfn_t gfn)
{
	return share->page[gfn].kind == OFFERED;
}

uint32_t share_offered(const struct share *share)
{
	return share->count[OFFERED];
}

/* ---- decisions ---- */

unsigned share_excess(const struct share *share, gfn_t gfn[SHARE_TOGETHER])
{
	uint32_t at = COPIES, copies = share->count[COPIES], more;
	unsigned n = 0;

	if (share->held <= share->limit || copies <= share->newest + share->together)
		return 0;
	more = less(share->held - share->limit + share->together, copies - share->newest);
	for (; n < less(more, SHARE_TOGETHER); n++) {
		at = share->link[at].newer;
		gfn[n] = at - KINDS;
	}
	return n;
}

bool share_spills(const struct share *share, gfn_t *gfn)
{
	enum kind ring = share->count[FOREIGN] ? FOREIGN :
			 share->count[NEW] > new_least(share) || !share->count[SETTLED] ? NEW :
			 SETTLED;

	if (share_kept(share) - share->count[OFFERED] <= share->limit ||
	    owned(share) <= share->newest)
		return false;
	*gfn = oldest(share, ring);
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
	return share->held - share->count[COPIES] +
	       less(share->count[COPIES], share->newest + share->together);
}
