/* node.c - a whole node: its contact points, its set of virtual nodes, its timers, its end. */
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/core.h"

uint64_t phnx_now(struct phnx *ph)
{
	return ph->ops->now(ph->ctx);
}

uint64_t phnx_random(struct phnx *ph)
{
	uint64_t v;

	ph->ops->random(ph->ctx, &v, sizeof v);
	return v;
}

void phnx_report(struct phnx *ph, int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ph->ops->report(ph->ctx, error, text);
}

struct phnx *phnx_new(const struct phnx_ops *ops, void *ctx, ph_vp_t lower, ph_vp_t upper)
{
	struct phnx *ph = calloc(1, sizeof *ph);
	ph_vp_t least = upper > 1LL << 62 ? upper : 1LL << 62;

	if (!ph)
		return NULL;
	ph->ops = ops;
	ph->ctx = ctx;
	ph->lower = lower;
	ph->upper = upper;
	ph->name = least + (ph_vp_t)(phnx_random(ph) % (uint64_t)(INT64_MAX - least));
	ph->flows.received_end = &ph->flows.received;
	ph->flows.ack_soonest = UINT64_MAX;
	ph->learn = true;
	ph->gossip_us = GOSSIP_INTERVAL;
	if (route_init(ph)) {
		free(ph);
		return NULL;
	}
	return ph;
}

static void contact_free(struct phnx *ph, struct contact *c)
{
	ph->ops->undial(ph->ctx, c);
	for (struct plink *l = ph->links; l; l = l->next)
		if (l->contact == c)
			l->contact = NULL;
	free(c->at.host);
	free(c->at.user);
	free(c->at.cert);
	free(c->at.key);
	free(c);
}

void phnx_free(struct phnx *ph)
{
	ph->closing = true;
	while (ph->links) {
		ph->ops->close(ph->ctx, ph->links);
		phnx_link_lost(ph->links);
	}
	while (ph->contacts) {
		struct contact *c = ph->contacts;
		ph->contacts = c->next;
		contact_free(ph, c);
	}
	flow_free(ph);
	collective_free(ph);
	route_free(ph);
	while (ph->handlers) {
		struct handler *h = ph->handlers;
		ph->handlers = h->next;
		free(h);
	}
	free(ph->migration.state);
	free(ph->me.vps.r);
	free(ph);
}

/* ---- virtual nodes ---- */

static int set_mine(struct phnx *ph, ph_vps_t vps)
{
	if (!vps)
		return PH_ENOMEM;
	if (vps->n > MAX_RANGES) {
		ph_vps_destroy(vps);
		return PH_ETOOBIG;
	}
	free(ph->me.vps.r);
	ph->me.vps = *vps;
	free(vps);
	ph->me.stamp = ++ph->routes.clock;
	route_self_changed(ph);
	ph->flows.pump = true;
	return 0;
}

static bool in_bounds(struct phnx *ph, const struct ph_vps *vps)
{
	return vps->n == 0 || (vps->r[0].lo >= ph->lower && vps->r[vps->n - 1].hi <= ph->upper);
}

int phnx_assume(struct phnx *ph, const struct ph_vps *vps)
{
	if (!in_bounds(ph, vps))
		return PH_EBOUND;
	return set_mine(ph, ph_vps_create_union(&ph->me.vps, (ph_vps_t)vps));
}

int phnx_release(struct phnx *ph, const struct ph_vps *vps)
{
	if (!in_bounds(ph, vps))
		return PH_EBOUND;
	int error = set_mine(ph, ph_vps_create_diff(&ph->me.vps, (ph_vps_t)vps));
	if (!error)
		flow_release(ph, vps);
	return error;
}

int phnx_send(struct phnx *ph, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags, uint64_t deadline_us)
{
	ph_vp_t least_name = ph->upper > 1LL << 62 ? ph->upper : 1LL << 62;

	if ((dest < ph->lower || dest >= ph->upper) && dest < least_name)
		return PH_EBOUND;
	if (body->len > PH_MSG_MAX)
		return PH_ETOOBIG;
	if (ph->flows.out_bytes + body->len > SEND_QUEUE_BYTES && ph->flows.out_bytes)
		return PH_EAGAIN;
	return flow_send(ph, dest, ph->name, body, tag, flags, deadline_us);
}

void phnx_goodbye(struct phnx *ph)
{
	flow_ack_all(ph);
	free(ph->me.vps.r);
	ph->me = (struct payload){ .gone = true };
	ph->closing = true;	/* no new links */
	route_self_changed(ph);
	ph->routes.self->nhops = UNREACHABLE;
	phnx_tick(ph);
}

/* ---- contact points ---- */

