/* contact.c - contact points: whom to dial, when, and when to retry.
 *
 * Contact points are in a heap, the next one to dial first.  So a thousand contact points that
 * never answer cost nothing while they wait, and each has its turn, since the one that has waited
 * longest is next.
 */
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/routing/routing_private.h"

/* ---- the heap ---- */

static void place(struct contacts *all, unsigned at, struct contact *c)
{
	all->heap[at] = c;
	c->place = at;
}

static void settle(struct contacts *all, struct contact *c)
{
	unsigned i = c->place;

	for (; i && c->due_us < all->heap[(i - 1) / 2]->due_us; i = (i - 1) / 2)
		place(all, i, all->heap[(i - 1) / 2]);
	for (unsigned child; (child = 2 * i + 1) < all->n; i = child) {
		if (child + 1 < all->n && all->heap[child + 1]->due_us < all->heap[child]->due_us)
			child++;
		if (c->due_us <= all->heap[child]->due_us)
			break;
		place(all, i, all->heap[child]);
	}
	place(all, i, c);
}

/* ---- in which order ----
 * Many nodes may have the same list of contact points.  Each node that finds itself in the list
 * dials the half behind itself at once.  It dials the others, which are to dial it, only after they
 * have had time to do so.  So two links between the same nodes are rare, and seldom do many nodes
 * dial the same one.
 */

