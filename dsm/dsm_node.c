/* dsm_node.c - a page at this node: translates messages and wants into events of node_table.def
 * and carries out their actions. */
#include "dsm/dsm_private.h"

#include "base/faultpoint.h"
#include "base/log.h"

/* An event with its parameters: the node that runs the transaction, and a page's contents if the
 * message has any. */
struct occasion {
	struct dsm *dsm;
	struct node_page *page;
	gfn_t gfn;
	uint32_t txn;
	uint8_t requester, acks;
	const void *payload;
};

/* Send a request to the page's home.  The message names the requester: it may be forwarded, so
 * the connection does not identify it. */
static void to_home(struct occasion *o, uint16_t type, uint32_t txn, unsigned target)
{
	struct msg_dsm body = {
		.gfn = o->gfn, .txn = txn, .requester = o->dsm->node, .acks = target
	};

	dsm_send(o->dsm, dsm_home(o->gfn, o->dsm->n_pages), type, &body, NULL);
}

static void to_requester(struct occasion *o, uint16_t type, const void *payload)
{
	struct msg_dsm body = {
		.gfn = o->gfn, .txn = o->txn, .requester = o->requester, .acks = o->acks
	};

	dsm_send(o->dsm, VNODE_DAEMON(o->requester), type, &body, payload);
}

static void ask(struct occasion *o, uint16_t type)
{
	o->dsm->stats.requests++;
	o->page->acks_due = 0;
	to_home(o, type, 0, 0);
}

static void give(struct occasion *o, enum page_right kept, uint16_t grant)
{
	o->dsm->host.take(o->dsm->host.ctx, o->gfn, kept, o->dsm->contents);
	to_requester(o, grant, o->dsm->contents);
}

static void fill(struct occasion *o, const void *contents, enum page_right right)
{
	o->dsm->host.fill(o->dsm->host.ctx, o->gfn, contents, right);
}

static void ready(struct occasion *o)
{
	enum page_right right = (enum page_right)node_state_right[o->page->state];

	if (o->page->wanted <= right)
		o->page->wanted = PAGE_NONE;
	o->dsm->host.ready(o->dsm->host.ctx, o->gfn, right);
}

static void act(struct occasion *o, enum node_action action)
{
	struct dsm *dsm = o->dsm;

	switch (action) {
	case NODE_DO_NOTHING:
		return;
	case NODE_DO_ASK_READ:
		return ask(o, MSG_DSM_READ);
	case NODE_DO_ASK_WRITE:
		return ask(o, MSG_DSM_WRITE);
	case NODE_DO_ASK_UPGRADE:
		return ask(o, MSG_DSM_UPGRADE);
	case NODE_DO_ASK_HANDOVER:
		return to_home(o, MSG_DSM_HANDOVER, 0, o->requester);
	case NODE_DO_SEND_COPY:
		dsm->stats.sent_copies++;
		return give(o, PAGE_READ, MSG_DSM_GRANT_READ);
	case NODE_DO_SEND_PAGE:
		dsm->stats.sent_pages++;
		return give(o, PAGE_NONE, MSG_DSM_GRANT_WRITE);
	case NODE_DO_TAKE:
		return dsm->host.take(dsm->host.ctx, o->gfn, PAGE_NONE, NULL);
	case NODE_DO_SEND_ACK:
		return to_requester(o, MSG_DSM_ACK, NULL);
	case NODE_DO_FILL_READ:
		return fill(o, o->payload, PAGE_READ);
	case NODE_DO_FILL_WRITE:
		return fill(o, o->payload, PAGE_WRITE);
	case NODE_DO_FILL_ZERO:
		return fill(o, NULL, PAGE_WRITE);
	case NODE_DO_RAISE:
		return dsm->host.upgrade(dsm->host.ctx, o->gfn);
	case NODE_DO_CONFIRM:
		return to_home(o, MSG_DSM_CONFIRM, o->page->txn, 0);
	case NODE_DO_READY:
		return ready(o);
	}
	bug("no node action %d", action);
}

