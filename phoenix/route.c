/* route.c - Destination-Sequenced Distance Vector routing (thesis chapter 3), and who holds which virtual node.
 *
 * Each node announces itself with an even sequence number: its virtual nodes, its addresses.  A node that loses the way
 * to another raises the number to odd.  The larger number wins, then the fewer hops.
 *
 * The thesis's two optimisations:
 *   - An update names the neighbours that its sender sends it to; receivers do not pass it on among these.  The sets
 *     trans and rcpt of the thesis are one set here (`has`), since their union alone is ever asked for; and one list of
 *     names serves a whole message, since after each flush all of a sender's neighbours have everything.  The names say
 *     more: of these, the sender hears what they are themselves, and need not be told.  So it does no harm if of two nodes
 *     that connect just then only one has named the other.
 *   - Updates are merged: first connections are made; then a node tells what it is itself; and what it knows of others
 *     when its neighbours have told what they are (route_tick()), all in one message per neighbour.
 *
 * Where this departs from DSDV: a node that has another way does not adopt "unreachable" from a neighbour that is not on
 * its way.  It asks the destination for a newer sequence number instead (SEQREQ, as the Babel protocol does), so that one
 * broken link in a dense network does not cost everybody their routes.
 */
#include <stdio.h>
#include "phoenix/core.h"

enum { FLUSH_BYTES = 256 << 10, SEQREQ_INTERVAL = 50000 };

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Nothing was ever heard of it but its name. */
static bool is_rumour(const struct rentry *e)
{
	return e->seq == 1 && e->nhops == UNREACHABLE && !e->payload.gone;
}

/* Some neighbour may lack the entry. */
static void mark_dirty(struct phnx *ph, struct rentry *e)
{
	struct routes *t = &ph->routes;

	if (e->dirty || is_rumour(e))
		return;
	if (!t->n_dirty) {
		t->dirty_us = phnx_now(ph);
		t->tardy_until = t->tardy_us ? t->dirty_us + phnx_random(ph) % t->tardy_us : 0;
	}
	e->dirty = true;
	t->dirty_list[t->n_dirty++] = e;
}

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

static bool rehash(struct routes *t, unsigned n_slots)
{
	struct rentry **slots = calloc(n_slots, sizeof *slots);

	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	for (unsigned k = 0; k < t->n; k++)
		insert(t, t->list[k]);
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
	if (t->n * 2 > t->n_slots && !rehash(t, t->n_slots ? 2 * t->n_slots : 32)) {
		t->n--;
		goto fail;
	}
	insert(t, e);
	return e;
fail:
	free(e);
	return NULL;
}

static void payload_free(struct payload *p)
{
	free(p->vps.r);
	p->vps = (struct ph_vps){ 0 };
}