static bool is_loopback(const char *host)
{
	return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

static bool is_self(struct phnx *ph, const struct phnx_contact *at)
{
	for (unsigned i = 0; i < ph->me.n_addrs; i++)
		if (at->port == ph->me.addrs[i].port &&
		    (!strcmp(at->host, ph->me.addrs[i].host) ||
		     !strcmp(at->host, ph->contacts->host) || is_loopback(at->host)))
			return true;
	return false;
}

static void settle_order(struct phnx *ph, uint64_t now)
{
	enum { PER_CONTACT = 150 };
	struct contacts *all = ph->contacts;
	unsigned n = all->n_configured, self = UINT32_MAX;

	all->fresh = false;
	for (unsigned i = 0; i < all->n; i++)
		if (!all->heap[i]->name && is_self(ph, &all->heap[i]->at))
			self = all->heap[i]->index;
	if (self == UINT32_MAX)
		return;
	for (unsigned i = 0; i < all->n; i++)
		if (all->heap[i]->fresh) {
			struct contact *c = all->heap[i];
			unsigned step = (c->index + n - self) % n;
			bool mine = (step && 2 * step < n) || (2 * step == n && self < c->index);
			c->awaited_until = mine ? 0 : now + OTHERS_LAST;
			c->due_us = now + step + (mine ? 0 : OTHERS_FIRST + n * PER_CONTACT);
			c->fresh = false;
		}
	unsigned total = all->n;
	for (all->n = 1; all->n < total; settle(all, all->heap[all->n - 1]))
		all->n++;		/* build the heap anew, one after the other */
}

/* A local socket is retried soon: its server is about to start or has just ended, and another
 * try costs next to nothing. */
static uint64_t least_backoff(const struct contact *c)
{
	return c->at.protocol == PHNX_UNIX ? RETRY_LOCAL : RETRY_MIN;
}

/* Changes the state of a contact point; nothing else does. */
static void set(struct phnx *ph, struct contact *c, enum contact_state state, uint64_t due_us)
{
	bool hopeful = c->backoff_us == least_backoff(c);

	ph->contacts->dialing -= c->state == CONTACT_DIALING;
	ph->contacts->hopeful -= c->state == CONTACT_DIALING && hopeful;
	ph->contacts->dialing += state == CONTACT_DIALING;
	ph->contacts->hopeful += state == CONTACT_DIALING && hopeful;
	c->state = state;
	c->due_us = due_us;
	settle(ph->contacts, c);
	if (ph->contacts->heap[0]->due_us < ph->due)
		ph->due = ph->contacts->heap[0]->due_us;
}

static void contact_free(struct contact *c)
{
	free(c->at.host);
	free(c->at.user);
	free(c->at.cert);
	free(c->at.key);
	free(c->complaint);
	free(c);
}

static void release(struct phnx *ph, struct contact *c)
{
	ph->ops->undial(ph->ctx, c);
	for (struct plink *l = link_first(ph); l; l = l->next)
		if (l->contact == c)
			l->contact = NULL;
	contact_free(c);
}

/* Forgets a learned contact point: the node that announced it is gone. */
static void forget(struct phnx *ph, struct contact *c)
{
	struct contacts *all = ph->contacts;
	struct contact *last = all->heap[--all->n];

	if (last != c) {
		place(all, c->place, last);
		settle(all, last);
	}
	all->n_learned--;
	release(ph, c);
}

int contact_init(struct phnx *ph)
{
	ph->contacts = calloc(1, sizeof *ph->contacts);
	if (!ph->contacts)
		return -1;
	ph->contacts->learn = true;
	return 0;
}

void contact_free_all(struct phnx *ph)
{
	if (!ph->contacts)
		return;
	for (unsigned i = 0; i < ph->contacts->n; i++)
		release(ph, ph->contacts->heap[i]);
	free(ph->contacts->heap);
	free(ph->contacts);
}

/* ---- new ones ---- */

static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static bool heap_room(struct contacts *all)
{
	unsigned room = all->room ? 2 * all->room : 16;
	struct contact **heap =
		all->n == all->room ? realloc(all->heap, room * sizeof *heap) : NULL;

	if (!heap)
		return all->n < all->room;
	all->heap = heap;
	all->room = room;
	return true;
}

struct contact *contact_add(struct phnx *ph, const struct phnx_contact *at, ph_vp_t name)
{
	struct contacts *all = ph->contacts;
	struct contact *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->at = *at;
	bool copied = copy(&c->at.host, at->host);
	copied &= copy(&c->at.user, at->user);
	copied &= copy(&c->at.cert, at->cert);
	copied &= copy(&c->at.key, at->key);
	if (!copied || !heap_room(all)) {
		contact_free(c);
		return NULL;
	}
	c->name = name;
	c->backoff_us = least_backoff(c);
	if (!name) {
		c->index = all->n_configured++;
		c->fresh = all->fresh = true;
	}
	c->place = all->n++;
	all->heap[c->place] = c;
	set(ph, c, CONTACT_IDLE, core_now(ph));
	return c;
}

void contact_learn(struct phnx *ph, struct rentry *e)
{
	if (!ph->contacts->learn || e->learned || e->direct || e->payload.n_addrs == 0 ||
	    ph->contacts->n_learned >= MAX_LEARNED || ph->leaving)
		return;
	/* Of two nodes that learn of each other one dials first, and it tries one address after
	 * the other, so that two links are rare (TRICKS: one-address-first). */
	uint64_t now = core_now(ph), when = now + (e->name < ph->name ? LEARNED_DELAY : 0);
	e->learned = true;
	for (unsigned i = 0; i < e->payload.n_addrs; i++, when += ADDRESS_DELAY) {
		const struct address *a = e->payload.addrs + i;
		struct phnx_contact at = { .host = (char *)a->host,
					   .port = a->port,
					   .protocol = ph->contacts->learn_protocol };
		struct contact *c = a->port ? contact_add(ph, &at, e->name) : NULL;
		if (!c)
			continue;
		c->awaited_until = when > now ? when + OTHERS_LAST : 0;
		set(ph, c, CONTACT_IDLE, when);
		ph->contacts->n_learned++;
	}
}

/* ---- what becomes of them ---- */

void contact_dial_failed(struct phnx *ph, struct contact *c)
{
	struct rentry *e = c->peer ? route_find(ph, c->peer) : NULL;
	/* another node reaches it, so this node should too */
	bool known = e && e->nhops < UNREACHABLE;
	ph->contacts->failed = true;
	uint64_t longest = c->name && !c->peer ? SILENT_RETRY
			   : c->name && !known ? 2 * RETRY_MAX
			   : known	       ? RETRY_MAX / 2
					       : RETRY_MAX;

	set(ph, c, CONTACT_IDLE,
	    core_now(ph) + c->backoff_us + core_random(ph) % (c->backoff_us / 4));
	c->backoff_us = 2 * c->backoff_us < longest ? 2 * c->backoff_us : longest;
}

void contact_linked(struct phnx *ph, struct contact *c, ph_vp_t peer)
{
	c->peer = peer;
	set(ph, c, CONTACT_LINKED, UINT64_MAX);
	c->backoff_us = least_backoff(c);
	free(c->complaint);
	c->complaint = NULL;
}

void contact_where(const struct contact *c, const char *from, char where[WHERE_ROOM])
{
	bool six = c && strchr(c->at.host, ':');

	if (c && c->at.port)
		snprintf(where, WHERE_ROOM, "%s%.128s%s:%d", six ? "[" : "", c->at.host,
			 six ? "]" : "", c->at.port);
	else
		snprintf(where, WHERE_ROOM, "%.128s",
			 c	 ? c->at.host
			 : *from ? from
				 : "an unknown address");
}

void contact_complain(struct phnx *ph, struct contact *c, int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (c->complaint && !strcmp(c->complaint, text))
		return;
	free(c->complaint);
	c->complaint = strdup(text);
	core_report(ph, error, "%s", text);
}

/* The node can be reached again, by whatever way.  A direct connection may be possible too. */
void contact_alive(struct phnx *ph, ph_vp_t peer)
{
	for (unsigned i = 0; i < ph->contacts->n; i++) {
		struct contact *c = ph->contacts->heap[i];
		if (c->peer != peer || c->state != CONTACT_IDLE || !c->due_us)
			continue;
		c->backoff_us = RETRY_MIN;
		set(ph, c, CONTACT_IDLE, 0);	/* before all that wait */
		i = 0;		/* the heap has changed: begin anew */
	}
}

/* Returns whether l's node may be at that host.  Behind address translation many nodes have the
 * same address, so the host must be one that the node itself has announced, if it has announced
 * any. */
static bool may_be_at(struct phnx *ph, const struct plink *l, const char *host)
{
	const struct rentry *e = route_find(ph, l->peer);
	bool told = e && e->payload.n_addrs;

	for (unsigned i = 0; told && i < e->payload.n_addrs; i++)
		if (!strcmp(e->payload.addrs[i].host, host))
			return true;
	return !told;
}

bool contact_is_neighbour(struct phnx *ph, struct contact *c, const char *host)
{
	for (const struct plink *l = link_first(ph); l; l = l->next)
		if (l->port == c->at.port && l->state == LINK_UP && !strcmp(l->from, host) &&
		    may_be_at(ph, l, host)) {
			contact_linked(ph, c, l->peer);
			return true;
		}
	return false;
}

void contact_doubled(struct phnx *ph, struct contact *c, ph_vp_t peer)
{
	c->peer = peer;
	set(ph, c, CONTACT_IDLE, core_now(ph) + RETRY_MIN);
}

void contact_is_self(struct phnx *ph, struct contact *c)
{
	set(ph, c, CONTACT_SELF, UINT64_MAX);
}

void contact_link_down(struct phnx *ph, ph_vp_t peer, uint64_t lasted_us)
{
	for (unsigned i = 0; i < ph->contacts->n; i++) {
		struct contact *c = ph->contacts->heap[i];
		if (c->state != CONTACT_LINKED || c->peer != peer)
			continue;
		set(ph, c, CONTACT_IDLE,
		    core_now(ph) + (lasted_us < LASTED ? least_backoff(c) : RETRY_SOON));
		i = 0;		/* the heap has changed: begin anew */
	}
}

/* Returns whether the contact point's node may be about to dial this one: while connections are
 * being made, others may be on their way. */
static bool may_be_coming(const struct phnx *ph, const struct contact *c, uint64_t now)
{
	const struct contacts *all = ph->contacts;
	uint64_t late = core_lateness(ph, now);

	return c->awaited_until && now < c->awaited_until + MANY_TURNS * late &&
	       (all->hopeful || now < link_progress(ph) + OTHERS_FIRST + PAUSE_TURNS * late);
}

/* A contact point is due. */
static void try(struct phnx *ph, struct contact *c)
{
	struct rentry *e = c->name   ? route_find(ph, c->name)
			   : c->peer ? route_find(ph, c->peer)
				     : NULL;

	if (c->name && (!e || e->payload.gone)) {
		forget(ph, c);
	} else if (e && e->direct) {
		contact_linked(ph, c, e->name);
	} else if (!c->name && contact_is_neighbour(ph, c, c->at.host)) {
		/* its node has connected to this one already */
	} else if (may_be_coming(ph, c, core_now(ph))) {
		set(ph, c, CONTACT_IDLE, core_now(ph) + OTHERS_FIRST);
	} else {
		c->awaited_until = 0;
		set(ph, c, CONTACT_DIALING, UINT64_MAX);
		ph->ops->dial(ph->ctx, c);
	}
}

void contact_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct contacts *all = ph->contacts;

	if (all->fresh)
		settle_order(ph, now);
	while (!ph->closing && all->n && all->dialing < MAX_DIALING) {
		uint64_t due = all->heap[0]->due_us;
		if (now < due) {
			*next = due < *next ? due : *next;
			return;
		}
		try(ph, all->heap[0]);
	}
}