/* Take one step of the table.  The state changes first, so that actions see the new one. */
static void step(struct occasion *o, enum node_event event)
{
	const struct dsm_cell *cell = &node_table[o->page->state][event];

	if (cell->impossible) {
		char text[256];

		dsm_describe(o->dsm, o->gfn, text, sizeof(text));
		return dsm_is_wrong(o->dsm, "%s: %s from transaction %u of node %u, though %s",
				    text, node_event_name[event], o->txn, o->requester,
				    cell->impossible);
	}
	dsm_enter(o->dsm, o->page, (enum node_state)cell->next);
	for (int i = 0; i < CELL_ACTIONS && cell->actions[i]; i++)
		act(o, (enum node_action)cell->actions[i]);
}

static struct occasion occasion_of(struct dsm *dsm, gfn_t gfn)
{
	return (struct occasion){
		.dsm = dsm, .gfn = gfn, .page = &dsm->pages[gfn], .requester = (uint8_t)dsm->node
	};
}

/* Fault point "delay-invalidations": drop the copy whose invalidation was acknowledged before. */
static void finish_delayed(struct dsm *dsm, gfn_t gfn)
{
	struct node_page *page = &dsm->pages[gfn];

	if (!page->delayed)
		return;
	page->delayed = 0;
	if (node_state_right[page->state] == PAGE_NONE) /* dropped meanwhile */
		return;
	dsm_enter(dsm, page, page->state == NODE_COPY || page->state == NODE_OWNED ? NODE_NONE
									      : NODE_WRITING);
	dsm->host.take(dsm->host.ctx, gfn, PAGE_NONE, NULL);
}

void node_on_want(struct dsm *dsm, gfn_t gfn, enum page_right right)
{
	struct occasion o = occasion_of(dsm, gfn);

	if (right == PAGE_WRITE)
		finish_delayed(dsm, gfn);
	if (o.page->wanted < right)
		o.page->wanted = (uint8_t)right;
	if (right == PAGE_WRITE)
		dsm->stats.wants_write++;
	else
		dsm->stats.wants_read++;
	step(&o, right == PAGE_WRITE ? NODE_ON_WANT_WRITE : NODE_ON_WANT_READ);
}

/* As a local CPU's want, but nothing happens if the page is here with that right or was
 * requested. */
void node_on_want_ahead(struct dsm *dsm, gfn_t gfn, enum page_right right)
{
	struct occasion o = occasion_of(dsm, gfn);
	bool asks;

	if (right == PAGE_WRITE)
		finish_delayed(dsm, gfn);
	asks = o.page->state == NODE_NONE ||
	       (right == PAGE_WRITE && (o.page->state == NODE_COPY || o.page->state == NODE_OWNED));
	if (!asks)
		return;
	dsm->stats.wants_ahead++;
	step(&o, right == PAGE_WRITE ? NODE_ON_WANT_WRITE : NODE_ON_WANT_READ);
}

/* Carry out a forward or an invalidation that is not held any longer. */
static void serve(struct occasion *o, uint16_t type)
{
	switch (type) {
	case MSG_DSM_FORWARD_READ:
		return step(o, NODE_ON_FORWARD_READ);
	case MSG_DSM_FORWARD_WRITE:
		return step(o, NODE_ON_FORWARD_WRITE);
	case MSG_DSM_INVALIDATE:
		if (node_state_right[o->page->state] == PAGE_NONE)
			o->dsm->stats.stale_invalidations++;
		else
			o->dsm->stats.invalidated++;
		return step(o, NODE_ON_INVALIDATE);
	}
	bug("type %u is not served", type);
}

/* Rule e: if a local CPU still needs the page, keep the request and retry later; true when kept.
 * The sum of the host's delays is bounded, so a host that delays again and again cannot keep a
 * page for ever. */