static void forget(struct phnx *ph, unsigned k)
{
	struct routes *t = &ph->routes;
	struct rentry *e = t->list[k];

	t->list[k] = t->list[--t->n];
	for (unsigned i = 0; e->dirty && i < t->n_dirty; i++)
		if (t->dirty_list[i] == e)
			t->dirty_list[i] = t->dirty_list[--t->n_dirty];
	rehash(t, t->n_slots);
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

/* ---- the set `has` ---- */

static bool has(const struct rentry *e, unsigned slot)
{
	return slot / 64 < e->has_words && (e->has[slot / 64] >> slot % 64 & 1);
}

static void has_room(struct rentry *e, unsigned words)
{
	uint64_t *bits = words > e->has_words ? realloc(e->has, words * sizeof *bits) : NULL;

	if (!bits)
		return;		/* enough, or no memory: then something is sent once too often */
	memset(bits + e->has_words, 0, (words - e->has_words) * sizeof *bits);
	e->has = bits;
	e->has_words = words;
}

static void has_set(struct rentry *e, unsigned slot)
{
	has_room(e, slot / 64 + 1);
	if (slot / 64 < e->has_words)
		e->has[slot / 64] |= 1ULL << slot % 64;
}

static void has_clear(struct phnx *ph, struct rentry *e, unsigned slot)
{
	mark_dirty(ph, e);
	if (slot / 64 < e->has_words)
		e->has[slot / 64] &= ~(1ULL << slot % 64);
}

static void has_nobody(struct phnx *ph, struct rentry *e)
{
	mark_dirty(ph, e);
	if (e->told && !ph->routes.urgent_us)
		ph->routes.urgent_us = phnx_now(ph);
	if (e->has_words)
		memset(e->has, 0, e->has_words * sizeof *e->has);
}

static bool names(const struct plink *l, unsigned slot)
{
	return slot / 64 < l->named_words && (l->named[slot / 64] >> slot % 64 & 1);
}

/* Nobody told it, or promised to, and it does not hear it from the node itself. */
static bool lacks(const struct phnx *ph, const struct plink *l, const struct rentry *e)
{
	bool neighbour = e->direct && e->nhops < UNREACHABLE && !ph->leaving;

	return !has(e, l->slot) && !(neighbour && names(l, e->direct->slot));
}

static void flush(struct phnx *ph, unsigned from);

/* The neighbours that the sender of an update promised it to. */
struct promise {
	struct plink *sender;
	unsigned words;
	uint64_t bits[MAX_LINKS / 64];	/* by slot; the sender's own bit too */
};

static void promise_add(struct promise *p, unsigned slot)
{
	for (; p->words <= slot / 64; p->words++)
		p->bits[p->words] = 0;
	p->bits[slot / 64] |= 1ULL << slot % 64;
}

static void has_promised(struct rentry *e, const struct promise *p)
{
	if (p->sender->ph->routes.algorithm == ROUTING_NAIVE)
		return;
	has_room(e, p->words);
	for (unsigned i = 0; i < p->words && i < e->has_words; i++)
		e->has[i] |= p->bits[i];
}

/* ---- payloads on the wire ---- */

static void put_payload(struct writer *w, const struct payload *p)
{
	ph_vp_t at = 0;

	put8(w, (uint8_t)(p->leaving | p->gone << 1));
	put_var(w, p->stamp);
	put8(w, (uint8_t)p->n_addrs);
	for (unsigned i = 0; i < p->n_addrs; i++) {
		const struct address *a = p->addrs + i;
		put8(w, (uint8_t)strlen(a->host));
		put_bytes(w, a->host, strlen(a->host));
		put_le(w, (uint64_t)a->port, 2);
		put8(w, (uint8_t)a->protocol);
	}
	put_var(w, p->vps.n);
	for (size_t i = 0; i < p->vps.n; at = p->vps.r[i++].hi) {
		put_var(w, (uint64_t)(p->vps.r[i].lo - at));
		put_var(w, (uint64_t)(p->vps.r[i].hi - p->vps.r[i].lo));
	}
}

static void get_address(struct reader *r, struct address *a)
{
	size_t n = get8(r);

	if (n == 0 || n >= sizeof a->host)
		r->bad = true;
	else
		get_bytes(r, a->host, n);
	a->port = (int)get_le(r, 2);
	a->protocol = get8(r) == PHNX_TLS ? PHNX_TLS : PHNX_TCP;
	for (size_t i = 0; i < n && !r->bad; i++)	/* it is given to the resolver */
		if (!strchr("0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ.:%-_", a->host[i]))
			r->bad = true;
}

static void get_payload(struct phnx *ph, struct reader *r, struct payload *p)
{
	unsigned flags = get8(r);
	ph_vp_t at = 0;

	*p = (struct payload){ .leaving = flags & 1, .gone = flags & 2, .stamp = get_var(r), .n_addrs = get8(r) };
	if (p->n_addrs > MAX_ADDRS) {
		p->n_addrs = 0;
		r->bad = true;
	}
	for (unsigned i = 0; i < p->n_addrs; i++)
		get_address(r, p->addrs + i);
	uint64_t n = get_var(r);
	r->bad |= n > MAX_RANGES;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		uint64_t gap = get_var(r), len = get_var(r);
		bool fits = gap <= (uint64_t)(ph->upper - at) && len && len <= (uint64_t)(ph->upper - at) - gap &&
			    at + (ph_vp_t)gap >= ph->lower;
		if (r->bad || !fits || !vps_append(&p->vps, at + (ph_vp_t)gap, at + (ph_vp_t)(gap + len)))
			r->bad = true;
		else
			at += (ph_vp_t)(gap + len);
	}
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

	payload_free(&e->payload);
	e->payload = ph->me;
	e->payload.vps = (struct ph_vps){ 0 };
	for (size_t i = 0; i < ph->me.vps.n; i++)
		vps_append(&e->payload.vps, ph->me.vps.r[i].lo, ph->me.vps.r[i].hi);
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

/* In one subnet all have the same neighbours, but for themselves: then nothing has to be looked up. */
static void get_names(struct phnx *ph, struct reader *r, struct promise *p)
{
	struct routes *t = &ph->routes;
	uint64_t n = get_var(r), digest = get64(r);

	if (digest + mix((uint64_t)p->sender->peer) == t->neighbours + mix((uint64_t)ph->name) && n <= (uint64_t)(r->end - r->p) / 8) {
		r->p += 8 * n;
		memcpy(p->bits, t->up, t->up_words * sizeof *p->bits);
		p->words = t->up_words;
		return;
	}
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct rentry *e = route_find(ph, (ph_vp_t)get64(r));
		if (e && e->direct)
			promise_add(p, e->direct->slot);
	}
}

