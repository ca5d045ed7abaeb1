/* life.c - a whole node: the layers put together, its timers, its end. */
#include <stdlib.h>
#include "phoenix/flow/flow.h"
#include "phoenix/link/link.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/contact.h"
#include "phoenix/routing/detect.h"
#include "phoenix/routing/routes.h"
#include "phoenix/routing/routing_upcalls.h"
#include "phoenix/services/services.h"

struct phnx *node_new(const struct phnx_ops *ops, void *ctx, ph_vp_t lower, ph_vp_t upper)
{
	struct phnx *ph = calloc(1, sizeof *ph);
	ph_vp_t least = upper > 1LL << 62 ? upper : 1LL << 62;

	if (!ph)
		return NULL;
	ph->ops = ops;
	ph->ctx = ctx;
	ph->lower = lower;
	ph->upper = upper;
	ph->name = least + (ph_vp_t)(core_random(ph) % (uint64_t)(INT64_MAX - least));
	if (link_init(ph) || route_init(ph) || contact_init(ph) || detect_init(ph) ||
	    flow_init(ph) || doubt_init(ph) || services_init(ph)) {
		node_free(ph);
		return NULL;
	}
	return ph;
}

void node_free(struct phnx *ph)
{
	ph->closing = true;
	link_free_all(ph);
	contact_free_all(ph);
	flow_free(ph);
	services_free(ph);
	route_free(ph);
	detect_free(ph);
	doubt_free(ph);
	link_free(ph);
	block_trim();
	free(ph->me.vps.r);
	free(ph);
}

bool node_calls_back(const struct phnx *ph)
{
	return flow_calls_back(ph) || services_call_back(ph);
}

void node_peer_gone(struct phnx *ph, ph_vp_t name)
{
	flow_peer_gone(ph, name);
	services_peer_gone(ph, name);
	flow_tell_gone(ph, name);
}

void node_goodbye(struct phnx *ph)
{
	flow_farewell(ph);
	free(ph->me.vps.r);
	ph->me = (struct payload){ .gone = true };
	ph->closing = true;	/* no new links */
	route_say_goodbye(ph);
}

/* ---- timers ---- */

uint64_t node_tick(struct phnx *ph)
{
	uint64_t now = core_now(ph), next = now + PING_INTERVAL;

	flow_catch_up(ph);
	contact_tick(ph, now, &next);
	link_tick(ph, now, &next);
	migrate_tick(ph, now, &next);
	detect_tick(ph, now, &next);
	flow_tick(ph, now, &next);
	reduce_tick(ph, now, &next);
	route_tick(ph, now, &next);
	if (ph->pump || ph->ways_seen != ph->ways)
		next = now;
	return ph->due = next;
}

/* With hundreds of nodes a tick looks at hundreds of timers: not after every frame. */
static bool must_tick(const struct phnx *ph, uint64_t now)
{
	return now >= ph->due || now >= ph->ack_due || ph->ways_seen != ph->ways || ph->untold;
}

bool node_can_wait(struct phnx *ph)
{
	return !link_owes_proof(ph) && !ph->pump && !must_tick(ph, core_now(ph));
}

uint64_t node_poll(struct phnx *ph)
{
	uint64_t now = core_now(ph);

	link_prove(ph);
	if (now > ph->due)
		core_note_lateness(ph, now, link_count(ph));
	flow_catch_up(ph);
	if (must_tick(ph, now))
		return node_tick(ph);
	if (ph->pump)
		flow_pump(ph);
	if (ph->pump)
		return now;
	return ph->due < ph->ack_due ? ph->due : ph->ack_due;
}
