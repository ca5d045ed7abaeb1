/* routes.c - Destination-Sequenced Distance Vector routing (thesis chapter 3): the table and what
 * changes it.
 *
 * Each node announces itself (its virtual nodes, its addresses) with an even sequence number.  A
 * node that loses the way to another raises that number to odd.  The larger number wins; of equal
 * ones, the fewer hops.  Who is told of changes, and when: tell.c.
 *
 * One thing differs from DSDV.  A node that has another way does not adopt "unreachable" from a
 * neighbour that is not on its way.  It requests a newer sequence number from the destination
 * instead (SEQREQ, as in the Babel protocol), so that one broken link in a dense network does not
 * cost all nodes their routes.
 */
#include "phoenix/routing/routing_private.h"

enum { SEQREQ_INTERVAL = 50000 };

/* ---- the table ---- */

struct rentry *route_find(struct phnx *ph, ph_vp_t name)
{
	struct routes *t = ph->routes;

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
	struct routes *t = ph->routes;
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
	e->lost_us = e->heard_us = core_now(ph);
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
	struct routes *t = ph->routes;
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

/* Returns what an entry adds to the digest: only reachable entries count. */
static uint64_t weight(const struct rentry *e)
{
	return e->nhops < UNREACHABLE ? mix((uint64_t)e->name ^ mix(e->seq)) : 0;
}

/* ---- changes ---- */

static void sweep_by(struct phnx *ph, uint64_t when)
{
	if (when < ph->routes->sweep_us)
		ph->routes->sweep_us = when;
}

/* Called after each change of what e's node or this node assumes. */
static void note_overlap(struct phnx *ph, struct rentry *e)
{
	if (e == ph->routes->self)
		return;
	if (e->nhops == UNREACHABLE || ph_vps_is_exclusive(&e->payload.vps, &ph->me.vps)) {
		e->overlap_us = 0;
		e->reported = false;
	} else if (!e->overlap_us) {
		e->overlap_us = core_now(ph);
		sweep_by(ph, e->overlap_us + OVERLAP_GRACE);
	}
}

/* Changes a route; nothing else does. */
static void set_route(struct phnx *ph, struct rentry *e, uint64_t seq, unsigned nhops,
		      struct plink *fwd)
{
	ph->routes->digest -= weight(e);
	if (nhops == UNREACHABLE && e->nhops != UNREACHABLE)
		e->lost_us = core_now(ph);
	e->seq = seq;
	e->nhops = nhops;
	e->fwd = fwd;
	e->disputed = false;
	ph->routes->digest += weight(e);
	ph->ways++;
	if (nhops == UNREACHABLE) {
		note_overlap(ph, e);
		sweep_by(ph, core_now(ph) + ROUTE_EXPIRY);
	}
	tell_nobody_has(ph, e);
}

void route_self_changed(struct phnx *ph)
{
	struct rentry *e = ph->routes->self;

	e->payload = ph->me;		/* the set stays ph->me's */
	for (unsigned k = 0; k < ph->routes->n; k++)
		note_overlap(ph, ph->routes->list[k]);
	ph->routes->claims_dirty = true;
	set_route(ph, e, e->seq + 2, 0, NULL);
}

uint64_t route_clock(const struct phnx *ph)
{
	return ph->routes->clock;
}

uint64_t route_next_stamp(struct phnx *ph)
{
	return ++ph->routes->clock;
}

void route_saw_stamp(struct phnx *ph, uint64_t seen)
{
	if (seen > ph->routes->clock && seen < UINT64_MAX / 2)
		ph->routes->clock = seen;
}

static void ask_for_seq(struct phnx *ph, struct rentry *e, uint64_t seq, unsigned hops)
{
	struct writer w = { 0 };
	uint64_t now = core_now(ph);
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
	if (e == ph->routes->self) {
		if (e->seq < seq)
			set_route(ph, e, (seq + 1) & ~1ULL, 0, NULL);
	} else if (e->nhops < UNREACHABLE && e->seq >= seq) {
		tell_lacks(ph, e, l->slot);
	} else {
		ask_for_seq(ph, e, seq, hops + 1);
	}
	return 0;
}

void route_gone(struct phnx *ph, struct rentry *e)
{
	if (e->payload.gone || e == ph->routes->self)
		return;
	payload_free(&e->payload);
	e->payload = (struct payload){ .gone = true };
	ph->routes->claims_dirty = true;
	set_route(ph, e, e->seq | 1, UNREACHABLE, NULL);
	node_peer_gone(ph, e->name);
}

/* A neighbour says that it has lost the way to e. */
static void on_lost(struct phnx *ph, struct rentry *e, uint64_t seq, const struct promise *p)
{
	struct plink *l = p->sender;

	e->disputed = e->nhops < UNREACHABLE;
	if (seq < e->seq) {
		/* this node knows a newer number: tell the neighbour */
		if (e->nhops < UNREACHABLE)
			tell_lacks(ph, e, l->slot);
	} else if (seq == e->seq) {
		tell_promised(e, p);
	} else if (e->direct && e->direct != l) {
		if (e->fwd == l)
			set_route(ph, e, e->seq, 1, e->direct);
		ask_for_seq(ph, e, seq + 1, 1);
	} else if (e->fwd == l || e->nhops == UNREACHABLE) {
		set_route(ph, e, seq, UNREACHABLE, NULL);
		tell_promised(e, p);
	} else {
		ask_for_seq(ph, e, seq + 1, 1);
	}
}

static void on_reachable(struct phnx *ph, struct rentry *e, uint64_t seq, unsigned nhops,
			 struct payload *payload, const struct promise *p)
{
	unsigned hops = nhops + 1;