static void keep_names(struct plink *l, const struct promise *p)
{
	uint64_t *bits = realloc(l->named, p->words * sizeof *bits);

	l->named_words = 0;
	if (!bits)
		return;		/* then something is sent once too often */
	memcpy(bits, p->bits, p->words * sizeof *bits);
	l->named = bits;
	l->named_words = p->words;
}

int route_on_update(struct phnx *ph, struct plink *l, struct reader *r)
{
	struct promise p = { .sender = l };

	if (!l->told) {
		ph->routes.told_us = phnx_now(ph);
		ph->routes.n_silent--;
	}
	l->told = true;
	promise_add(&p, l->slot);
	get_names(ph, r, &p);
	if (ph->routes.algorithm != ROUTING_NAIVE)
		keep_names(l, &p);
	uint64_t n = get_var(r);
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		on_entry(ph, r, &p);
		if (ph->routes.algorithm == ROUTING_NAIVE)
			flush(ph, 0);
	}
	return 0;
}

void route_link_up(struct phnx *ph, struct plink *l)
{
	struct rentry *e = route_find(ph, l->peer);

	for (unsigned k = 0; k < ph->routes.n; k++)
		has_clear(ph, ph->routes.list[k], l->slot);
	if (!e)
		e = add(ph, l->peer);
	if (e && !e->direct) {
		e->direct = l;
		ph->routes.neighbours += mix((uint64_t)l->peer);
	}
	ph->routes.n_silent++;
	ph->routes.up[l->slot / 64] |= 1ULL << l->slot % 64;
	if (l->slot / 64 >= ph->routes.up_words)
		ph->routes.up_words = l->slot / 64 + 1;
	ph->routes.version++;
}

