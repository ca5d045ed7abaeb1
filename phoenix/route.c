/* route.c - Destination-Sequenced Distance Vector routing (thesis chapter 3): the table, and what changes it.
 *
 * Each node announces itself with an even sequence number: its virtual nodes, its addresses.  A node that loses the way
 * to another raises the number to odd.  The larger number wins, then the fewer hops.  Who is told of it, and when: tell.c.
 *
 * Where this departs from DSDV: a node that has another way does not adopt "unreachable" from a neighbour that is not on
 * its way.  It asks the destination for a newer sequence number instead (SEQREQ, as the Babel protocol does), so that one
 * broken link in a dense network does not cost everybody their routes.
 */
#include "phoenix/route.h"

enum { SEQREQ_INTERVAL = 50000 };

/* ---- the table ---- */

struct rentry *route_find(struct phnx *ph, ph_vp_t name)
{
	struct routes *t = &ph->routes;

	if (!t->n_slots)
		return NULL;
	for (uint64_t i = mix((uint64_t)name);; i++) {
		struct rentry *e = t->slots[i & (t->n_slots - 1)];
		if (!e || e->name == name)
			return e;
	}
}

static void insert(struct routes *t, struct rentry *e)
{
	uint64_t i = mix((uint64_t)e->name);

	while (t->slots[i & (t->n_slots - 1)] && t->slots[i & (t->n_slots - 1)] != e)
		i++;
	t->slots[i & (t->n_slots - 1)] = e;
}

static void rehash(struct routes *t)
{
	memset(t->slots, 0, t->n_slots * sizeof *t->slots);
	for (unsigned k = 0; k < t->n; k++)
		insert(t, t->list[k]);
}

static bool widen(struct routes *t)
{
	unsigned n_slots = t->n_slots ? 2 * t->n_slots : 32;
	struct rentry **slots = malloc(n_slots * sizeof *slots);

	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	rehash(t);
	return true;
}

static struct rentry *add(struct phnx *ph, ph_vp_t name)
{
	struct routes *t = &ph->routes;
	struct rentry *e = t->n < MAX_NODES_KNOWN ? calloc(1, sizeof *e) : NULL;

	if (!e)
		return NULL;
	if (t->n == t->room) {
		unsigned room = t->room ? 2 * t->room : 16;
		struct rentry **list = realloc(t->list, room * sizeof *list), **dirty;
		t->list = list ? list : t->list;
		dirty = realloc(t->dirty_list, room * sizeof *dirty);
		t->dirty_list = dirty ? dirty : t->dirty_list;
		if (!list || !dirty)
			goto fail;
		t->room = room;
	}
	e->name = name;
	e->seq = 1;
	e->nhops = UNREACHABLE;
	e->lost_us = e->heard_us = phnx_now(ph);
	t->list[t->n++] = e;
	if (t->n * 2 > t->n_slots && !widen(t)) {
		t->n--;
		goto fail;
	}
	insert(t, e);
	return e;
fail:
	free(e);
	return NULL;
}

static void forget(struct phnx *ph, unsigned k)
{
	struct routes *t = &ph->routes;
	struct rentry *e = t->list[k];

	t->list[k] = t->list[--t->n];
	for (unsigned i = 0; e->dirty && i < t->n_dirty; i++)
		if (t->dirty_list[i] == e)
			t->dirty_list[i] = t->dirty_list[--t->n_dirty];
	rehash(t);
	t->claims_dirty = true;
	payload_free(&e->payload);
	free(e->has);
	free(e);
}

/* What the digest counts of an entry: reachable ones, by number. */
static uint64_t weight(const struct rentry *e)
{
	return e->nhops < UNREACHABLE ? mix((uint64_t)e->name ^ mix(e->seq)) : 0;
}

/* ---- changes ---- */

static void sweep_by(struct phnx *ph, uint64_t when)
{
	if (when < ph->routes.sweep_us)
		ph->routes.sweep_us = when;
}

