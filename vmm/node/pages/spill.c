/* spill.c - see spill.h. */
#include "vmm/node/pages/spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "base/mechanisms.h"
#include "dsm/dsm.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/extract.h"
#include "vmm/node/pages/room.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/pages/wants.h"

enum { TICK_MS = 1, OFFER_LIMIT_MS = 1000, LOOKS = 2 * SPILL_WINDOW };

struct spill {
	struct room room;
	struct loop_event *tick;
	unsigned offers;
	struct offer { gfn_t gfn; unsigned to; uint64_t since_ns; } offer[SPILL_WINDOW];
	uint32_t nodes;   /* the hosts that share the pages, at the last step */
	uint32_t told_to; /* bit set: hosts that know what this one holds */
	uint32_t told;	  /* pages that this host said it holds, and those adopted since */
	uint32_t adopted;
	uint32_t heard;   /* bit set: hosts that have said what they hold */
	uint64_t went_ns; /* when the last page left */
	uint64_t no_room_ns; /* since when no host has room for what must leave; 0: some has */
	bool warned;
	struct spill_counts counts;
};

static struct share *share_of(const struct node *node)
{
	return pagestore_share(node);
}

static bool is_on(const struct node *node)
{
	return node->spill && mechanism_on(node->o.machine.without, MECHANISM_SPILL);
}

static bool is_limited(const struct node *node)
{
	return share_limit(share_of(node)) < node->ram_pages;
}

/* Returns whether this host is one of those that share the pages: it has joined, and does not
 * leave. */
static bool takes_part(const struct node *node)
{
	return dsm_nodes(node->dsm) >> node->o.node & 1;
}

/* ---- copies ---- */

static bool is_awaited(const struct node *node, gfn_t gfn)
{
	return wants_any_waits_for(node, gfn) || wants_unused(node, gfn);
}

/* A copy that the page protocol keeps is owned here by now, or soon will be.  If a CPU has yet to
 * run with the copy that is to go first, all stay for now. */
static void drop_copies(struct node *node)
{
	gfn_t gfn[SHARE_TOGETHER];
	unsigned n, i;

	do {
		n = share_excess(share_of(node), gfn);
		extract_gather(pagestore_extract(node));
		for (i = 0; i < n && !is_awaited(node, gfn[i]); i++)
			if (!dsm_drop(node->dsm, gfn[i]))
				share_owned(share_of(node), gfn[i]);
		extract_gathered(pagestore_extract(node));
	} while (n && i == n);
}

/* ---- what the hosts tell each other ---- */

static uint32_t kept(const struct node *node)
{
	return share_kept(share_of(node)) + dsm_coming(node->dsm);
}

static void send_room(struct node *node, unsigned to, uint32_t refused)
{
	const struct msg_page_room body = { .share = share_limit(share_of(node)),
					    .kept = kept(node),
					    .refused = refused };

	net_send(node->net, VNODE_DAEMON(to), MSG_PAGE_ROOM, &body, sizeof body, NULL, 0);
	node->spill->told_to |= 1u << to;
}

/* The set of hosts has changed: what is known of those that are gone counts no more. */
static void see_nodes(struct node *node)
{
	struct spill *spill = node->spill;
	uint32_t nodes = dsm_nodes(node->dsm);

	for (unsigned host = 0; host < MAX_NODES && nodes != spill->nodes; host++)
		if (!(nodes >> host & 1))
			room_forget(&spill->room, host);
	spill->told_to &= nodes;
	spill->heard &= nodes;
	spill->nodes = nodes;
}

/* A host without a limit of its own tells those alone that have one, and so have told it. */
static void tell(struct node *node)
{
	struct spill *spill = node->spill;
	uint32_t to = spill->nodes & ~(1u << node->o.node);

	if (!is_limited(node))
		to &= spill->heard;
	if (room_must_tell(share_limit(share_of(node)), spill->told, kept(node), spill->adopted)) {
		spill->told = kept(node);
		spill->adopted = 0;
	} else {
		to &= ~spill->told_to;
	}
	for (; to; to &= to - 1)
		send_room(node, (unsigned)__builtin_ctz(to), 0);
}

