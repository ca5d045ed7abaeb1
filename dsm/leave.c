/* leave.c - a node that leaves: it hands over all pages that it owns, many at a time, drops its
 * copies, and the homes forget it.  If another node has a copy of a page, the home makes that
 * node the owner without sending data.
 */
#include "dsm/dsm_private.h"

#include "base/log.h"

void dsm_set_nodes(struct dsm *dsm, uint32_t nodes)
{
	dsm->nodes = nodes;
}

uint32_t dsm_nodes(const struct dsm *dsm)
{
	return dsm->nodes;
}

void dsm_leave(struct dsm *dsm, bool leaves)
{
	dsm->leaving = (struct dsm_leaving){ .on = leaves, .pace = LEAVE_FIRST };
}

/* Forget requests that are served, and repeat those without effect after LEAVE_PATIENCE steps:
 * the node that was to adopt the page may have been leaving too. */
static void check_requested(struct dsm *dsm)
{
	struct dsm_leaving *l = &dsm->leaving;
	unsigned left = 0;

	for (unsigned i = 0; i < l->count; i++) {
		if (!dsm_is_owner(dsm, l->asked[i].gfn))
			continue;
		if (++l->asked[i].steps % LEAVE_PATIENCE == 0)
			dsm_handover(dsm, l->asked[i].gfn, DSM_ANY_NODE);
		l->asked[left++] = l->asked[i];
	}
	l->count = left;
}

/* Adapt the pace; called once the served requests were forgotten. */
static void adapt_pace(struct dsm_leaving *l)
{
	if (!l->begun)
		return;
	if (!l->count && l->pace < LEAVE_MOST)
		l->pace++;
	else if (l->count > l->begun / 2)
		l->pace = l->pace / 2 > LEAVE_LEAST ? l->pace / 2 : LEAVE_LEAST;
	l->begun = 0;
}

bool dsm_leave_step(struct dsm *dsm, uint32_t elapsed_us)
{
	struct dsm_leaving *l = &dsm->leaving;
	unsigned most;

	bug_on(!l->on);
	check_requested(dsm);
	adapt_pace(l);
	most = (unsigned)((uint64_t)l->pace * elapsed_us / 1000);
	most += !most;
	for (unsigned n = 0; l->next < dsm->n_pages && l->count < LEAVE_WINDOW && n < most;
	     l->next++) {
		if (dsm_is_owner(dsm, l->next)) {
			l->asked[l->count].gfn = l->next;
			l->asked[l->count++].steps = 0;
			l->begun++;
			dsm_handover(dsm, l->next, DSM_ANY_NODE);
			n++;
		} else {
			n += dsm_drop(dsm, l->next);
		}
	}
	if (l->next < dsm->n_pages || l->count)
		return false;
	l->next = 0; /* scan again: a page may have been in transit */
	return dsm_pages_here(dsm) == 0;
}

/* A copy that is dropped while its invalidation is held is still to be acknowledged.
 * (TRICKS: copy-owes-ack) */
uint32_t dsm_pages_here(const struct dsm *dsm)
{
	uint32_t count = 0;

	for (gfn_t gfn = 0; gfn < dsm->n_pages; gfn++)
		count += dsm->pages[gfn].state != NODE_NONE || dsm->pages[gfn].held_type;
	return count;
}

void dsm_forget_node(struct dsm *dsm, unsigned node)
{
	for (gfn_t gfn = 0; gfn < dsm->n_pages; gfn++) {
		struct home_page *home = &dsm->homes[gfn];

		if (!(home->copyset >> node & 1))
			continue;
		if (home->owner == node)
			return dsm_is_wrong(dsm, "node %u is gone, and owns page %#x", node, gfn);
		home->copyset &= ~(1u << node);
	}
}