/* After any change of what e or this node assumes. */
static void note_overlap(struct phnx *ph, struct rentry *e)
{
	if (e == ph->routes.self)
		return;
	if (e->nhops == UNREACHABLE || ph_vps_is_exclusive(&e->payload.vps, &ph->me.vps)) {
		e->overlap_us = 0;
		e->reported = false;
	} else if (!e->overlap_us) {
		e->overlap_us = phnx_now(ph);
		sweep_by(ph, e->overlap_us + OVERLAP_GRACE);
	}
}

/* The one place where a route changes. */
static void set_route(struct phnx *ph, struct rentry *e, uint64_t seq, unsigned nhops, struct plink *fwd)
{
	ph->routes.digest -= weight(e);
	if (nhops == UNREACHABLE && e->nhops != UNREACHABLE)
		e->lost_us = phnx_now(ph);
	e->seq = seq;
	e->nhops = nhops;
	e->fwd = fwd;
	e->disputed = false;
	ph->routes.digest += weight(e);
	ph->routes.version++;
	if (nhops == UNREACHABLE) {
		note_overlap(ph, e);
		sweep_by(ph, phnx_now(ph) + ROUTE_EXPIRY);
	}
	has_nobody(ph, e);
}

void route_self_changed(struct phnx *ph)
{
	struct rentry *e = ph->routes.self;

	e->payload = ph->me;		/* the set is the node's own */
	for (unsigned k = 0; k < ph->routes.n; k++)
		note_overlap(ph, ph->routes.list[k]);
	ph->routes.claims_dirty = true;
	set_route(ph, e, e->seq + 2, 0, NULL);
}

void route_clock(struct phnx *ph, uint64_t seen)
{
	if (seen > ph->routes.clock && seen < UINT64_MAX / 2)
		ph->routes.clock = seen;
}

static void ask_for_seq(struct phnx *ph, struct rentry *e, uint64_t seq, unsigned hops)
{
	struct writer w = { 0 };
	uint64_t now = phnx_now(ph);
	struct plink *way = e->direct ? e->direct : e->fwd;

	if (!way || hops > MAX_HOPS || (e->request_us && now < e->request_us + SEQREQ_INTERVAL))
		return;
	e->request_us = now;
	put64(&w, (uint64_t)e->name);
	put64(&w, seq);
	put8(&w, (uint8_t)hops);
	link_send(way, FRAME_SEQREQ, &w, NULL);
	free(w.data);
}

int route_on_seqreq(struct phnx *ph, struct plink *l, struct reader *r)
{
	ph_vp_t name = (ph_vp_t)get64(r);
	uint64_t seq = get64(r);
	unsigned hops = get8(r);
	struct rentry *e = route_find(ph, name);

	if (r->bad || !e || seq >= UINT64_MAX / 2)
		return 0;
	if (e == ph->routes.self) {
		if (e->seq < seq)
			set_route(ph, e, (seq + 1) & ~1ULL, 0, NULL);
	} else if (e->nhops < UNREACHABLE && e->seq >= seq) {
		has_clear(ph, e, l->slot);
	} else {
		ask_for_seq(ph, e, seq, hops + 1);
	}
	return 0;
}

void route_gone(struct phnx *ph, struct rentry *e)
{
	if (e->payload.gone || e == ph->routes.self)
		return;
	payload_free(&e->payload);
	e->payload = (struct payload){ .gone = true };
	ph->routes.claims_dirty = true;
	set_route(ph, e, e->seq | 1, UNREACHABLE, NULL);
	flow_peer_gone(ph, e->name);
	migrate_peer_gone(ph, e->name);
	if (ph->detector.fn)
		ph->detector.fn(ph->detector.arg, e->name, NULL);
}

/* A node says that `e` is unreachable from it. */
static void on_lost(struct phnx *ph, struct rentry *e, uint64_t seq, const struct promise *p)
{
	struct plink *l = p->sender;

	e->disputed = e->nhops < UNREACHABLE;
	if (seq < e->seq) {
		if (e->nhops < UNREACHABLE)	/* we know better: tell it */
			has_clear(ph, e, l->slot);
	} else if (seq == e->seq) {
		has_promised(e, p);
	} else if (e->direct && e->direct != l) {
		if (e->fwd == l)
			set_route(ph, e, e->seq, 1, e->direct);
		ask_for_seq(ph, e, seq + 1, 1);
	} else if (e->fwd == l || e->nhops == UNREACHABLE) {
		set_route(ph, e, seq, UNREACHABLE, NULL);
		has_promised(e, p);
	} else {
		ask_for_seq(ph, e, seq + 1, 1);
	}
}

