/* collective.c - one message to all who assume a part of a range; and values combined over such a range.
 *
 * Multicast: the PPoPP paper's multicasting idiom (section 4.3.1) as a primitive.  A message for [lo, hi) goes to the
 * virtual node lo.  Its holder keeps what it assumes; the rest it cuts in two where, as far as it knows, one node's
 * interval ends, and sends each half to its first virtual node.  A wrong cut costs a message, never a node.
 *
 * Reduction: each node sends its value, with the number of virtual nodes that it speaks for, to the holder of lo.  When
 * these add up to the whole range, that node combines the values and multicasts the result.  Counting virtual nodes
 * makes it independent of how many nodes there are.
 */
#include "phoenix/core.h"

/* ---- multicast ---- */

struct cast {
	ph_vp_t origin, lo, hi;
	uint64_t counter;
	int tag;
	bool result;			/* of a reduction, for the library itself */
	const unsigned char *body;
	size_t len;
};

static int send_cast(struct phnx *ph, const struct cast *c, ph_vp_t lo, ph_vp_t hi)
{
	struct writer w = { 0 };

	put64(&w, (uint64_t)c->origin);
	put64(&w, c->counter);
	put64(&w, (uint64_t)lo);
	put64(&w, (uint64_t)hi);
	put32(&w, (uint32_t)c->tag);
	put8(&w, c->result);
	put_bytes(&w, c->body, c->len);
	struct pbuf *b = w.bad ? NULL : pbuf_new(w.data, w.len);
	int error = b ? flow_send(ph, lo, ph->name, b, TAG_MULTICAST, DATA_INTERNAL, 0) : PH_ENOMEM;
	pbuf_put(b);
	free(w.data);
	return error;
}

/* The border of somebody's interval nearest to the middle of [lo, hi), or 0 if there is none inside. */
static ph_vp_t cut(struct phnx *ph, ph_vp_t lo, ph_vp_t hi)
{
	ph_vp_t middle = lo + (hi - lo) / 2, best = 0;

	route_holder(ph, lo);		/* brings the claims up to date */
	for (unsigned i = 0; i < ph->routes.n_claims; i++) {
		ph_vp_t at = ph->routes.claims[i].lo;
		ph_vp_t distance = at < middle ? middle - at : at - middle;
		if (at > lo && at < hi && (!best || distance < (best < middle ? middle - best : best - middle)))
			best = at;
	}
	return best;
}

static void send_halves(struct phnx *ph, const struct cast *c, ph_vp_t lo, ph_vp_t hi)
{
	ph_vp_t at = cut(ph, lo, hi);

	send_cast(ph, c, lo, at ? at : hi);	/* without a border in it, it is one node's, or nobody's yet */
	if (at)
		send_cast(ph, c, at, hi);
}

/* Whether this is the first copy here. */
static bool first_copy(struct phnx *ph, const struct cast *c)
{
	struct collectives *all = &ph->collectives;

	for (unsigned i = 0; i < SEEN_MULTICASTS; i++)
		if (all->seen[i].origin == c->origin && all->seen[i].counter == c->counter)
			return false;
	all->seen[all->next_seen].origin = c->origin;
	all->seen[all->next_seen].counter = c->counter;
	all->next_seen = (all->next_seen + 1) % SEEN_MULTICASTS;
	return true;
}

int multicast_send(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int tag, bool result, const void *body, size_t len)
{
	struct cast c = { ph->name, lo, hi, ++ph->collectives.counter, tag, result, body, len };

	return send_cast(ph, &c, lo, hi);
}

static void on_result(struct phnx *ph, const struct cast *c);

static void on_multicast(struct phnx *ph, struct reader *r)
{
	struct cast c = { .origin = (ph_vp_t)get64(r), .counter = get64(r) };

	c.lo = (ph_vp_t)get64(r);
	c.hi = (ph_vp_t)get64(r);
	c.tag = (int)get32(r);
	c.result = get8(r);
	c.body = r->p;
	c.len = (size_t)(r->end - r->p);
	if (r->bad || c.lo < ph->lower || c.hi > ph->upper || c.hi <= c.lo)
		return;
	ph_vps_t range = ph_vps_create_range(c.lo, c.hi);
	ph_vps_t here = ph_vps_create_inter(range, &ph->me.vps), rest = ph_vps_create_diff(range, &ph->me.vps);
	for (size_t i = 0; rest && i < rest->n; i++)	/* first the others: they are farther */
		send_halves(ph, &c, rest->r[i].lo, rest->r[i].hi);
	if (here && here->n && first_copy(ph, &c)) {
		if (c.result)
			on_result(ph, &c);
		else
			deliver_multicast(ph, here->r[0].lo, c.origin, c.tag, c.body, c.len);
	}
	ph_vps_destroy(range);
	ph_vps_destroy(here);
	ph_vps_destroy(rest);
}

/* ---- reduction ---- */

static struct reduction *find(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int id, bool create)
{
	struct collectives *all = &ph->collectives;
	struct reduction *r = all->list;