void route_link_down(struct phnx *ph, struct plink *l)
{
	struct plink *other = ph->links;

	while (other && (other->peer != l->peer || other->state != LINK_UP))
		other = other->next;
	for (unsigned k = 0; k < ph->routes.n; k++) {
		struct rentry *e = ph->routes.list[k];
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
	ph->routes.n_silent -= !l->told;
	for (struct plink *k = ph->links; k; k = k->next)
		if (l->slot / 64 < k->named_words)
			k->named[l->slot / 64] &= ~(1ULL << l->slot % 64);
	ph->routes.up[l->slot / 64] &= ~(1ULL << l->slot % 64);
	ph->routes.version++;
	sweep_by(ph, phnx_now(ph) + ROUTE_EXPIRY);
}

void route_resend_all(struct phnx *ph, struct plink *l)
{
	for (unsigned k = 0; k < ph->routes.n; k++)
		has_clear(ph, ph->routes.list[k], l->slot);
	l->named_words = 0;
}

/* ---- telling the neighbours ---- */

static void put_entry(struct phnx *ph, struct writer *w, const struct rentry *e)
{
	static const struct payload none, gone = { .gone = true };
	bool lost = e->nhops == UNREACHABLE || (ph->leaving && e != ph->routes.self);

	put64(w, (uint64_t)e->name);
	put_var(w, lost ? e->seq | 1 : e->seq);
	put8(w, (uint8_t)(lost ? UNREACHABLE : e->nhops));
	put_payload(w, e->payload.gone ? &gone : lost ? &none : &e->payload);
}

static void put_names(struct phnx *ph, struct writer *w)
{
	uint64_t n = 0;

	for (struct plink *l = ph->links; l; l = l->next)
		n += l->state == LINK_UP;
	put_var(w, n);
	put64(w, ph->routes.neighbours);
	for (struct plink *l = ph->links; l; l = l->next)
		if (l->state == LINK_UP)
			put64(w, (uint64_t)l->peer);
}

/* A message, and of what it tells, by place in the list of what is to be told: most neighbours are told the same. */
struct bundle {
	struct pbuf *message;
	uint64_t told[MAX_NODES_KNOWN / 64];
};

static void send_entries(struct plink *l, const struct writer *names, const struct writer *entries, uint64_t n, struct bundle *b)
{
	struct writer w = { 0 };

	put_bytes(&w, names->data, names->len);
	put_var(&w, n);
	put_bytes(&w, entries->data, entries->len);
	pbuf_put(b->message);
	b->message = w.bad ? NULL : pbuf_new(w.data, w.len);
	if (b->message)
		link_send(l, FRAME_ROUTE, NULL, b->message);
	free(w.data);
}

static void send_bundle(struct phnx *ph, struct plink *l, const struct writer *names, struct bundle *b)
{
	struct routes *t = &ph->routes;
	struct writer entries = { 0 };
	bool split = false;
	uint64_t n = 0;

	for (unsigned k = 0; k < t->n_dirty; k++) {
		if (!(b->told[k / 64] >> k % 64 & 1))
			continue;
		if (entries.len > FLUSH_BYTES) {
			send_entries(l, names, &entries, n, b);
			entries.len = n = 0;
			split = true;
		}
		put_entry(ph, &entries, t->dirty_list[k]);
		n++;
	}
	send_entries(l, names, &entries, n, b);
	free(entries.data);
	if (!split)
		return;
	pbuf_put(b->message);		/* it is not all of the bundle */
	b->message = NULL;
}

/* From there on, what stands in the list of what is to be told. */
static void flush_to(struct phnx *ph, struct plink *l, const struct writer *names, unsigned from, struct bundle *b)
{
	struct routes *t = &ph->routes;
	uint64_t told[MAX_NODES_KNOWN / 64];
	size_t bytes = (t->n_dirty + 63) / 64 * sizeof *told;
	bool any = false;

	memset(told, 0, bytes);
	for (unsigned k = from; k < t->n_dirty; k++) {
		struct rentry *e = t->dirty_list[k];
		if (!lacks(ph, l, e))
			continue;
		has_set(e, l->slot);
		e->told = any = true;
		told[k / 64] |= 1ULL << k % 64;
	}
	if (any && b->message && !memcmp(b->told, told, bytes)) {
		link_send(l, FRAME_ROUTE, NULL, b->message);
	} else if (any) {
		memcpy(b->told, told, bytes);
		send_bundle(ph, l, names, b);
	}
}

/* The neighbours that may lack some entry, by slot; few, as a rule: all others have been promised it. Returns how many words. */
static unsigned find_lacking(struct phnx *ph, uint64_t lacking[MAX_LINKS / 64], unsigned from)
{
	struct routes *t = &ph->routes;

	for (unsigned i = 0; i < t->up_words; i++) {
		lacking[i] = 0;
		for (unsigned k = from; k < t->n_dirty; k++)
			lacking[i] |= t->up[i] & ~(i < t->dirty_list[k]->has_words ? t->dirty_list[k]->has[i] : 0);
	}
	return t->up_words;
}

static void flush(struct phnx *ph, unsigned from)
{
	struct routes *t = &ph->routes;
	uint64_t lacking[MAX_LINKS / 64];
	unsigned words = find_lacking(ph, lacking, from);
	struct writer names = { 0 };
	struct bundle last;

	last.message = NULL;
	for (struct plink *l = t->algorithm == ROUTING_SILENT ? NULL : ph->links; l; l = l->next) {
		if (l->state != LINK_UP || l->slot / 64 >= words || !(lacking[l->slot / 64] >> l->slot % 64 & 1))
			continue;
		if (!names.len)
			put_names(ph, &names);
		flush_to(ph, l, &names, from, &last);
	}
	while (t->n_dirty > from)
		t->dirty_list[--t->n_dirty]->dirty = false;
	if (!from)
		t->urgent_us = 0;
	pbuf_put(last.message);
	free(names.data);
}

static void flush_self(struct phnx *ph)
{
	struct routes *t = &ph->routes;
	unsigned k = 0, last = t->n_dirty - 1;

	while (t->dirty_list[k] != t->self)
		k++;
	t->dirty_list[k] = t->dirty_list[last];
	t->dirty_list[last] = t->self;
	flush(ph, last);
}

void route_tell(struct phnx *ph)
{
	flush(ph, 0);
}

/* ---- who holds a virtual node ---- */

static int by_lower(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void rebuild_claims(struct phnx *ph)
{
	struct routes *t = &ph->routes;

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
			t->claims[t->n_claims++] = (struct claim){ s->r[i].lo, s->r[i].hi, 0, t->list[k] };
	}
	if (t->n_claims)
		qsort(t->claims, t->n_claims, sizeof *t->claims, by_lower);
	ph_vp_t max = 0;
	for (unsigned i = 0; i < t->n_claims; i++) {
		max = t->claims[i].hi > max ? t->claims[i].hi : max;
		t->claims[i].max_hi = max;
	}
}

ph_vp_t route_holder(struct phnx *ph, ph_vp_t vp)
{
	struct routes *t = &ph->routes;
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
	while (low < high) {		/* low: the number of claims that begin at or below vp */
		unsigned mid = (low + high) / 2;
		if (t->claims[mid].lo <= vp)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low > 0 && t->claims[low - 1].max_hi > vp; low--) {
		struct claim *c = t->claims + low - 1;
		if (c->hi > vp && c->by != t->self && (!best || c->by->payload.stamp > best->payload.stamp))
			best = c->by;
	}
	return best ? best->name : 0;
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

/* ---- when to tell: the thesis's priorities ----
 * Connections that are being made come first, while they come nearer: then a node has few neighbours to tell later, and names
 * all that it dials.  What it is itself is told then; what it knows of others, when all neighbours have told what they are.
 * But not for ever, and soon if somebody was told what is not so any more: messages go astray until it is put right. */

static uint64_t limit(const struct phnx *ph)
{
	enum { LIMIT = 20000, LIMIT_PER_LINK = 300, FIRST_LIMIT = 300000, FIRST_PER_LINK = 5000 };
	const struct routes *t = &ph->routes;

	return t->urgent_us ? t->urgent_us + LIMIT + (uint64_t)ph->n_links * LIMIT_PER_LINK
			    : t->dirty_us + FIRST_LIMIT + (uint64_t)ph->n_links * FIRST_PER_LINK;
}

/* Whoever is dialed and has not answered in twice the time that the slowest neighbour takes, is not there. */
static uint64_t answer_us(const struct phnx *ph)
{
	enum { LEAST = 5000 };
	uint64_t rtt_us = 0;

	for (const struct plink *l = ph->links; l; l = l->next)
		rtt_us = l->rtt_us > rtt_us ? l->rtt_us : rtt_us;
	return LEAST + 2 * rtt_us;
}

/* When to tell what this node is itself, in *self, and when to tell all. */
static uint64_t hold_until(const struct phnx *ph, uint64_t now, uint64_t *self)
{
	enum { BUSY = 50000 };		/* so long whoever has answered once may take for the next answer */
	const struct routes *t = &ph->routes;
	uint64_t most = limit(ph), last = ph->progress_us > t->told_us ? ph->progress_us : t->told_us, all;

	*self = ph->n_proving ? ph->progress_us + BUSY : ph->contacts.hopeful ? ph->progress_us + answer_us(ph) : now;
	all = t->n_silent && last + BUSY > *self ? last + BUSY : *self;
	*self = most < *self ? most : *self;
	return most < all ? most : all;
}

void route_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct routes *t = &ph->routes;
	uint64_t self, all;

	if (now >= t->sweep_us)
		t->sweep_us = sweep(ph, now);
	*next = t->sweep_us < *next ? t->sweep_us : *next;
	if (!t->n_dirty)
		return;
	all = hold_until(ph, now, &self);
	self = t->self->dirty ? self : all;
	self = t->tardy_until > self ? t->tardy_until : self;
	all = t->tardy_until > all ? t->tardy_until : all;
	if (now >= all)
		flush(ph, 0);
	else if (now >= self && t->self->dirty)
		flush_self(ph);
	if (t->n_dirty) {
		uint64_t until = t->self->dirty ? self : all;
		*next = until < *next ? until : *next;
	}
}

bool route_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, const struct writer *head, struct pbuf *body)
{
	struct rentry *e = route_find(ph, to);
	struct plink *l = e && e->direct ? e->direct : e ? e->fwd : NULL;
	unsigned char stack[FRAME_HEAD_MAX];
	struct writer w = { .data = stack, .room = sizeof stack };	/* never grows */

	if (!l || l->state != LINK_UP || head->len > FRAME_HEAD_MAX - FRAME_HEAD - ROUTED_HEAD)
		return false;
	if (type == FRAME_DATA && l->out_bytes > MAX_LINK_QUEUE) {
		ph->flows.dropped++;
		return false;
	}
	put64(&w, (uint64_t)to);
	put64(&w, (uint64_t)ph->name);
	put8(&w, 0);
	put_bytes(&w, head->data, head->len);
	link_send(l, type, &w, body);
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
		payload_free(&t->list[k]->payload);
		free(t->list[k]->has);
		free(t->list[k]);
	}
	free(t->list);
	free(t->dirty_list);
	free(t->slots);
	free(t->claims);
}