static void on_reachable(struct phnx *ph, struct rentry *e, uint64_t seq, unsigned nhops, struct payload *payload,
			 const struct promise *p)
{
	unsigned hops = nhops + 1;

	if (seq > e->seq || (seq == e->seq && hops < e->nhops)) {
		if (seq != e->seq || e->nhops == UNREACHABLE) {
			payload_free(&e->payload);
			e->payload = *payload;
			*payload = (struct payload){ 0 };
			ph->routes.claims_dirty = true;
			route_clock(ph, e->payload.stamp);
		}
		bool was_lost = e->nhops == UNREACHABLE && e->learned;
		set_route(ph, e, seq, hops, p->sender);
		if (was_lost && !e->direct)
			contact_alive(ph, e->name);
		note_overlap(ph, e);
		has_promised(e, p);
		e->heard_us = phnx_now(ph);
		contact_learn(ph, e);
	} else if (seq == e->seq && nhops <= e->nhops + 1) {
		has_promised(e, p);
	}
}

/* One entry of an update. */
static void on_entry(struct phnx *ph, struct reader *r, const struct promise *p)
{
	ph_vp_t name = (ph_vp_t)get64(r);
	uint64_t seq = get_var(r);
	unsigned nhops = get8(r);
	struct payload payload;

	get_payload(ph, r, &payload);
	if (r->bad || name < ph->upper || seq >= UINT64_MAX / 2) {
		r->bad = true;
		payload_free(&payload);
		return;
	}
	struct rentry *e = route_find(ph, name);
	if (!e && (nhops < UNREACHABLE || payload.gone))
		e = add(ph, name);
	if (!e) {
		/* nothing known and nothing to learn */
	} else if (e == ph->routes.self) {
		if (payload.gone && !e->reported) {
			e->reported = true;
			phnx_report(ph, PH_EGONE, "the others took this node for dead, and go on without it");
		}
		if (seq > e->seq && !payload.gone && !ph->closing)
			set_route(ph, e, (seq + 2) & ~1ULL, 0, NULL);
	} else if (payload.gone) {
		bool disputed = e->disputed;	/* then the node's own connections have broken: who knows whom it told */
		route_gone(ph, e);
		if (!disputed)
			has_promised(e, p);
	} else if (e->payload.gone) {
		has_clear(ph, e, p->sender->slot);	/* whoever was to tell it has not */
	} else if (nhops >= MAX_HOPS) {
		on_lost(ph, e, seq | 1, p);
	} else {
		on_reachable(ph, e, seq, nhops, &payload, p);
	}
	payload_free(&payload);
}

int route_on_update(struct phnx *ph, struct plink *l, struct reader *r)
{
	struct promise p;

	get_promise(ph, l, r, &p);
	uint64_t n = get_var(r);
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		on_entry(ph, r, &p);
		if (ph->routes.algorithm == ROUTING_NAIVE)
			route_tell(ph);
	}
	return 0;
}

void route_link_up(struct phnx *ph, struct plink *l)
{
	struct rentry *e = route_find(ph, l->peer);

	if (!e)
		e = add(ph, l->peer);
	if (e && !e->direct) {
		e->direct = l;
		ph->routes.neighbours += mix((uint64_t)l->peer);
	}
	ph->routes.version++;
	tell_link_up(ph, l);
}

void route_link_down(struct phnx *ph, struct plink *l)
{
	struct plink *other = ph->links;

	while (other && (other->peer != l->peer || other->state != LINK_UP))
		other = other->next;
	for (unsigned k = 0; k < ph->routes.n; k++) {
		struct rentry *e = ph->routes.list[k];
		has_not(e, l->slot);
		if (e->direct == l) {
			e->direct = other;
			if (!other)
				ph->routes.neighbours -= mix((uint64_t)l->peer);
			if (!other && e->fwd != l)	/* others were told that this node hears of it directly */
				has_nobody(ph, ph->routes.self);
		}
		if (e->fwd != l)
			continue;
		if (other)
			e->fwd = other;
		else
			set_route(ph, e, e->seq | 1, UNREACHABLE, NULL);
	}
	ph->routes.version++;
	tell_link_down(ph, l);
	sweep_by(ph, phnx_now(ph) + ROUTE_EXPIRY);
}

