/* detect.c - the failure detector: gossip in the double binary round-robin of P2P-MPI (section
 * 5.2).
 *
 * Every GOSSIP_INTERVAL a node increments its heartbeat and sends all heartbeats that it knows to
 * one other node.  Equation 5 of the paper chooses that node: at distances 1, 2, 4, ... clockwise
 * in the first half of a cycle, counter-clockwise in the second.  (BRR, equation 4, has the first
 * half alone; it is here to be measured.)  A heartbeat of n nodes reaches all within a cycle.  A
 * node whose heartbeat has not changed for the timeout, and that no link of this node has heard, is
 * declared gone, for all nodes and for good: its name is refused from then on.  The timeout is the
 * application's, or the paper's cleanup time, 3 ceil(log2 n) rounds, but not less than what a
 * loaded computer may need.
 */
#include "phoenix/routing/routing_private.h"

static unsigned log2_up(unsigned n)
{
	unsigned k = 0;

	while (1u << k < n)
		k++;
	return k;
}

unsigned detect_rounds(enum detect_protocol p, unsigned n)
{
	return (p == DETECT_BRR ? 1 : 2) * log2_up(n);
}

unsigned detect_target(enum detect_protocol p, unsigned s, unsigned n, unsigned r)
{
	unsigned half = log2_up(n);

	if (n < 2)
		return s;
	r %= detect_rounds(p, n);
	return r < half ? (s + (1u << r)) % n : (s + n - (1u << (r - half)) % n) % n;
}

uint64_t detect_cleanup(enum detect_protocol p, unsigned n, uint64_t interval_us)
{
	return (p == DETECT_BRR ? 2 : 3) * log2_up(n) * interval_us;
}

static uint64_t timeout_by_size(const struct detector *d, unsigned n)
{
	uint64_t cleanup = detect_cleanup(d->protocol, n, d->interval_us);

	return cleanup > d->least_us ? cleanup : d->least_us;
}

static int by_name(const void *a, const void *b)
{
	const struct rentry *const *x = a, *const *y = b;

	return (*x)->name < (*y)->name ? -1 : (*x)->name > (*y)->name;
}

static void gossip(struct phnx *ph)
{
	struct routes *t = ph->routes;
	struct rentry **members = malloc(t->n * sizeof(*members));
	struct writer w = { 0 };
	static const struct writer nothing;
	unsigned n = 0, s = 0;

	for (unsigned k = 0; members && k < t->n; k++)
		if (!t->list[k]->payload.gone)
			members[n++] = t->list[k];
	if (n < 2) {
		free(members);
		return;
	}
	qsort(members, n, sizeof(*members), by_name);
	while (members[s] != t->self)
		s++;
	t->self->heartbeat = ++ph->detector->beat;
	put_var(&w, n);
	for (unsigned k = 0; k < n; k++) {
		put64(&w, (uint64_t)members[k]->name);
		put_var(&w, members[k]->heartbeat);
	}
	ph_vp_t target = members[detect_target(ph->detector->protocol, s, n,
						ph->detector->round++)]->name;
	struct pbuf *b = w.bad || target == ph->name ? NULL : pbuf_new(w.data, w.len);
	if (b)
		route_frame(ph, target, FRAME_GOSSIP, &nothing, b);
	pbuf_put(b);
	free(w.data);
	free(members);
}

int detect_on_gossip(struct phnx *ph, struct reader *r)
{
	uint64_t n = get_var(r);

	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct rentry *e = route_find(ph, (ph_vp_t)get64(r));
		uint64_t beat = get_var(r);
		if (!e || r->bad || e == ph->routes->self || beat <= e->heartbeat)
			continue;
		e->heartbeat = beat;
		e->heard_us = core_now(ph);
	}
	return r->bad ? -1 : 0;
}

/* Replaces the consensus phase of the paper: a link that answers its pings proves that its node
 * is alive. */
static bool heard_directly(const struct rentry *e, uint64_t now, uint64_t timeout_us)
{
	return e->direct && now < e->direct->heard_us + timeout_us;
}

int64_t detect_silence(struct phnx *ph, ph_vp_t name)
{
	const struct rentry *e = route_find(ph, name);

	if (!e || e == ph->routes->self || e->payload.gone)
		return -1;
	return (int64_t)(core_now(ph) - (e->direct ? e->direct->heard_us : e->heard_us));
}

/* Does not blame others for silence while this node's own host was suspended
 * (TRICKS: own-silence). */
static void forgive(struct phnx *ph, uint64_t us)
{
	for (unsigned k = 0; k < ph->routes->n; k++)
		ph->routes->list[k]->heard_us += us;
	link_forgive(ph, us);
}

static unsigned n_members(const struct routes *t)
{
	unsigned n = 0;

	for (unsigned k = 0; k < t->n; k++)
		n += !t->list[k]->payload.gone;
	return n;
}

/* Declares gone who was silent for too long. */
static void look(struct phnx *ph, uint64_t now)
{
	struct detector *d = ph->detector;
	uint64_t timeout_us = d->by_size ? timeout_by_size(d, n_members(ph->routes))
					 : d->timeout_us;

	for (unsigned k = 0; timeout_us && k < ph->routes->n; k++) {
		struct rentry *e = ph->routes->list[k];

		if (e != ph->routes->self && !e->payload.gone && now >= e->heard_us + timeout_us &&
		    !heard_directly(e, now, timeout_us))
			route_gone(ph, e);
	}
}

void detect_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct detector *d = ph->detector;

	if (!ph->detector->interval_us || ph->closing)
		return;
	if (now >= d->next_us) {
		if (d->next_us && now >= d->next_us + ph->detector->interval_us)
			forgive(ph, now - d->next_us);
		d->next_us = now + ph->detector->interval_us;
		gossip(ph);
		look(ph, now);
	}
	*next = d->next_us < *next ? d->next_us : *next;
}

void detect_set_timeout(struct phnx *ph, uint64_t timeout_us)
{
	ph->detector->timeout_us = timeout_us;
	ph->detector->by_size = false;
}

void detect_by_size(struct phnx *ph)
{
	ph->detector->by_size = true;
}

void detect_set_protocol(struct phnx *ph, enum detect_protocol p, uint64_t least_us)
{
	ph->detector->protocol = p;
	ph->detector->least_us = least_us;
}

int detect_init(struct phnx *ph)
{
	ph->detector = calloc(1, sizeof *ph->detector);
	if (!ph->detector)
		return -1;
	ph->detector->interval_us = GOSSIP_INTERVAL;
	ph->detector->least_us = CLEANUP_LEAST;
	return 0;
}

void detect_free(struct phnx *ph)
{
	free(ph->detector);
}