static bool hold(struct occasion *o, uint16_t type)
{
	bool takes_right = type != MSG_DSM_FORWARD_READ ||
			   node_state_right[o->page->state] == PAGE_WRITE;
	uint32_t us, units;

	if (!takes_right || node_state_right[o->page->state] == PAGE_NONE)
		return false;
	us = o->dsm->host.hold_us(o->dsm->host.ctx, o->gfn,
				  type == MSG_DSM_FORWARD_READ ? PAGE_READ : PAGE_NONE);
	if (type == MSG_DSM_INVALIDATE && !o->page->held_for &&
	    us < fault_on(FAULT_SLOW_INVALIDATIONS))
		us = fault_on(FAULT_SLOW_INVALIDATIONS);
	if (!us)
		return false;
	units = (us + HOLD_UNIT_US - 1) / HOLD_UNIT_US;
	if (o->page->held_for + units > (uint32_t)(DSM_HOLD_MAX_US / HOLD_UNIT_US)) {
		o->dsm->stats.holds_expired++;
		return false;
	}
	if (!o->page->held_type)
		o->dsm->stats.holds++;
	o->page->held_for = (uint8_t)(o->page->held_for + units);
	o->page->held_type = (uint8_t)(type - MSG_DSM_READ + 1);
	o->page->held_txn = o->txn;
	o->page->held_requester = o->requester;
	o->page->held_acks = o->acks;
	o->dsm->host.after_us(o->dsm->host.ctx, o->gfn, us);
	return true;
}

/* Fault point "delay-invalidations": acknowledge now, drop the copy later. True when it did. */
static bool delay(struct occasion *o, uint16_t type)
{
	uint32_t us = fault_on(FAULT_DELAY_INVALIDATIONS);

	if (!us || type != MSG_DSM_INVALIDATE || node_state_right[o->page->state] == PAGE_NONE)
		return false;
	o->page->delayed = 1;
	to_requester(o, MSG_DSM_ACK, NULL);
	o->dsm->host.after_us(o->dsm->host.ctx, o->gfn, us > 1 ? us : 2000);
	return true;
}

static void on_request(struct occasion *o, uint16_t type)
{
	if (o->page->held_type) /* the home runs one transaction at a time */
		return dsm_is_wrong(o->dsm,
				    "page %#x: a request of node %u before the one that is held",
				    o->gfn, o->requester);
	o->page->held_for = 0;
	if (!delay(o, type) && !hold(o, type))
		serve(o, type);
}

void node_retry(struct dsm *dsm, gfn_t gfn)
{
	struct occasion o = occasion_of(dsm, gfn);
	uint16_t type;

	finish_delayed(dsm, gfn);
	if (!o.page->held_type)
		return;
	type = (uint16_t)(o.page->held_type - 1 + MSG_DSM_READ);
	o.txn = o.page->held_txn;
	o.requester = o.page->held_requester;
	o.acks = o.page->held_acks;
	if (hold(&o, type))
		return;
	o.page->held_type = 0;
	serve(&o, type);
}

/* Rule b: all messages that answer our own request have one transaction number, whichever
 * arrives first.  One transaction has no more acknowledgements than there are nodes.  `acks`:
 * the number that this message adds to those due. */
static bool is_own(struct occasion *o, int acks)
{
	int due = o->page->acks_due + acks;

	if (o->page->acks_due == 0 && o->page->state != NODE_AWAITING)
		o->page->txn = o->txn;
	if (o->page->txn == o->txn && o->requester == o->dsm->node && due > -MAX_NODES &&
	    due < MAX_NODES && (acks <= 0 || due >= 0))
		return true;
	dsm_is_wrong(o->dsm,
		     "page %#x: a message of transaction %u of node %u within %u of node %u, "
		     "%d acknowledgements due",
		     o->gfn, o->txn, o->requester, o->page->txn, o->dsm->node, o->page->acks_due);
	return false;
}

static void on_ack(struct occasion *o)
{
	bool is_last;

	if (!is_own(o, -1))
		return;
	o->page->acks_due--;
	is_last = o->page->state == NODE_AWAITING && o->page->acks_due == 0;
	step(o, is_last ? NODE_ON_ACK_LAST : NODE_ON_ACK);
}

