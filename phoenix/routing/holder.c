/* holder.c - who assumes a virtual node: the claims of all nodes of the routing table, by lower
 * bound. */
#include "phoenix/routing/routing_private.h"

static int by_lower(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void rebuild_claims(struct phnx *ph)
{
	struct routes *t = ph->routes;

	t->claims_dirty = false;
	t->n_claims = 0;
	for (unsigned k = 0; k < t->n; k++) {
		const struct ph_vps *s = &t->list[k]->payload.vps;
		if (t->n_claims + s->n > t->room_claims) {
			unsigned room = 2 * t->room_claims + (unsigned)s->n + 16;
			struct claim *c = realloc(t->claims, room * sizeof *c);
			if (!c)
				break;
			t->claims = c;
			t->room_claims = room;
		}
		for (size_t i = 0; i < s->n; i++)
			t->claims[t->n_claims++] =
				(struct claim){ s->r[i].lo, s->r[i].hi, 0, t->list[k] };
	}
	if (t->n_claims)
		qsort(t->claims, t->n_claims, sizeof *t->claims, by_lower);
	ph_vp_t max = 0;
	for (unsigned i = 0; i < t->n_claims; i++) {
		max = t->claims[i].hi > max ? t->claims[i].hi : max;
		t->claims[i].max_hi = max;
	}
}

ph_vp_t holder_of(struct phnx *ph, ph_vp_t vp)
{
	struct routes *t = ph->routes;
	struct rentry *best = NULL;

	if (vp == ph->name || ph_vps_is_member(&ph->me.vps, vp))
		return ph->name;
	if (vp >= ph->upper) {
		best = route_find(ph, vp);
		return best && !best->payload.gone ? vp : 0;
	}
	if (t->claims_dirty)
		rebuild_claims(ph);
	unsigned low = 0, high = t->n_claims;
	while (low < high) {		/* low: how many claims begin at or below vp */
		unsigned mid = (low + high) / 2;
		if (t->claims[mid].lo <= vp)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low > 0 && t->claims[low - 1].max_hi > vp; low--) {
		struct claim *c = t->claims + low - 1;
		if (c->hi > vp && c->by != t->self &&
		    (!best || c->by->payload.stamp > best->payload.stamp))
			best = c->by;
	}
	return best ? best->name : 0;
}