	if (seq > e->seq || (seq == e->seq && hops < e->nhops)) {
		if (seq != e->seq || e->nhops == UNREACHABLE) {
			payload_free(&e->payload);
			e->payload = *payload;
			*payload = (struct payload){ 0 };
			ph->routes->claims_dirty = true;
			route_saw_stamp(ph, e->payload.stamp);
		}
		bool was_lost = e->nhops == UNREACHABLE && e->learned;
		set_route(ph, e, seq, hops, p->sender);
		if (was_lost && !e->direct)
			contact_alive(ph, e->name);
		note_overlap(ph, e);
		tell_promised(e, p);
		e->heard_us = core_now(ph);
		contact_learn(ph, e);
	} else if (seq == e->seq && nhops <= e->nhops + 1) {
		tell_promised(e, p);
	}
}

/* Handles one entry of an update. */
static void on_entry(struct phnx *ph, struct reader *r, const struct promise *p)
{
	ph_vp_t name = (ph_vp_t)get64(r);
	uint64_t seq = get_var(r);
	unsigned nhops = get8(r);
	struct payload payload;

	payload_get(ph, r, &payload);
	if (r->bad || name < ph->upper || seq >= UINT64_MAX / 2) {
		r->bad = true;
		payload_free(&payload);
		return;
	}
	struct rentry *e = route_find(ph, name);
	if (!e && (nhops < UNREACHABLE || payload.gone))
		e = add(ph, name);
	if (!e) {
		/* nothing is known, and there is nothing to learn */
	} else if (e == ph->routes->self) {
		if (payload.gone && !e->reported) {
			e->reported = true;
			core_report(ph, PH_EGONE,
				    "the other nodes have declared this node gone");
		}
		if (seq > e->seq && !payload.gone && !ph->closing)
			set_route(ph, e, (seq + 2) & ~1ULL, 0, NULL);
	} else if (payload.gone) {
		/* its own connections have broken: nobody can know whom it told */
		bool disputed = e->disputed;
		route_gone(ph, e);
		if (!disputed)
			tell_promised(e, p);
	} else if (e->payload.gone) {
		/* the node that had promised to tell the sender has not */
		tell_lacks(ph, e, p->sender->slot);
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

	tell_get_promise(ph, l, r, &p);
	uint64_t n = get_var(r);
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		on_entry(ph, r, &p);
		if (ph->routes->algorithm == ROUTING_NAIVE)
			tell_now(ph);
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
		ph->routes->neighbours += mix((uint64_t)l->peer);
	}
	ph->ways++;
	tell_link_up(ph, l);
}

void route_link_down(struct phnx *ph, struct plink *l)
{
	struct plink *other = link_first(ph);

	while (other && (other->peer != l->peer || other->state != LINK_UP))
		other = other->next;
	for (unsigned k = 0; k < ph->routes->n; k++) {
		struct rentry *e = ph->routes->list[k];
		tell_has_not(e, l->slot);
		if (e->direct == l) {
			e->direct = other;
			if (!other)
				ph->routes->neighbours -= mix((uint64_t)l->peer);
			/* others were promised that they hear of l's peer from this node */
			if (!other && e->fwd != l)
				tell_nobody_has(ph, ph->routes->self);
		}
		if (e->fwd != l)
			continue;
		if (other)
			e->fwd = other;
		else
			set_route(ph, e, e->seq | 1, UNREACHABLE, NULL);
	}
	ph->ways++;
	tell_link_down(ph, l);
	sweep_by(ph, core_now(ph) + ROUTE_EXPIRY);
}

void route_resend_all(struct phnx *ph, struct plink *l)
{
	for (unsigned k = 0; k < ph->routes->n; k++)
		tell_lacks(ph, ph->routes->list[k], l->slot);
	l->neighbour->named_words = 0;
}

/* ---- timers ---- */

/* Reports that another node has assumed a virtual node of this one for longer than routing
 * messages travel. */
static void report_overlap(struct phnx *ph, struct rentry *e)
{
	ph_vps_t both = ph_vps_create_inter(&e->payload.vps, &ph->me.vps);

	e->reported = true;
	core_report(ph, PH_EOVERLAP,
		    "node %lld and this node assume the same virtual nodes, such as %lld",
		    e->name, ph_vps_get_min_elem(both));
	ph_vps_destroy(both);
}

/* Forgets and reports entries whose time is up.  Returns when to do so again. */
static uint64_t sweep(struct phnx *ph, uint64_t now)
{
	struct routes *t = ph->routes;
	uint64_t again = UINT64_MAX;

	for (unsigned k = 0; k < t->n; k++) {
		struct rentry *e = t->list[k];
		if (e->overlap_us && !e->reported) {
			if (now >= e->overlap_us + OVERLAP_GRACE)
				report_overlap(ph, e);
			else
				again = e->overlap_us + OVERLAP_GRACE < again
						? e->overlap_us + OVERLAP_GRACE
						: again;
		}
		if (e == t->self || e->nhops < UNREACHABLE || e->direct)
			continue;
		if (now >= e->lost_us + ROUTE_EXPIRY)
			forget(ph, k--);
		else
			again = e->lost_us + ROUTE_EXPIRY < again ? e->lost_us + ROUTE_EXPIRY
								  : again;
	}
	return again;
}

void route_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct routes *t = ph->routes;