/* A write grant, with data or without, which has the total number of acknowledgements. */
static void on_write_grant(struct occasion *o, enum node_event complete, enum node_event waiting)
{
	if (!is_own(o, o->acks))
		return;
	o->page->acks_due = (int8_t)(o->page->acks_due + o->acks);
	if (o->page->acks_due == 0)
		return step(o, complete);
	step(o, waiting);
	/* the writer continues; only the home is still notified of the last one */
	if (fault_on(FAULT_RESUME_BEFORE_ACKS)) {
		o->dsm->host.upgrade(o->dsm->host.ctx, o->gfn);
		o->dsm->host.ready(o->dsm->host.ctx, o->gfn, PAGE_WRITE);
	}
}

static void on_grant(struct occasion *o, uint16_t type)
{
	struct dsm_stats *stats = &o->dsm->stats;

	switch (type) {
	case MSG_DSM_GRANT_READ:
		stats->grants_copy++;
		if (!is_own(o, 0))
			return;
		step(o, NODE_ON_GRANT_READ);
		if (o->page->wanted == PAGE_WRITE) /* wanted while the read was outstanding */
			step(o, NODE_ON_WANT_WRITE);
		return;
	case MSG_DSM_GRANT_WRITE:
		stats->grants_page++;
		return on_write_grant(o, NODE_ON_GRANT_WRITE, NODE_ON_GRANT_WRITE_WAIT);
	case MSG_DSM_GRANT_UPGRADE:
		stats->grants_upgrade++;
		return on_write_grant(o, NODE_ON_GRANT_UPGRADE, NODE_ON_GRANT_UPGRADE_WAIT);
	case MSG_DSM_GRANT_ZERO:
		stats->grants_zero++;
		if (is_own(o, 0))
			step(o, NODE_ON_GRANT_ZERO);
		return;
	}
	bug("type %u is no grant", type);
}

/* Return whether this node takes a page that its owner hands over.  If it leaves, that owner
 * requests it again (leave.c).  A page for this node alone (home.c) may be refused. */
static bool adopts(const struct occasion *o)
{
	const struct dsm *dsm = o->dsm;

	if (dsm->leaving.on)
		return false;
	return !dsm->host.adopts ||
	       dsm->host.adopts(dsm->host.ctx, o->gfn, o->requester, !o->acks) || !o->acks;
}

void node_on_message(struct dsm *dsm, uint16_t type, const struct msg_dsm *body,
		     const void *payload)
{
	struct occasion o = occasion_of(dsm, body->gfn);

	finish_delayed(dsm, body->gfn);
	o.txn = body->txn;
	o.requester = (uint8_t)body->requester;
	o.acks = (uint8_t)body->acks;
	o.payload = payload;
	switch (type) {
	case MSG_DSM_FORWARD_READ:
	case MSG_DSM_FORWARD_WRITE:
	case MSG_DSM_INVALIDATE:
		return on_request(&o, type);
	case MSG_DSM_ACK:
		return on_ack(&o);
	case MSG_DSM_GRANT_READ:
	case MSG_DSM_GRANT_WRITE:
	case MSG_DSM_GRANT_UPGRADE:
	case MSG_DSM_GRANT_ZERO:
		return on_grant(&o, type);
	case MSG_DSM_ADOPT:
		if (!adopts(&o))
			return;
		return node_on_want(dsm, body->gfn, PAGE_WRITE);
	}
	bug("type %u is not for a node", type);
}

bool node_drop(struct dsm *dsm, gfn_t gfn)
{
	struct occasion o = occasion_of(dsm, gfn);
	bool had = node_state_right[o.page->state] != PAGE_NONE;

	step(&o, NODE_ON_DROP);
	if (!had || node_state_right[o.page->state] != PAGE_NONE)
		return false;
	dsm->stats.drops++;
	return true;
}

void node_hand_over(struct dsm *dsm, gfn_t gfn, unsigned to)
{
	struct occasion o = occasion_of(dsm, gfn);

	o.requester = (uint8_t)to;
	step(&o, NODE_ON_HAND_OVER);
}