void route_resend_all(struct phnx *ph, struct plink *l)
{
	for (unsigned k = 0; k < ph->routes.n; k++)
		has_clear(ph, ph->routes.list[k], l->slot);
	l->named_words = 0;
}

/* ---- timers ---- */

/* Two nodes that assume the same virtual node for longer than news take to travel: each reports it. */
static void report_overlap(struct phnx *ph, struct rentry *e)
{
	ph_vps_t both = ph_vps_create_inter(&e->payload.vps, &ph->me.vps);

	e->reported = true;
	phnx_report(ph, PH_EOVERLAP, "node %lld assumes virtual nodes that this node assumes too, such as %lld", e->name,
		    ph_vps_get_min_elem(both));
	ph_vps_destroy(both);
}

/* Looks for entries whose time is up; returns when to look again. */
static uint64_t sweep(struct phnx *ph, uint64_t now)
{
	struct routes *t = &ph->routes;
	uint64_t again = UINT64_MAX;

	for (unsigned k = 0; k < t->n; k++) {
		struct rentry *e = t->list[k];
		if (e->overlap_us && !e->reported) {
			if (now >= e->overlap_us + OVERLAP_GRACE)
				report_overlap(ph, e);
			else
				again = e->overlap_us + OVERLAP_GRACE < again ? e->overlap_us + OVERLAP_GRACE : again;
		}
		if (e == t->self || e->nhops < UNREACHABLE || e->direct)
			continue;
		if (now >= e->lost_us + ROUTE_EXPIRY)
			forget(ph, k--);
		else
			again = e->lost_us + ROUTE_EXPIRY < again ? e->lost_us + ROUTE_EXPIRY : again;
	}
	return again;
}

void route_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct routes *t = &ph->routes;

	if (now >= t->sweep_us)
		t->sweep_us = sweep(ph, now);
	*next = t->sweep_us < *next ? t->sweep_us : *next;
	tell_tick(ph, now, next);
}

struct plink *route_way(struct phnx *ph, ph_vp_t to)
{
	struct rentry *e = route_find(ph, to);

	return !e ? NULL : e->direct ? e->direct : e->fwd;
}

struct outframe *route_begin(struct plink *l, ph_vp_t to, enum frame_type type, struct writer *w)
{
	if (!l || l->state != LINK_UP)
		return NULL;
	if (type == FRAME_DATA && l->out_bytes > MAX_LINK_QUEUE) {
		l->ph->flows.dropped++;
		return NULL;
	}
	struct outframe *f = link_frame(l, w);
	if (!f)
		return NULL;
	unsigned char *p = lay64(w->data, (uint64_t)to);
	p = lay64(p, (uint64_t)l->ph->name);
	lay8(p, 0);
	w->len = ROUTED_HEAD;
	return f;
}

bool route_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, const struct writer *head, struct pbuf *body)
{
	struct plink *l = route_way(ph, to);
	struct writer w;
	struct outframe *f = head->len <= FRAME_HEAD_MAX - FRAME_HEAD - ROUTED_HEAD ? route_begin(l, to, type, &w) : NULL;

	if (!f)
		return false;
	put_bytes(&w, head->data, head->len);
	link_commit(l, f, type, &w, body);
	return true;
}

int route_init(struct phnx *ph)
{
	ph->routes.self = add(ph, ph->name);
	if (!ph->routes.self)
		return -1;
	ph->routes.self->nhops = 0;
	ph->routes.self->seq = 2;
	ph->routes.digest = weight(ph->routes.self);
	return 0;
}

void route_free(struct phnx *ph)
{
	struct routes *t = &ph->routes;

	for (unsigned k = 0; k < t->n; k++) {
		if (t->list[k] != t->self)
			payload_free(&t->list[k]->payload);
		free(t->list[k]->has);
		free(t->list[k]);
	}
	free(t->list);
	free(t->dirty_list);
	free(t->slots);
	free(t->claims);
}

