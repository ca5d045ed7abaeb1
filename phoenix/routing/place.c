/* place.c - which neighbours are of this node's place: a subnet, as a rule.
 *
 * A neighbour is of this node's place if it has at least half of this node's neighbours; then so
 * are the nodes that it names.  A neighbour that has named only some is of this place, unless
 * hardly any of these are this node's neighbours.  One that has named none yet is taken for one of
 * this place.
 *
 * Only the order and the time of updates depend on this (when.h): a wrong judgement costs messages,
 * and loses none.
 */
#include "phoenix/routing/routing_private.h"

/* ---- what the neighbours have named ---- */

/* It is no question any more whether l's peer is elsewhere. */
static void settle(struct plink *l)
{
	struct places *t = &l->ph->routes->places;

	t->n_unsure -= l->neighbour->unsure;
	l->neighbour->unsure = false;
	t->away[l->slot / 64] &= ~(1ULL << l->slot % 64);
}

static bool is_mentioned_by(const struct plink *by, const struct plink *l)
{
	bool any = place_has_named(by, l->slot);

	for (unsigned i = 0; i < by->neighbour->n_some; i++)
		any |= by->neighbour->some[i] == l->peer;
	return any;
}

/* Returns whether no neighbour of this place has named l's peer. */
static bool is_stranger(const struct plink *l)
{
	for (const struct plink *k = link_first(l->ph); k; k = k->next)
		if (k != l && k->state == LINK_UP && place_is_here(l->ph->routes, k->slot) &&
		    is_mentioned_by(k, l))
			return false;
	return true;
}

/* Judges a neighbour that has named only some of its neighbours.  If half of these are this
 * node's, it is of this place.  If it had hardly any neighbours yet, it is of another place if
 * nobody of this place names it and there are other places at all. */
static void judge(struct plink *l)
{
	unsigned shared = 0, others = 0;

	for (unsigned i = 0; i < l->neighbour->n_some; i++) {
		others += l->neighbour->some[i] != l->ph->name;
		shared += route_link_to(l->ph, l->neighbour->some[i]) != NULL;
	}
	bool hardly_any = l->neighbour->n_some < SOME_NAMES && l->ph->contacts->failed;
	if (2 * shared >= others && !(hardly_any && is_stranger(l)))
		settle(l);
}

void place_judge(struct phnx *ph)
{
	for (struct plink *l = link_first(ph); l && ph->routes->places.n_unsure; l = l->next)
		if (l->neighbour->unsure)
			judge(l);
}

static bool is_of_here(const struct phnx *ph, const struct plink *l)
{
	unsigned shared = 0;

	for (unsigned i = 0; i < l->neighbour->named_words; i++)
		shared +=
			(unsigned)__builtin_popcountll(ph->routes->up[i] & l->neighbour->named[i]);
	/* links that are being made count too: the first to tell may be far away */
	return 2 * shared >= link_count(ph);
}

bool place_keep(struct plink *l, const struct promise *p)
{
	uint64_t *bits = realloc(l->neighbour->named, p->words * sizeof *bits);

	l->neighbour->named_words = 0;
	if (!bits)
		return false;		/* then an entry is sent once too often */
	memcpy(bits, p->bits, p->words * sizeof *bits);
	l->neighbour->named = bits;
	l->neighbour->named_words = p->words;
	bool of_here = is_of_here(l->ph, l);
	for (unsigned i = 0; of_here && i < p->words; i++)
		l->ph->routes->places.here[i] |= bits[i];
	return !of_here;
}

void place_get_some(struct plink *l, struct reader *r)
{
	struct places *t = &l->ph->routes->places;
	unsigned n = get8(r);

	settle(l);
	r->bad |= n > SOME_NAMES;
	for (unsigned i = 0; i < n && !r->bad; i++)
		l->neighbour->some[i] = (ph_vp_t)get64(r);
	if (r->bad || l->neighbour->told)
		return;
	l->neighbour->n_some = n;
	l->neighbour->unsure = true;
	t->n_unsure++;
	t->away[l->slot / 64] |= 1ULL << l->slot % 64;
	judge(l);
}

void place_named(struct plink *l)
{
	struct places *t = &l->ph->routes->places;

	if (!l->neighbour->told) {
		t->told_us = core_now(l->ph);
		t->silent[l->slot / 64] &= ~(1ULL << l->slot % 64);
	}
	l->neighbour->told = true;
	settle(l);
}

/* ---- what follows for updates ---- */

bool place_waits(const struct routes *t)
{
	uint64_t some = 0;

	for (unsigned i = 0; i < t->up_words; i++)
		some |= t->places.silent[i] & place_here_word(t, i);
	return some;
}

bool place_any_away(const struct routes *t)
{
	for (unsigned i = 0; i < t->up_words; i++)
		if (t->up[i] & ~place_here_word(t, i))
			return true;
	return false;
}

/* ---- links come and go ---- */

void place_link_up(struct plink *l)
{
	l->ph->routes->places.silent[l->slot / 64] |= 1ULL << l->slot % 64;
}

void place_link_down(struct plink *l)
{
	struct places *t = &l->ph->routes->places;
	uint64_t others = ~(1ULL << l->slot % 64);

	for (struct plink *k = link_first(l->ph); k; k = k->next)
		if (l->slot / 64 < k->neighbour->named_words)
			k->neighbour->named[l->slot / 64] &= others;
	t->silent[l->slot / 64] &= others;
	t->here[l->slot / 64] &= others;
	settle(l);
}

void place_forget(struct plink *l)
{
	free(l->neighbour->named);
}
