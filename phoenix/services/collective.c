/* collective.c - a message to all nodes that assume a part of a range, along a tree that follows
 * the network.
 *
 * This is the multicasting idiom of the PPoPP paper (section 4.3.1) as a primitive.  A message for
 * a set of virtual nodes goes to one of them.  The holder of that one keeps what it assumes itself
 * and divides the rest (collective_share()).  Everything behind one neighbour is reached through
 * that neighbour, once.  Of neighbours that are about as far away, the nearest passes the message
 * on to the others.  The nearest neighbours are halved again and again.  So a slow link is crossed
 * once or twice, and n nodes in one place take about log2 n steps.  A node divides by what it
 * knows; a wrong guess costs a message, never a receiver.
 */
#include "phoenix/routing/routes.h"
#include "phoenix/services/services_private.h"

/* ---- the tree ---- */

struct branch {
	/* what the neighbour on the way, or a holder behind it, assumes */
	const struct ph_vps *by;
	struct plink *way;
	unsigned class;	/* how far it is: similar round-trip times are in the same class */
	struct ph_vps vps;
};

static unsigned distance_class(const struct plink *l)
{
	unsigned class = 0;

	for (uint64_t us = l ? l->rtt_us : 0; us > 1000; us /= 4)
		class++;
	return class;
}

static int by_class(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;

	return x->class != y->class ? (x->class < y->class ? -1 : 1)
	       : x->way != y->way   ? (x->way->serial < y->way->serial ? -1 : 1)
				    : 0;
}

static bool merge(struct ph_vps *into, const struct ph_vps *more)
{
	ph_vps_t both = ph_vps_create_union(into, (ph_vps_t)more);

	if (!both)
		return false;
	free(into->r);
	*into = *both;
	free(both);
	return true;
}

static ph_vp_t first_of(const struct branch *b)
{
	ph_vps_t theirs = ph_vps_create_inter((ph_vps_t)&b->vps, (ph_vps_t)b->by);
	ph_vp_t first = theirs && theirs->n ? theirs->r[0].lo : b->vps.r[0].lo;

	ph_vps_destroy(theirs);
	return first;
}

/* Moves each part of *rest that some node assumes to the branch of the neighbour towards that
 * node.  Returns the branches, nearest first. */
static struct branch *find_branches(struct phnx *ph, ph_vps_t *rest, size_t *n)
{
	unsigned n_nodes = route_count(ph);
	struct branch *all = calloc(n_nodes + 1, sizeof *all);

	for (unsigned k = 0; all && k < n_nodes; k++) {
		struct route_view e = route_entry(ph, k);
		ph_vps_t theirs = e.way ? ph_vps_create_inter(*rest, (ph_vps_t)e.vps) : NULL;
		if (theirs && theirs->n) {
			size_t i = 0;
			while (i < *n && all[i].way != e.way)
				i++;
			struct branch *b = all + i;
			if (i == *n)
				*b = (struct branch){ .by = e.vps,
						      .way = e.way,
						      .class = distance_class(e.way) };
			ph_vps_t left = ph_vps_create_diff(*rest, theirs);
			/* no memory: it stays with what nobody assumes */
			if (!left || !merge(&b->vps, theirs)) {
				ph_vps_destroy(left);
				ph_vps_destroy(theirs);
				continue;
			}
			*n += i == *n;
			if (e.direct)
				/* the neighbour itself rather than nodes behind it */
				b->by = e.vps;
			ph_vps_destroy(*rest);
			*rest = left;
		}
		ph_vps_destroy(theirs);
	}
	if (all)
		qsort(all, *n, sizeof *all, by_class);
	return all;
}

void collective_share(struct phnx *ph, const struct ph_vps *set, tree_fn give, void *arg)
{
	ph_vps_t rest = ph_vps_dup((ph_vps_t)set);
	size_t n = 0;
	struct branch *all = rest ? find_branches(ph, &rest, &n) : NULL;

	for (size_t end = n; end;) {
		size_t start = end - 1;	/* the first of those that are as far away as the last */
		while (start && all[start - 1].class == all[end - 1].class)
			start--;
		if (start == 0 || all[start].class == 0)
			start += (end - start) / 2;	/* of the nearest, the second half */
		for (size_t i = start + 1; i < end; i++)
			if (!merge(&all[start].vps, &all[i].vps))
				give(ph, first_of(all + i), &all[i].vps, arg);
		give(ph, first_of(all + start), &all[start].vps, arg);
		end = start;
	}
	for (size_t i = 0; i < n; i++)
		free(all[i].vps.r);
	free(all);
	if (!rest && set->n)		/* no memory to divide it */
		give(ph, set->r[0].lo, set, arg);
	/* nobody assumes it: it waits for the node that will assume the first of it */
	else if (rest && rest->n)
		give(ph, rest->r[0].lo, rest, arg);
	ph_vps_destroy(rest);
}