	if (now >= t->sweep_us)
		t->sweep_us = sweep(ph, now);
	*next = t->sweep_us < *next ? t->sweep_us : *next;
	tell_tick(ph, now, next);
}

/* ---- what the layers above ask ---- */

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
		l->ph->routes->dropped++;
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

bool route_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, const struct writer *head,
		 struct pbuf *body)
{
	struct plink *l = route_way(ph, to);
	struct writer w;
	struct outframe *f = head->len <= FRAME_HEAD_MAX - FRAME_HEAD - ROUTED_HEAD
				     ? route_begin(l, to, type, &w)
				     : NULL;

	if (!f)
		return false;
	put_bytes(&w, head->data, head->len);
	link_commit(l, f, type, &w, body);
	return true;
}

bool route_heard(struct phnx *ph, ph_vp_t name)
{
	struct rentry *e = route_find(ph, name);

	if (e && e->payload.gone)
		return false;
	if (e)
		e->heard_us = core_now(ph);
	return true;
}

bool route_is_gone(struct phnx *ph, ph_vp_t name)
{
	const struct rentry *e = route_find(ph, name);

	return e && e->payload.gone;
}

bool route_stays(struct phnx *ph, ph_vp_t neighbour)
{
	const struct rentry *e = route_find(ph, neighbour);

	return e && e->nhops == 1 && !e->payload.leaving && !e->payload.gone;
}

struct plink *route_link_to(struct phnx *ph, ph_vp_t peer)
{
	struct rentry *e = route_find(ph, peer);

	return e ? e->direct : NULL;
}

uint64_t route_digest(const struct phnx *ph)
{
	return ph->routes->digest;
}

unsigned route_count(const struct phnx *ph)
{
	return ph->routes->n;
}

struct route_view route_entry(const struct phnx *ph, unsigned k)
{
	const struct rentry *e = ph->routes->list[k];
	struct plink *way = e == ph->routes->self ? NULL : e->direct ? e->direct : e->fwd;

	return (struct route_view){ .way = way,
				    .direct = e->direct != NULL,
				    .vps = &e->payload.vps };
}

void route_say_goodbye(struct phnx *ph)
{
	route_self_changed(ph);
	ph->routes->self->nhops = UNREACHABLE;
	/* now, and not when connections are made (TRICKS: goodbye-now) */
	tell_now(ph);
}

/* ---- start and end ---- */

int route_init(struct phnx *ph)
{
	ph->routes = calloc(1, sizeof *ph->routes);
	struct rentry *self = ph->routes ? add(ph, ph->name) : NULL;

	if (!self)
		return -1;
	ph->routes->self = self;
	self->nhops = 0;
	self->seq = 2;
	ph->routes->digest = weight(self);
	return 0;
}

void route_free(struct phnx *ph)
{
	struct routes *t = ph->routes;

	if (!t)
		return;
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
	free(t);
}
