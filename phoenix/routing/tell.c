/* tell.c - what the neighbours are told of routes (thesis chapter 3).  When: when.h.
 *
 * A node tells a new neighbour what it announces itself in the packet of its proof, which costs
 * next to nothing (tell_greet()).  The rest follows with the two optimisations of the thesis:
 * - An update names the neighbours that its sender sends it to, and receivers do not pass it on to
 *   these.  The sets trans and rcpt of the thesis are one set here (`has`), since only their union
 *   is ever needed.  One list of names serves a whole message, since after each flush all
 *   neighbours of the sender have everything.  The list also says that the sender hears the
 *   announcements of these nodes directly and need not be told them.  So no harm is done if only
 *   one of two nodes that connect at this moment has named the other.
 * - Updates are merged.  First connections are made.  Then a node tells its place what it has heard
 *   of other places, and other places what it knows.  It tells what it knows of its own place when
 *   its neighbours there have named theirs (tell_tick()); as a rule nothing of that is left to tell
 *   then.
 */
#include "phoenix/routing/routing_private.h"
#include "phoenix/routing/when.h"

enum { FLUSH_BYTES = 256 << 10 };

/* Returns whether nothing but the name is known of e's node. */
static bool is_rumour(const struct rentry *e)
{
	return e->seq == 1 && e->nhops == UNREACHABLE && !e->payload.gone;
}

static bool is_of_elsewhere(const struct routes *t, const struct rentry *e)
{
	const struct plink *from = e->direct ? e->direct : e->fwd;

	return !from || !place_is_here(t, from->slot);
}

/* Something has to be told from now on. */
static void begin_to_hold(struct phnx *ph)
{
	struct routes *t = ph->routes;

	if (t->n_dirty || t->n_owed || t->new_neighbours)
		return;
	t->dirty_us = core_now(ph);
	t->tardy_until = t->tardy_us ? t->dirty_us + core_random(ph) % t->tardy_us : 0;
}