void collective_put_set(struct writer *w, const struct ph_vps *set)
{
	put_var(w, set->n);
	for (size_t i = 0; i < set->n; i++) {
		put64(w, (uint64_t)set->r[i].lo);
		put64(w, (uint64_t)set->r[i].hi);
	}
}

bool collective_get_set(struct phnx *ph, struct reader *r, struct ph_vps *set)
{
	uint64_t n = get_var(r);
	ph_vp_t at = ph->lower;
	bool short_of_memory = false;

	*set = (struct ph_vps){ 0 };
	for (uint64_t i = 0; i < n && n <= MAX_RANGES && !r->bad && !short_of_memory; i++) {
		ph_vp_t lo = (ph_vp_t)get64(r), hi = (ph_vp_t)get64(r);
		r->bad |= lo < at || hi <= lo || hi > ph->upper;
		short_of_memory = !r->bad && !vps_append(set, lo, hi);
		at = hi;
	}
	if (short_of_memory)
		core_report(ph, PH_ENOMEM,
			    "out of memory: a part of a collective operation is lost");
	if (!r->bad && !short_of_memory && set->n)
		return true;
	free(set->r);
	*set = (struct ph_vps){ 0 };
	return false;
}

/* ---- multicast ---- */

struct cast {
	ph_vp_t origin;
	uint64_t counter;
	int tag;
	const unsigned char *body;
	size_t len;
};

static void send_cast(struct phnx *ph, ph_vp_t to, const struct ph_vps *set, void *arg)
{
	const struct cast *c = arg;
	struct writer w = { 0 };

	put64(&w, (uint64_t)c->origin);
	put64(&w, c->counter);
	put32(&w, (uint32_t)c->tag);
	collective_put_set(&w, set);
	put_bytes(&w, c->body, c->len);
	flow_send_internal(ph, to, TAG_MULTICAST, &w, 0);
}

/* Returns whether this is the first copy here, and notes it. */
static bool first_copy(struct phnx *ph, const struct cast *c)
{
	struct collectives *all = ph->collectives;

	for (unsigned i = 0; i < SEEN_MULTICASTS; i++)
		if (all->seen[i].origin == c->origin && all->seen[i].counter == c->counter)
			return false;
	all->seen[all->next_seen].origin = c->origin;
	all->seen[all->next_seen].counter = c->counter;
	all->next_seen = (all->next_seen + 1) % SEEN_MULTICASTS;
	return true;
}

static bool holds_any(const struct ph_vps *mine, ph_vp_t lo, ph_vp_t hi)
{
	size_t i = 0;

	while (i < mine->n && mine->r[i].hi <= lo)
		i++;
	return i < mine->n && mine->r[i].lo < hi;
}

int collective_multicast(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int tag, const void *body,
			 size_t len)
{
	struct cast c = { ph->name, ++ph->collectives->counter, tag, body, len };
	struct vrange r = { lo, hi };

	if (!flow_has_room(ph, len) ||
	    (holds_any(&ph->me.vps, lo, hi) && !receive_has_room(ph, tag, len)))
		return PH_EAGAIN;
	send_cast(ph,
		  ph_vps_is_empty(&ph->me.vps) || !ph_vps_is_member(&ph->me.vps, lo) ? lo
										     : ph->name,
		  &(struct ph_vps){ .n = 1, .r = &r }, &c);
	return 0;
}

static void on_multicast(struct phnx *ph, struct reader *r)
{
	struct cast c = { .origin = (ph_vp_t)get64(r), .counter = get64(r), .tag = (int)get32(r) };
	struct ph_vps set;

	if (!collective_get_set(ph, r, &set))
		return;
	c.body = r->p;
	c.len = (size_t)(r->end - r->p);
	ph_vps_t here = ph_vps_create_inter(&set, &ph->me.vps),
		 rest = ph_vps_create_diff(&set, &ph->me.vps);
	if (!here || !rest)
		core_report(ph, PH_ENOMEM, "out of memory: a multicast is lost");
	if (rest)
		/* the others first: they are farther away */
		collective_share(ph, rest, send_cast, &c);
	if (here && here->n && first_copy(ph, &c))
		receive_multicast(ph, here->r[0].lo, c.origin, c.tag, c.body, c.len);
	ph_vps_destroy(here);
	ph_vps_destroy(rest);
	free(set.r);
}

void collective_on_message(struct phnx *ph, const struct rmsg *m)
{
	const unsigned char *body = m->pub.body;
	struct reader r = { body, body + m->pub.len, false };

	on_multicast(ph, &r);
}