/* ---- what others ask ---- */

unsigned contact_count(const struct phnx *ph)
{
	return ph->contacts->n;
}

void contact_set_host(struct phnx *ph, const char *host)
{
	snprintf(ph->contacts->host, sizeof ph->contacts->host, "%s", host);
}

void contact_set_learning(struct phnx *ph, bool learn)
{
	ph->contacts->learn = learn;
}

void contact_set_protocol(struct phnx *ph, enum phnx_protocol protocol)
{
	ph->contacts->learn_protocol = protocol;
}

const struct phnx_contact *contact_at(const struct contact *c)
{
	return &c->at;
}

void *contact_transport(const struct contact *c)
{
	return c->transport;
}

void contact_set_transport(struct contact *c, void *transport)
{
	c->transport = transport;
}

bool contact_uses_ssh(const struct contact *c)
{
	return c->at.protocol == PHNX_SSH;
}

bool contact_is_dialing(const struct contact *c)
{
	return c->state == CONTACT_DIALING;
}

bool contact_is_first_try(const struct contact *c)
{
	return c->backoff_us <= RETRY_MIN;
}

const struct phnx_contact *contact_with_files(const struct phnx *ph)
{
	for (unsigned i = 0; i < ph->contacts->n; i++)
		if (ph->contacts->heap[i]->at.cert)
			return &ph->contacts->heap[i]->at;
	return NULL;
}