/* Some neighbour may lack e. */
static void mark_dirty(struct phnx *ph, struct rentry *e)
{
	struct routes *t = ph->routes;

	if (is_rumour(e))
		return;
	t->news = true;
	t->far_news |= is_of_elsewhere(t, e);
	if (e->dirty)
		return;
	begin_to_hold(ph);
	e->dirty = true;
	ph->untold = true;
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
		return;	/* there is enough, or no memory: then an entry is sent once too often */
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

void tell_has_not(struct rentry *e, unsigned slot)
{
	if (slot / 64 < e->has_words)
		e->has[slot / 64] &= ~(1ULL << slot % 64);
}

void tell_lacks(struct phnx *ph, struct rentry *e, unsigned slot)
{
	mark_dirty(ph, e);
	tell_has_not(e, slot);
}

void tell_nobody_has(struct phnx *ph, struct rentry *e)
{
	mark_dirty(ph, e);
	if (e->told && !ph->routes->urgent_us)
		ph->routes->urgent_us = core_now(ph);
	if (e->has_words)
		memset(e->has, 0, e->has_words * sizeof *e->has);
}

/* Returns whether l's peer lacks e: nobody told it or promised to, and it does not hear of e
 * from the same neighbour as this node does. */
static bool lacks(const struct phnx *ph, const struct plink *l, const struct rentry *e)
{
	const struct plink *from = e->direct ? e->direct : e->fwd;
	bool hears = from && e->nhops < UNREACHABLE && !ph->leaving;

	return !has(e, l->slot) && !(hears && place_has_named(l, from->slot));
}

static void promise_add(struct promise *p, unsigned slot)
{
	for (; p->words <= slot / 64; p->words++)
		p->bits[p->words] = 0;
	p->bits[slot / 64] |= 1ULL << slot % 64;
}

void tell_promised(struct rentry *e, const struct promise *p)
{
	if (p->sender->ph->routes->algorithm == ROUTING_NAIVE)
		return;
	has_room(e, p->words);
	for (unsigned i = 0; i < p->words && i < e->has_words; i++)
		e->has[i] |= p->bits[i];
}

/* In one subnet all nodes have the same neighbours, but for themselves; then no name has to be
 * looked up. */
static void get_names(struct phnx *ph, struct reader *r, struct promise *p)
{
	struct routes *t = ph->routes;
	uint64_t n = get_var(r), digest = get64(r);

	if (digest + mix((uint64_t)p->sender->peer) == t->neighbours + mix((uint64_t)ph->name) &&
	    n <= (uint64_t)(r->end - r->p) / 8) {
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

void tell_get_promise(struct phnx *ph, struct plink *sender, struct reader *r, struct promise *p)
{
	p->sender = sender;
	p->words = 0;
	promise_add(p, sender->slot);
	if (!get8(r)) {
		place_get_some(sender, r);
		return;
	}
	place_named(sender);
	get_names(ph, r, p);
	if (ph->routes->algorithm != ROUTING_NAIVE && place_keep(sender, p))
		ph->routes->far_news = true;
}

/* ---- the messages ---- */

static void put_entry(struct phnx *ph, struct writer *w, const struct rentry *e)
{
	static const struct payload none, gone = { .gone = true };
	bool lost = e->nhops == UNREACHABLE || (ph->leaving && e != ph->routes->self);

	put64(w, (uint64_t)e->name);
	put_var(w, lost ? e->seq | 1 : e->seq);
	put8(w, (uint8_t)(lost ? UNREACHABLE : e->nhops));
	payload_put(w, e->payload.gone ? &gone : lost ? &none : &e->payload);
}

static void put_names(struct phnx *ph, struct writer *w)
{
	uint64_t n = 0;

	for (struct plink *l = link_first(ph); l; l = l->next)
		n += l->state == LINK_UP;
	put8(w, 1);
	put_var(w, n);
	put64(w, ph->routes->neighbours);
	for (struct plink *l = link_first(ph); l; l = l->next)
		if (l->state == LINK_UP)
			put64(w, (uint64_t)l->peer);
}

/* Each neighbour gets other names of the last ones, so that together they hear nearly all. */
static void put_some_names(const struct plink *l, struct writer *w)
{
	const struct routes *t = l->ph->routes;
	unsigned known = t->n_last < LAST_NAMES ? (unsigned)t->n_last : LAST_NAMES;
	unsigned n = known < SOME_NAMES ? known : SOME_NAMES;

	put8(w, 0);
	put8(w, (uint8_t)n);
	for (unsigned i = 0; i < n; i++)
		put64(w, (uint64_t)t->last[(l->slot * SOME_NAMES + i) % known]);
}

/* The last message, and which entries of dirty_list it tells: most neighbours are told the same. */
struct bundle {
	struct pbuf *message;
	uint64_t told[MAX_NODES_KNOWN / 64];
};

static void send_entries(struct plink *l, const struct writer *names, const struct writer *entries,
			 uint64_t n, struct bundle *b)
{
	struct writer w = { 0 };

	put_bytes(&w, names->data, names->len);
	put_var(&w, n);
	put_bytes(&w, entries->data, entries->len);
	pbuf_put(b->message);
	b->message = w.bad || names->bad || entries->bad ? NULL : pbuf_new(w.data, w.len);
	if (b->message)		/* else it is as if the message was lost: on_ping() repairs that */
		link_send(l, FRAME_ROUTE, NULL, b->message);
	free(w.data);
}

static void send_bundle(struct phnx *ph, struct plink *l, const struct writer *names,
			struct bundle *b)
{
	struct routes *t = ph->routes;
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
	pbuf_put(b->message);		/* the message is not the whole bundle */
	b->message = NULL;
}

static bool is_owed(const struct routes *t, unsigned slot)
{
	return t->owed[slot / 64] >> slot % 64 & 1;
}

static void owe(struct routes *t, unsigned slot, bool whether)
{
	uint64_t *word = t->owed + slot / 64, bit = 1ULL << slot % 64;

	t->n_owed += whether - !!(*word & bit);
	*word = whether ? *word | bit : *word & ~bit;
}

/* Tells a neighbour what it lacks of the entries of dirty_list from `from` on.  owed: also names
 * this node's neighbours, if it is owed that. */
static void flush_to(struct phnx *ph, struct plink *l, const struct writer *names, unsigned from,
		     bool owed, struct bundle *b)
{
	struct routes *t = ph->routes;
	uint64_t told[MAX_NODES_KNOWN / 64];
	size_t bytes = (t->n_dirty + 63) / 64 * sizeof *told;
	bool any = owed && is_owed(t, l->slot);

	memset(told, 0, bytes);
	for (unsigned k = from; k < t->n_dirty; k++) {
		struct rentry *e = t->dirty_list[k];
		if (!lacks(ph, l, e))
			continue;
		has_set(e, l->slot);
		e->told = any = true;
		told[k / 64] |= 1ULL << k % 64;
	}
	if (!any)
		return;
	owe(t, l->slot, false);
	if (b->message && !memcmp(b->told, told, bytes)) {
		link_send(l, FRAME_ROUTE, NULL, b->message);
	} else {
		memcpy(b->told, told, bytes);
		send_bundle(ph, l, names, b);
	}
}

/* Computes the set of neighbours that may lack some entry; they are few, as a rule, since all
 * others were promised it.  Returns how many words the set has. */
static unsigned find_lacking(struct phnx *ph, uint64_t lacking[MAX_LINKS / 64], unsigned from)
{
	struct routes *t = ph->routes;

	for (unsigned i = 0; i < t->up_words; i++) {
		lacking[i] = 0;
		for (unsigned k = from; k < t->n_dirty; k++)
			lacking[i] |=
				t->up[i] &
				~(i < t->dirty_list[k]->has_words ? t->dirty_list[k]->has[i] : 0);
	}
	return t->up_words;
}

/* New neighbours may lack any entry. */
static void look_again(struct phnx *ph)
{
	struct routes *t = ph->routes;

	for (unsigned k = 0; t->new_neighbours && k < t->n; k++)
		mark_dirty(ph, t->list[k]);
	t->new_neighbours = false;
}

/* Tells the neighbours of this place the entries of dirty_list from `from` on, and those of
 * other places all entries.  owed: names this node's neighbours to those who are owed that. */
static void flush(struct phnx *ph, unsigned from, bool owed)
{
	struct routes *t = ph->routes;
	uint64_t lacking[MAX_LINKS / 64];
	unsigned words = find_lacking(ph, lacking, from);
	bool silent = t->algorithm == ROUTING_SILENT;
	struct writer names = { 0 };
	struct bundle last;

	last.message = NULL;
	for (int here = 0; here < 2 && !silent; here++)
		for (struct plink *l = link_first(ph); l; l = l->next) {
			bool lacks_some = (l->slot / 64 < words &&
					   (lacking[l->slot / 64] >> l->slot % 64 & 1)) ||
					  (owed && is_owed(t, l->slot)) || (!here && from);
			if (place_is_here(t, l->slot) != here || l->state != LINK_UP || !lacks_some)
				continue;
			if (!names.len)
				put_names(ph, &names);
			flush_to(ph, l, &names, here ? from : 0, owed, &last);
		}
	while (t->n_dirty > from)
		t->dirty_list[--t->n_dirty]->dirty = false;
	t->news = false;
	if (!from)
		t->urgent_us = 0;
	pbuf_put(last.message);
	free(names.data);
}

/* Tells this place what this node is and what it knows of other places; tells other places what
 * it knows. */
static void tell_here(struct phnx *ph)
{
	struct routes *t = ph->routes;
	unsigned from;

	place_judge(ph);
	look_again(ph);
	from = t->n_dirty;
	for (unsigned k = 0; k < from;) {
		struct rentry *e = t->dirty_list[k];
		if (!is_of_elsewhere(t, e)) {	/* the peer hears of it from the same neighbour */
			k++;
			continue;
		}
		t->dirty_list[k] = t->dirty_list[--from];
		t->dirty_list[from] = e;
	}
	flush(ph, from, false);
	t->far_news = false;
}

/* Tells other places, if there are any, what this node knows. */
static void tell_away(struct phnx *ph)
{
	place_judge(ph);
	if (place_any_away(ph->routes)) {
		look_again(ph);
		flush(ph, ph->routes->n_dirty, false);
	}
	ph->routes->news = false;
}

/* Names this node's neighbours to those who know only some of them. */
static void tell_names(struct phnx *ph)
{
	flush(ph, ph->routes->n_dirty, true);
}

void tell_now(struct phnx *ph)
{
	look_again(ph);
	flush(ph, 0, false);
	ph->routes->far_news = false;
}

/* ---- when to tell ---- */

uint64_t tell_rests_at(const struct phnx *ph, uint64_t now)
{
	return when_at_rest(link_progress(ph), link_count(ph), core_lateness(ph, now));
}

static struct when hold_until(const struct phnx *ph, uint64_t now)
{
	const struct routes *t = ph->routes;

	return when_to_tell(&(struct when_facts){
		.now = now,
		.n_links = link_count(ph),
		.lateness = core_lateness(ph, now),
		.progress = link_progress(ph),
		.slowest = link_slowest(ph),
		.proving = link_count_proving(ph),
		.hopeful = ph->contacts->hopeful,
		.unnamed = place_waits(t),
		.named = t->places.told_us,
		.since = t->dirty_us,
		.urgent = t->urgent_us,
		.not_before = t->tardy_until,
	});
}

static void soonest(uint64_t *next, uint64_t when)
{
	*next = when < *next ? when : *next;
}

void tell_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct routes *t = ph->routes;

	ph->untold = t->n_dirty;
	if (!t->n_dirty && !t->n_owed && !t->new_neighbours)
		return;
	struct when at = hold_until(ph, now);
	if (t->news && now >= at.away)
		tell_away(ph);
	if (t->far_news && now >= at.here)
		tell_here(ph);
	if ((t->n_dirty || t->new_neighbours) && now >= at.all)
		tell_now(ph);
	if (t->n_owed && now >= at.names)
		tell_names(ph);
	if (t->n_dirty || t->new_neighbours)
		soonest(next, t->news ? at.away : t->far_news ? at.here : at.all);
	if (t->n_owed)
		soonest(next, at.names);
	ph->untold = t->n_dirty;
}

/* ---- neighbours ---- */

/* Returns whether another connection than l is being made. */
static bool is_connecting_elsewhere(const struct plink *l)
{
	return link_count_proving(l->ph) > 1 || l->ph->contacts->hopeful > (l->contact != NULL);
}

/* Writes what this node announces, and all its neighbours or, if they will be named later
 * anyway, some. */
static void put_greeting(struct plink *l, struct writer *w)
{
	struct routes *t = l->ph->routes;

	l->neighbour->greeted_all = !is_connecting_elsewhere(l) && !t->n_owed;
	l->neighbour->greeting_names = t->neighbours;
	l->neighbour->greeting_seq = t->self->seq;
	if (l->neighbour->greeted_all)
		put_names(l->ph, w);
	else
		put_some_names(l, w);
	put_var(w, 1);
	put_entry(l->ph, w, t->self);
}

void tell_greet(struct plink *l, struct writer *w)
{
	if (l->ph->routes->algorithm != ROUTING_OPTIMISED)
		return;
	put_greeting(l, w);
	l->neighbour->greeted = !w->bad && w->len <= MAX_GREETING;
	if (l->neighbour->greeted)
		link_count_frame(l->ph, FRAME_ROUTE);
	else
		w->len = 0;
}

/* Sends the greeting in a frame of its own: it was too long for the proof. */
static void greet_at_length(struct plink *l)
{
	struct writer w = { 0 };

	put_greeting(l, &w);
	struct pbuf *b = w.bad ? NULL : pbuf_new(w.data, w.len);
	if (b)
		link_send(l, FRAME_ROUTE, NULL, b);
	pbuf_put(b);
	free(w.data);
}

/* The greeting was sent a while ago: notes what of it is not true any more. */
static void note_greeting(struct plink *l)
{
	struct routes *t = l->ph->routes;

	owe(t, l->slot,
	    !l->neighbour->greeted_all ||
		    l->neighbour->greeting_names + mix((uint64_t)l->peer) != t->neighbours);
	if (l->neighbour->greeting_seq != t->self->seq)
		return;
	has_set(t->self, l->slot);
	t->self->told = true;
}

void tell_link_up(struct phnx *ph, struct plink *l)
{
	struct routes *t = ph->routes;

	place_link_up(l);
	t->up[l->slot / 64] |= 1ULL << l->slot % 64;
	if (l->slot / 64 >= t->up_words)
		t->up_words = l->slot / 64 + 1;
	begin_to_hold(ph);
	t->new_neighbours = t->news = true;
	if (t->algorithm == ROUTING_OPTIMISED) {
		if (!l->neighbour->greeted)
			greet_at_length(l);
		note_greeting(l);
	} else if (t->algorithm == ROUTING_NAIVE) {
		tell_now(ph);
	}
}

void tell_link_down(struct phnx *ph, struct plink *l)
{
	ph->routes->up[l->slot / 64] &= ~(1ULL << l->slot % 64);
	place_link_down(l);
	owe(ph->routes, l->slot, false);
}

void tell_heard_greeting(struct phnx *ph, ph_vp_t name)
{
	struct routes *t = ph->routes;

	t->last[t->n_last++ % LAST_NAMES] = name;
}

const size_t route_neighbour_bytes = sizeof(struct neighbour);

void tell_forget_link(struct plink *l)
{
	place_forget(l);
}