/* ---- offers ---- */

static void forget_offer(struct spill *spill, unsigned at)
{
	spill->offer[at] = spill->offer[--spill->offers];
}

/* Forgets the offers of pages that have left.  One that has no effect for long is given up: the
 * home had no host to which it could pass it on. */
static void look_at_offers(struct node *node)
{
	struct spill *spill = node->spill;
	uint64_t now = node_now_ns(node);

	for (unsigned i = spill->offers; i-- > 0;) {
		const struct offer *offer = &spill->offer[i];

		if (!share_is_offered(share_of(node), offer->gfn)) {
			spill->counts.spills++;
			spill->went_ns = now;
			forget_offer(spill, i);
		} else if (now - offer->since_ns > OFFER_LIMIT_MS * (uint64_t)LOOP_MS) {
			share_stays(share_of(node), offer->gfn);
			forget_offer(spill, i);
		}
	}
}

static unsigned choose(const struct node *node, unsigned first)
{
	return room_choose(&node->spill->room, node->spill->nodes & ~(1u << node->o.node), first,
			   share_limit(share_of(node)));
}

/* Offers the page, or renews it if it cannot go now.  Its home costs the fewest messages: three in
 * place of six, and one less when the page is fetched again.  If that is here, neighbours go to the
 * same host, `other`, which takes and gives them together.  Returns false if no host has room. */
static bool offer(struct node *node, gfn_t gfn, unsigned other)
{
	struct spill *spill = node->spill;
	unsigned home = dsm_node_of(node->dsm, dsm_home(gfn, node->ram_pages)),
		 host = choose(node, home == node->o.node ? other : home);

	if (host == ROOM_NOBODY)
		return false;
	spill->no_room_ns = 0;
	if (!dsm_owns_quietly(node->dsm, gfn) || is_awaited(node, gfn)) {
		share_renew(share_of(node), gfn);
		return true;
	}
	share_offers(share_of(node), gfn);
	room_sent(&spill->room, host, 1);
	spill->offer[spill->offers++] = (struct offer){ gfn, host, node_now_ns(node) };
	dsm_handover(node->dsm, gfn, host);
	return true;
}

/* Offers pages when half of those that were offered have left, so that many leave together. */
static void offer_some(struct node *node)
{
	struct spill *spill = node->spill;
	bool room = true;
	unsigned other;
	gfn_t gfn;

	if (spill->offers > SPILL_WINDOW / 2)
		return;
	if (!share_spills(share_of(node), &gfn)) {
		spill->no_room_ns = 0;
		return;
	}
	other = choose(node, ROOM_NOBODY);
	node->outside->cork(node);
	for (unsigned looks = LOOKS; room && looks && spill->offers < SPILL_WINDOW &&
	     share_spills(share_of(node), &gfn); looks--)
		room = offer(node, gfn, other);
	node->outside->uncork(node);
	if (!room && !spill->no_room_ns && !spill->offers)
		spill->no_room_ns = node_now_ns(node);
}

/* (TRICKS: page-in-flight) */
static bool is_paused(const struct node *node)
{
	return freeze_holds(node);
}

void spill_on_room(struct node *node, const struct message *m, const struct msg_page_room *room)
{
	struct spill *spill = node->spill;
	uint32_t offered = 0;

	if (!spill || m->from >= MAX_NODES || m->from == node->o.node)
		return;
	for (unsigned i = spill->offers; i-- > 0;) {
		gfn_t gfn = spill->offer[i].gfn;

		if (gfn + 1 == room->refused) {
			share_stays(share_of(node), gfn);
			forget_offer(spill, i);
			spill->counts.refused++;
		} else {
			offered += spill->offer[i].to == m->from;
		}
	}
	room_told(&spill->room, m->from, room->share, room->kept, offered);
	spill->heard |= 1u << m->from;
	spill_step(node);
}

/* Returns whether one page more fits in.  Copies can be dropped for it, but are here until then. */
static bool has_room(const struct node *node)
{
	const struct share *share = share_of(node);

	return kept(node) < share_limit(share) &&
	       share_held(share) + dsm_coming(node->dsm) < share_most(share_limit(share));
}

