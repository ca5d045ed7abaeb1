/* share.c - see share.h. */
#include "vmm/node/pages/share.h"

#include <stdlib.h>
#include "base/log.h"

/* A ring of all copies, oldest first, through link 0.  The link of a page has the index frame + 1;
 * if it is all zero, the page is not in the ring. */
struct share {
	uint32_t limit, held, copies;
	struct link { uint32_t older, newer; } link[];
};

struct share *share_new(uint32_t n_pages, uint32_t limit)
{
	struct share *share = calloc(1, sizeof *share + (n_pages + 1ull) * sizeof *share->link);

	if (!share)
		die("no memory for the list of copies");
	share->limit = limit;
	return share;
}

void share_free(struct share *share)
{
	free(share);
}

static bool listed(const struct share *share, uint32_t at)
{
	return share->link[share->link[at].older].newer == at;
}

void share_came(struct share *share, uint32_t count)
{
	share->held += count;
}

void share_came_copy(struct share *share, gfn_t gfn)
{
	struct link *link = share->link;
	uint32_t at = gfn + 1, newest = link[0].older;

	bug_on(listed(share, at));
	link[at] = (struct link){ .older = newest };
	link[newest].newer = at;
	link[0].older = at;
	share->copies++;
	share->held++;
}

void share_owned(struct share *share, gfn_t gfn)
{
	struct link *link = share->link;
	uint32_t at = gfn + 1;

	if (!listed(share, at))
		return;
	link[link[at].older].newer = link[at].newer;
	link[link[at].newer].older = link[at].older;
	link[at] = (struct link){ 0 };
	share->copies--;
}

void share_went(struct share *share, gfn_t gfn)
{
	share_owned(share, gfn);
	bug_on(!share->held);
	share->held--;
}

bool share_excess(const struct share *share, gfn_t *gfn)
{
	if (share->held <= share->limit || share->copies <= SHARE_NEWEST)
		return false;
	*gfn = share->link[0].newer - 1;
	return true;
}
