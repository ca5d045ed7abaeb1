/* node.c - a whole node: its set of virtual nodes, its timers, its end. */
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/core.h"

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
	ph->owing_end = &ph->owing;
	ph->flows.received_end = &ph->flows.received;
	ph->flows.ack_soonest = UINT64_MAX;
	ph->learn = true;
	ph->gossip_us = GOSSIP_INTERVAL;
	if (route_init(ph)) {
		route_free(ph);
		free(ph);
		return NULL;
	}
	return ph;
}

void phnx_free(struct phnx *ph)
{
	ph->closing = true;
	while (ph->links) {
		ph->ops->close(ph->ctx, ph->links);
		phnx_link_lost(ph->links);
	}
	contact_free_all(ph);
	flow_free(ph);
	collective_free(ph);
	route_free(ph);
	doubt_free(ph);
	for (int i = 0; i < HANDLER_TABLE; i++)
		for (struct handler *h; (h = ph->handlers[i]); free(h))
			ph->handlers[i] = h->next;
	while (ph->spare_frames) {
		struct outframe *f = ph->spare_frames;
		ph->spare_frames = f->next;
		free(f);
	}
	block_trim();
	EVP_CIPHER_CTX_free(ph->seal);
	free(ph->scratch.data);
	free(ph->migration.state);
	free(ph->me.vps.r);
	free(ph);
}

/* ---- virtual nodes ---- */

int phnx_become(struct phnx *ph, ph_vps_t vps)
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
	return phnx_become(ph, ph_vps_create_union(&ph->me.vps, (ph_vps_t)vps));
}

int phnx_release(struct phnx *ph, const struct ph_vps *vps)
{
	if (!in_bounds(ph, vps))
		return PH_EBOUND;
	int error = phnx_become(ph, ph_vps_create_diff(&ph->me.vps, (ph_vps_t)vps));
	if (!error)
		flow_release(ph);
	return error;
}

int phnx_send(struct phnx *ph, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags, uint64_t deadline_us)
{
	ph_vp_t least_name = ph->upper > 1LL << 62 ? ph->upper : 1LL << 62;

	if ((dest < ph->lower || dest >= ph->upper) && dest < least_name)
		return PH_EBOUND;
	if (body->len > PH_MSG_MAX)
		return PH_ETOOBIG;
	if (!flow_has_room(ph, body->len))
		return PH_EAGAIN;
	return flow_send(ph, dest, ph->name, body, tag, flags, deadline_us);
}

bool phnx_calls_back(const struct phnx *ph)
{
	bool any = ph->detector.fn || ph->migration.app.give || ph->migration.app.take;

	for (int i = 0; i < HANDLER_TABLE; i++)
		any |= ph->handlers[i] != NULL;
	return any;
}

void phnx_goodbye(struct phnx *ph)
{
	flow_farewell(ph);
	free(ph->me.vps.r);
	ph->me = (struct payload){ .gone = true };
	ph->closing = true;	/* no new links */
	route_self_changed(ph);
	ph->routes.self->nhops = UNREACHABLE;
	route_tell(ph);		/* there is no later: whoever does not hear it waits for this node for ever */
}

/* ---- timers ---- */

/* Where many nodes share a processor, each comes late to what is due; then others may be about to do what they seem not to do, and
 * whoever takes a pause for an end must wait for a longer one.  What a node sees of that itself, it takes for what holds for all;
 * half of it after a second, if it has seen no more; and a computer that stood still for long does not count for more than a
 * second. */
static void note_lateness(struct phnx *ph, uint64_t now)
{
	uint64_t late = ph->due && now > ph->due ? now - ph->due : 0, own_work = LEAST_LATE + (uint64_t)ph->n_links * LEAST_LATE_PER_LINK;

	late = late < MOST_LATE ? late : MOST_LATE;
	if (late < own_work || late < phnx_lateness(ph, now))
		return;
	ph->late_us = late;
	ph->late_at = now;
}

uint64_t phnx_lateness(const struct phnx *ph, uint64_t now)
{
	uint64_t seconds = (now - ph->late_at) / 1000000;

	return seconds < 64 ? ph->late_us >> seconds : 0;
}

uint64_t phnx_tick(struct phnx *ph)
{
	uint64_t now = phnx_now(ph), next = now + PING_INTERVAL;

	flow_catch_up(ph);
	contact_tick(ph, now, &next);
	link_tick(ph, now, &next);
	migrate_tick(ph, now, &next);
	detect_tick(ph, now, &next);
	flow_tick(ph, now, &next);
	reduce_tick(ph, now, &next);
	route_tick(ph, now, &next);
	if (ph->flows.pump || ph->flows.version_seen != ph->routes.version)
		next = now;
	return ph->due = next;
}

/* With hundreds of nodes a tick looks at hundreds of timers: not after every frame. */
static bool must_tick(const struct phnx *ph, uint64_t now)
{
	return now >= ph->due || now >= ph->flows.ack_soonest || ph->routes.n_dirty || ph->flows.version_seen != ph->routes.version;
}

bool phnx_can_wait(struct phnx *ph)
{
	return !ph->owing && !ph->flows.pump && !must_tick(ph, phnx_now(ph));
}

uint64_t phnx_poll(struct phnx *ph)
{
	uint64_t now = phnx_now(ph);

	link_prove(ph);
	note_lateness(ph, now);
	flow_catch_up(ph);
	if (must_tick(ph, now))
		return phnx_tick(ph);
	if (ph->flows.pump)
		flow_pump(ph);
	if (ph->flows.pump)
		return now;
	return ph->due < ph->flows.ack_soonest ? ph->due : ph->flows.ack_soonest;
}
