/* tell.c - what the neighbours are told of routes, and when (thesis chapter 3), with the thesis's two optimisations:
 *   - An update names the neighbours that its sender sends it to; receivers do not pass it on among these.  The sets
 *     trans and rcpt of the thesis are one set here (`has`), since their union alone is ever asked for; and one list of
 *     names serves a whole message, since after each flush all of a sender's neighbours have everything.  The names say
 *     more: of these, the sender hears what they are themselves, and need not be told.  So it does no harm if of two nodes
 *     that connect just then only one has named the other.
 *   - Updates are merged: first connections are made; then a node tells what it is itself, and what it has heard of other
 *     places; and what it knows of its own place when its neighbours there have told what they are (tell_tick()), all in one
 *     message per neighbour.
 */
#include "phoenix/route.h"

enum { FLUSH_BYTES = 256 << 10 };

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

void has_clear(struct phnx *ph, struct rentry *e, unsigned slot)
{
	mark_dirty(ph, e);
	if (slot / 64 < e->has_words)
		e->has[slot / 64] &= ~(1ULL << slot % 64);
}

void has_nobody(struct phnx *ph, struct rentry *e)
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

/* ---- places: a subnet, as a rule ----
 * Whoever has at least half of this node's neighbours is of the same place, and so are those that it names.  Other places hear of
 * this one as soon as it is known here, whether they have told or not; this one hears of others in the message in which a node tells
 * what it is itself; and what goes to other places goes first, since it has the longest way before it. */

static bool is_of_here(const struct phnx *ph, const struct plink *l)
{
	unsigned shared = 0;

	for (unsigned i = 0; i < l->named_words; i++)
		shared += (unsigned)__builtin_popcountll(ph->routes.up[i] & l->named[i]);
	return 2 * shared >= ph->n_links;	/* with those that are being made: the first to tell may be far away */
}

static bool is_here(const struct routes *t, unsigned slot)
{
	return t->here[slot / 64] >> slot % 64 & 1;
}

/* A neighbour of this place has not told yet; or any, as long as nobody of this place has. */
static bool waits_for_some(const struct routes *t)
{
	uint64_t silent = 0, here = 0, both = 0;

	for (unsigned i = 0; i < t->up_words; i++) {
		silent |= t->silent[i];
		here |= t->here[i];
		both |= t->silent[i] & t->here[i];
	}
	return both || (silent && !here);
}

static void promise_add(struct promise *p, unsigned slot)
{
	for (; p->words <= slot / 64; p->words++)
		p->bits[p->words] = 0;
	p->bits[slot / 64] |= 1ULL << slot % 64;
}

void has_promised(struct rentry *e, const struct promise *p)
{
	if (p->sender->ph->routes.algorithm == ROUTING_NAIVE)
		return;
	has_room(e, p->words);
	for (unsigned i = 0; i < p->words && i < e->has_words; i++)
		e->has[i] |= p->bits[i];
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
	bool of_here = is_of_here(l->ph, l);
	for (unsigned i = 0; of_here && i < p->words; i++)
		l->ph->routes.here[i] |= bits[i];
}

void get_promise(struct phnx *ph, struct plink *sender, struct reader *r, struct promise *p)
{
	if (!sender->told) {
		ph->routes.told_us = phnx_now(ph);
		ph->routes.silent[sender->slot / 64] &= ~(1ULL << sender->slot % 64);
	}
	sender->told = true;
	p->sender = sender;
	p->words = 0;
	promise_add(p, sender->slot);
	get_names(ph, r, p);
	if (ph->routes.algorithm != ROUTING_NAIVE)
		keep_names(sender, p);
}

/* ---- the messages ---- */

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
	bool silent = t->algorithm == ROUTING_SILENT;
	struct writer names = { 0 };
	struct bundle last;

	last.message = NULL;
	for (int here = 0; here < 2 && !silent; here++)
		for (struct plink *l = ph->links; l; l = l->next) {
			bool lacks_some = l->slot / 64 < words && (lacking[l->slot / 64] >> l->slot % 64 & 1);
			if (is_here(t, l->slot) != here || l->state != LINK_UP || !lacks_some)
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

/* What this node is itself, and what it knows of other places. */
static void flush_self(struct phnx *ph)
{
	struct routes *t = &ph->routes;
	unsigned from = t->n_dirty;

	for (unsigned k = 0; k < from;) {
		struct rentry *e = t->dirty_list[k];
		if (e->direct && is_here(t, e->direct->slot)) {	/* its neighbours hear of it from itself */
			k++;
			continue;
		}
		t->dirty_list[k] = t->dirty_list[--from];
		t->dirty_list[from] = e;
	}
	flush(ph, from);
}

void route_tell(struct phnx *ph)
{
	flush(ph, 0);
}

/* ---- when to tell: the thesis's priorities ----
 * Connections that are being made come first, while they come nearer: then a node has few neighbours to tell later, and names
 * all that it dials.  What it is itself is told then; what it knows of others, when all neighbours of its place have told what they
 * are.  But not for ever, and soon if somebody was told what is not so any more: messages go astray until it is put right. */

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
	all = waits_for_some(t) && last + BUSY > *self ? last + BUSY : *self;
	*self = most < *self ? most : *self;
	return most < all ? most : all;
}

void tell_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct routes *t = &ph->routes;
	uint64_t self, all;

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

/* ---- neighbours ---- */

void tell_link_up(struct phnx *ph, struct plink *l)
{
	struct routes *t = &ph->routes;

	t->silent[l->slot / 64] |= 1ULL << l->slot % 64;
	t->up[l->slot / 64] |= 1ULL << l->slot % 64;
	if (l->slot / 64 >= t->up_words)
		t->up_words = l->slot / 64 + 1;
}

void tell_link_down(struct phnx *ph, struct plink *l)
{
	for (struct plink *k = ph->links; k; k = k->next)
		if (l->slot / 64 < k->named_words)
			k->named[l->slot / 64] &= ~(1ULL << l->slot % 64);
	ph->routes.up[l->slot / 64] &= ~(1ULL << l->slot % 64);
	ph->routes.silent[l->slot / 64] &= ~(1ULL << l->slot % 64);
	ph->routes.here[l->slot / 64] &= ~(1ULL << l->slot % 64);
}