struct contact *phnx_add_contact(struct phnx *ph, const struct phnx_contact *at, ph_vp_t name)
{
	struct contact *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->at = *at;
	c->at.host = strdup(at->host);
	c->at.user = at->user ? strdup(at->user) : NULL;
	c->at.cert = at->cert ? strdup(at->cert) : NULL;
	c->at.key = at->key ? strdup(at->key) : NULL;
	c->name = name;
	c->backoff_us = RETRY_MIN;
	/* Of two nodes that learn of each other one dials first, so that there are seldom two links. */
	c->retry_us = phnx_now(ph) + (name && name < ph->name ? 200000 : 0);
	c->next = ph->contacts;
	ph->contacts = c;
	ph->due = 0;
	return c;
}

void contact_learn(struct phnx *ph, const struct rentry *e)
{
	if (!ph->learn || e->learned || e->direct || e->payload.n_addrs == 0 || ph->n_learned >= MAX_LEARNED || ph->leaving)
		return;
	((struct rentry *)e)->learned = true;
	for (unsigned i = 0; i < e->payload.n_addrs; i++) {
		const struct address *a = e->payload.addrs + i;
		struct phnx_contact at = { .host = (char *)a->host, .port = a->port, .protocol = ph->learn_protocol };
		if (a->port && phnx_add_contact(ph, &at, e->name))
			ph->n_learned++;
	}
}

void phnx_dial_failed(struct phnx *ph, struct contact *c)
{
	ph->due = 0;
	c->state = CONTACT_IDLE;
	c->retry_us = UINT64_MAX;	/* contact_tick() sets the time */
}

/* true: it has just been dialed */
static bool tick_contact(struct phnx *ph, struct contact *c, uint64_t now)
{
	struct rentry *e = c->name ? route_find(ph, c->name) : c->peer ? route_find(ph, c->peer) : NULL;

	if (c->state == CONTACT_IDLE && c->retry_us == UINT64_MAX) {
		uint64_t longest = c->name ? 8 * RETRY_MAX : RETRY_MAX;
		c->retry_us = now + c->backoff_us + phnx_random(ph) % (c->backoff_us / 4);
		c->backoff_us = 2 * c->backoff_us < longest ? 2 * c->backoff_us : longest;
	}
	if (c->state == CONTACT_LINKED && !(e && e->direct) && now >= c->retry_us) {
		c->state = CONTACT_IDLE;
		c->retry_us = now;
	}
	if (c->state != CONTACT_IDLE || now < c->retry_us || ph->closing || ph->dialing >= MAX_DIALING)
		return false;
	if (e && e->direct) {
		c->state = CONTACT_LINKED;
		return false;
	}
	c->state = CONTACT_DIALING;
	ph->dialing++;
	ph->ops->dial(ph->ctx, c);
	return true;
}

/* Who was dialed goes to the end of the list: with many silent contacts, each has its turn. */
void contact_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct contact *dialed = NULL, **end = &dialed;

	ph->dialing = 0;
	for (struct contact *c = ph->contacts; c; c = c->next)
		ph->dialing += c->state == CONTACT_DIALING;
	struct contact **at = &ph->contacts;
	while (*at) {
		struct contact *c = *at;
		if (c->name && c->state == CONTACT_IDLE) {
			struct rentry *e = route_find(ph, c->name);
			if (!e || e->payload.gone) {	/* the node that it was learned from is gone */
				*at = c->next;
				contact_free(ph, c);
				ph->n_learned--;
				continue;
			}
		}
		if (tick_contact(ph, c, now)) {
			*at = c->next;
			c->next = NULL;
			*end = c;
			end = &c->next;
			continue;
		}
		if (c->state == CONTACT_IDLE && c->retry_us < *next)
			*next = c->retry_us > now ? c->retry_us : now + RETRY_MIN;
		at = &c->next;
	}
	*at = dialed;
}

uint64_t phnx_tick(struct phnx *ph)
{
	uint64_t now = phnx_now(ph), next = now + PING_INTERVAL;

	contact_tick(ph, now, &next);
	link_tick(ph, now, &next);
	migrate_tick(ph, now, &next);
	detect_tick(ph, now, &next);
	flow_tick(ph, now, &next);
	route_tick(ph, now, &next);
	if (ph->flows.pump || ph->flows.version_seen != ph->routes.version)
		next = now;
	return ph->due = next;
}

/* With hundreds of nodes a tick looks at hundreds of timers: not after every frame. */
uint64_t phnx_poll(struct phnx *ph)
{
	uint64_t now = phnx_now(ph);

	if (now >= ph->due || now >= ph->flows.ack_soonest || ph->routes.dirty || ph->flows.pump ||
	    ph->flows.version_seen != ph->routes.version)
		return phnx_tick(ph);
	return ph->due < ph->flows.ack_soonest ? ph->due : ph->flows.ack_soonest;
}