	while (r && (r->lo != lo || r->hi != hi || r->id != id))
		r = r->next;
	if (r || !create || all->n == MAX_REDUCTIONS || !(r = calloc(1, sizeof *r)))
		return r;
	*r = (struct reduction){ .next = all->list, .lo = lo, .hi = hi, .id = id };
	all->list = r;
	all->n++;
	return r;
}

static void drop_values(struct reduction *r)
{
	while (r->values) {
		struct value *v = r->values;
		r->values = v->next;
		free(v);
	}
}

void reduction_end(struct phnx *ph, struct reduction *r)
{
	struct reduction **at = &ph->collectives.list;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	ph->collectives.n--;
	drop_values(r);
	free(r);
}

static bool add_value(struct reduction *r, const void *data, size_t len)
{
	struct value *v = malloc(sizeof *v + len);

	if (!v)
		return false;
	v->next = r->values;
	v->len = len;
	if (len)
		memcpy(v->data, data, len);
	r->values = v;
	return true;
}

static void on_value(struct phnx *ph, struct reader *r)
{
	ph_vp_t lo = (ph_vp_t)get64(r), hi = (ph_vp_t)get64(r);
	int id = (int)get32(r);
	uint64_t weight = get64(r);
	struct reduction *one = r->bad || hi <= lo ? NULL : find(ph, lo, hi, id, true);

	if (one && !one->done && weight <= (uint64_t)(hi - lo) - one->weight && add_value(one, r->p, (size_t)(r->end - r->p)))
		one->weight += weight;
	ph->ops->arrived(ph->ctx);
}

static void on_result(struct phnx *ph, const struct cast *c)
{
	struct reader r = { c->body, c->body + c->len, false };
	ph_vp_t lo = (ph_vp_t)get64(&r), hi = (ph_vp_t)get64(&r);
	struct reduction *one = r.bad ? NULL : find(ph, lo, hi, c->tag, false);

	if (!one || !one->calling || one->done)
		return;
	drop_values(one);
	one->done = add_value(one, r.p, (size_t)(r.end - r.p));
	ph->ops->arrived(ph->ctx);
}

void collective_on_message(struct phnx *ph, const struct rmsg *m)
{
	const unsigned char *body = m->pub.body;
	struct reader r = { body, body + m->pub.len, false };

	if (m->pub.tag == TAG_MULTICAST)
		on_multicast(ph, &r);
	else if (m->pub.tag == TAG_VALUE)
		on_value(ph, &r);
}

struct reduction *reduction_begin(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int id, const void *value, size_t len)
{
	ph_vps_t range = ph_vps_create_range(lo, hi), here = ph_vps_create_inter(range, &ph->me.vps);
	struct reduction *r = here && here->n ? find(ph, lo, hi, id, true) : NULL;
	uint64_t weight = 0;
	struct writer w = { 0 };

	for (size_t i = 0; here && i < here->n; i++)
		weight += (uint64_t)(here->r[i].hi - here->r[i].lo);
	ph_vps_destroy(range);
	ph_vps_destroy(here);
	if (!r || r->calling)
		return NULL;
	r->calling = true;
	put64(&w, (uint64_t)lo);
	put64(&w, (uint64_t)hi);
	put32(&w, (uint32_t)id);
	put64(&w, weight);
	put_bytes(&w, value, len);
	struct pbuf *b = w.bad ? NULL : pbuf_new(w.data, w.len);
	if (!b || flow_send(ph, lo, ph->name, b, TAG_VALUE, DATA_INTERNAL, 0)) {
		reduction_end(ph, r);
		r = NULL;
	}
	pbuf_put(b);
	free(w.data);
	return r;
}

/* At the holder of lo, when all have spoken: combine, and tell all, this node too. */
static int combine_all(struct phnx *ph, struct reduction *r, void *value, size_t len, ph_combine_fn combine)
{
	struct writer w = { 0 };
	bool first = true;

	for (struct value *v = r->values; v; v = v->next, first = false) {
		if (v->len != len)
			return PH_EINVAL;
		if (first && len)
			memcpy(value, v->data, len);
		else if (len && combine)
			combine(value, v->data, len);
	}
	put64(&w, (uint64_t)r->lo);
	put64(&w, (uint64_t)r->hi);
	put_bytes(&w, value, len);
	r->weight = 0;		/* combined once */
	int error = w.bad ? PH_ENOMEM : multicast_send(ph, r->lo, r->hi, r->id, true, w.data, w.len);
	free(w.data);
	return error;
}

int reduction_poll(struct phnx *ph, struct reduction *r, void *value, size_t len, ph_combine_fn combine)
{
	int error = 0;

	if (!r->done && r->weight == (uint64_t)(r->hi - r->lo))
		error = combine_all(ph, r, value, len, combine);	/* its own copy of the result may be here already */
	if (!error && !r->done)
		return PH_EAGAIN;
	if (!error && r->values->len != len)
		error = PH_EINVAL;
	if (!error && len)
		memcpy(value, r->values->data, len);
	reduction_end(ph, r);
	return error;
}

void collective_free(struct phnx *ph)
{
	while (ph->collectives.list)
		reduction_end(ph, ph->collectives.list);
}