bool spill_adopts(struct node *node, gfn_t gfn, unsigned owner, bool must)
{
	struct spill *spill = node->spill;
	struct share *share = share_of(node);

	if (!dsm_is_elsewhere(node->dsm, gfn))
		return true;
	if (!must && is_on(node) && !has_room(node)) {
		if (dsm_nodes(node->dsm) >> owner & 1)
			send_room(node, owner, gfn + 1);
		return false;
	}
	spill->counts.forced += must;
	spill->adopted++;
	share_adopts(share, gfn);
	return true;
}

/* ---- CPUs ---- */

static bool since_ms(const struct node *node, uint64_t then_ns, uint32_t ms)
{
	return node_now_ns(node) - then_ns > ms * (uint64_t)LOOP_MS;
}

static void warn(struct node *node)
{
	struct spill *spill = node->spill;

	if (spill->warned)
		return;
	spill->warned = true;
	log_warn("no host has room for more of the guest's memory: this one will hold more than "
		 "its share of %u MiB", share_limit(share_of(node)) >> (20 - PAGE_BITS));
}

/* Returns whether a CPU gets its page though this host is full; spill.h says why. */
static bool must_not_wait(struct node *node, uint64_t since_ns)
{
	const struct spill *spill = node->spill;

	if (is_paused(node) || !takes_part(node))
		return true;
	if (spill->no_room_ns && since_ms(node, spill->no_room_ns, SPILL_NEWS_MS)) {
		warn(node);
		return true;
	}
	return since_ms(node, since_ns > spill->went_ns ? since_ns : spill->went_ns,
			SPILL_PATIENCE_MS);
}

static bool may_come(const struct node *node, gfn_t gfn)
{
	return !is_on(node) || !is_limited(node) || !dsm_is_elsewhere(node->dsm, gfn) ||
	       !share_full(share_of(node), dsm_coming(node->dsm)) ||
	       fault_on(FAULT_SPILL_WAITS_NOT);
}

/* (TRICKS: room-before-request) */
bool spill_lets(struct node *node, gfn_t gfn, uint64_t since_ns)
{
	return may_come(node, gfn) || must_not_wait(node, since_ns);
}

void spill_fetches(struct node *node, gfn_t gfn)
{
	node->spill->counts.excused += !may_come(node, gfn);
}

bool spill_lets_ahead(struct node *node, gfn_t gfn)
{
	return may_come(node, gfn);
}

bool spill_is_near(const struct node *node)
{
	const struct share *share = share_of(node);

	return is_on(node) && is_limited(node) &&
	       share_held(share) + MAX_AHEAD + dsm_coming(node->dsm) >= share_limit(share);
}

struct spill_counts spill_counts(const struct node *node)
{
	return node->spill ? node->spill->counts : (struct spill_counts){ 0 };
}

/* ---- all together ---- */

/* While something is to be waited for, looks again soon. */
static void set_tick(struct node *node)
{
	const struct spill *spill = node->spill;
	gfn_t gfn;
	bool waits = spill->offers || wants_put_off(node) ||
		     (is_paused(node) && share_spills(share_of(node), &gfn));

	if (waits && !loop_is_armed(spill->tick) &&
	    loop_after(spill->tick, TICK_MS * (uint64_t)LOOP_MS))
		die("cannot set a timer: %s", strerror(errno));
}

void spill_step(struct node *node)
{
	if (!node->spill || node->ending)
		return;
	drop_copies(node);
	if (!is_on(node))
		return;
	look_at_offers(node);
	see_nodes(node);
	if (takes_part(node)) {
		tell(node);
		if (is_limited(node) && !is_paused(node))
			offer_some(node);
	}
	wants_go_on(node);
	set_tick(node);
}

static void on_tick(void *arg)
{
	spill_step(arg);
}

void spill_start(struct node *node)
{
	node->spill = calloc(1, sizeof *node->spill);
	if (!node->spill || !(node->spill->tick = loop_timer(&node->loop, on_tick, node)))
		die("out of memory");
}

void spill_end(struct node *node)
{
	if (!node->spill)
		return;
	loop_remove(node->spill->tick);
	free(node->spill);
	node->spill = NULL;
}
