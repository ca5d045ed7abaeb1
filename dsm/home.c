/* home.c - a page at its home: translates requests into events of home_table.def and carries out
 * their actions. */
#include "dsm/dsm_private.h"

#include <stdlib.h>

#include "base/log.h"

/* A request that is being handled. */
struct request {
	struct dsm *dsm;
	struct home_page *page;
	gfn_t gfn;
	uint16_t type;
	uint8_t from, target; /* target: of a handover */
};

static void serve(struct request *r);

static uint32_t bit(unsigned node)
{
	return 1u << node;
}

/* Rule a: return the request's event.  It depends on this home's own owner and copyset, not on
 * what the requester believed. */
static enum home_event classify(const struct request *r)
{
	const struct home_page *page = r->page;
	bool touched = page->state != HOME_UNTOUCHED;
	bool owner = touched && page->owner == r->from;

	switch (r->type) {
	case MSG_DSM_READ:
		return owner ? HOME_ON_OWNER_MISS : HOME_ON_READ;
	case MSG_DSM_WRITE:
		return owner ? HOME_ON_OWNER_MISS : HOME_ON_WRITE;
	case MSG_DSM_UPGRADE:
		return page->copyset & bit(r->from) ? HOME_ON_UPGRADE : HOME_ON_WRITE;
	case MSG_DSM_HANDOVER:
		return owner && r->target != r->from ? HOME_ON_HAND_OVER : HOME_ON_HAND_OVER_STALE;
	case MSG_DSM_CONFIRM:
		return HOME_ON_CONFIRM;
	}
	bug("type %u is not for a home", r->type);
}

static void send(struct request *r, unsigned to, uint16_t type, uint32_t acks)
{
	struct msg_dsm body = {
		.gfn = r->gfn, .txn = r->page->txn, .requester = r->from, .acks = acks
	};

	dsm_send(r->dsm, VNODE_DAEMON(to), type, &body, NULL);
}

static void invalidate(struct request *r, uint32_t holders)
{
	for (; holders; holders &= holders - 1)
		send(r, (unsigned)__builtin_ctz(holders), MSG_DSM_INVALIDATE, 0);
}

static void begin(struct request *r)
{
	r->dsm->stats.home_transactions++;
	r->page->txn++;
	r->page->requester = r->from;
}

/* Send the grant or the forward before the invalidations: with data it takes longest. */
static void grant_write(struct request *r, unsigned to, uint16_t type, uint32_t holders)
{
	begin(r);
	send(r, to, type, (uint32_t)__builtin_popcount(holders));
	invalidate(r, holders);
	r->page->owner = r->from;
	r->page->copyset = bit(r->from);
}

static uint32_t new_waiter(struct dsm *dsm)
{
	uint32_t index = dsm->waiters_free;

	if (index) {
		dsm->waiters_free = dsm->waiters[index - 1].next;
		return index;
	}
	if (dsm->waiters_count == dsm->waiters_room) {
		dsm->waiters_room = dsm->waiters_room ? dsm->waiters_room * 2 : 64;
		dsm->waiters = realloc(dsm->waiters, dsm->waiters_room * sizeof(*dsm->waiters));
		if (!dsm->waiters)
			die("no memory for %u waiting page requests", dsm->waiters_room);
	}
	return ++dsm->waiters_count;
}

static void append(struct dsm *dsm, struct home_page *page, uint16_t type, uint8_t from,
		   uint8_t target)
{
	uint32_t index = new_waiter(dsm);
	struct home_waiter *waiter = &dsm->waiters[index - 1];

	*waiter = (struct home_waiter){
		.next = index, .type = type, .from = from, .target = target
	};
	if (page->queue) {
		struct home_waiter *last = &dsm->waiters[page->queue - 1];

		waiter->next = last->next;
		last->next = index;
	}
	page->queue = index;
}

/* Remove and return the oldest request of a queue that is not empty. */
static struct home_waiter take_first(struct dsm *dsm, struct home_page *page)
{
	struct home_waiter *last = &dsm->waiters[page->queue - 1];
	uint32_t index = last->next;
	struct home_waiter *first = &dsm->waiters[index - 1], taken = *first;

	if (index == page->queue)
		page->queue = 0;
	else
		last->next = first->next;
	first->next = dsm->waiters_free;
	dsm->waiters_free = index;
	return taken;
}

uint32_t home_take_queue(struct dsm *dsm, gfn_t gfn, struct home_item_waiting *waiting,
			 uint32_t room)
{
	struct home_page *page = &dsm->homes[gfn];
	uint32_t count = 0;

	for (; page->queue && count < room; count++) {
		struct home_waiter first = take_first(dsm, page);

		waiting[count] = (struct home_item_waiting){ first.type, first.from, first.target };
	}
	bug_on(page->queue);
	return count;
}

void home_put_queue(struct dsm *dsm, gfn_t gfn, const struct home_item_waiting *waiting,
		    uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		append(dsm, &dsm->homes[gfn], waiting[i].type, waiting[i].from, waiting[i].target);
}

static void enqueue(struct request *r)
{
	struct dsm *dsm = r->dsm;

	dsm->stats.home_queued++;
	append(dsm, r->page, r->type, r->from, r->target);
	if (r->page->requester != dsm->node && r->page->requester != r->page->owner &&
	    dsm->host.unconfirmed)
		dsm->host.unconfirmed(dsm->host.ctx, r->gfn, r->page->requester);
}

/* The page is idle: serve the queued requests, oldest first, until one of them makes it busy. */
static void serve_next(struct dsm *dsm, struct home_page *page, gfn_t gfn)
{
	while (page->queue && page->state != HOME_BUSY) {
		struct home_waiter first = take_first(dsm, page);
		struct request r = { dsm, page, gfn, first.type, first.from, first.target };

		serve(&r);
	}
}

/* Return the new owner of a page that its owner hands over, if that owner named none, or a node
 * that leaves.  The choice is a node that probably has a copy, else this one, else its
 * neighbour; the owner itself if there is no other node. */
static unsigned choose_adopter(const struct request *r)
{
	uint32_t able = r->dsm->nodes & ~bit(r->from), holders = able & r->page->copyset;
	uint32_t above = able & ~(bit(r->dsm->node) - 1);

	if (r->target < DSM_ANY_NODE && r->dsm->nodes & bit(r->target))
		return r->target;
	if (holders)
		return (unsigned)__builtin_ctz(holders);
	if (above)
		return (unsigned)__builtin_ctz(above);
	return able ? (unsigned)__builtin_ctz(able) : r->from;
}

static void act(struct request *r, enum home_action action)
{
	struct home_page *page = r->page;

	switch (action) {
	case HOME_DO_NOTHING:
		return;
	case HOME_DO_GRANT_ZERO:
		return grant_write(r, r->from, MSG_DSM_GRANT_ZERO, 0);
	case HOME_DO_FORWARD_READ:
		begin(r);
		send(r, page->owner, MSG_DSM_FORWARD_READ, 0);
		page->copyset |= bit(r->from);
		return;
	case HOME_DO_FORWARD_WRITE:
		return grant_write(r, page->owner, MSG_DSM_FORWARD_WRITE,
				   page->copyset & ~bit(r->from) & ~bit(page->owner));
	case HOME_DO_GRANT_UPGRADE:
		return grant_write(r, r->from, MSG_DSM_GRANT_UPGRADE,
				   page->copyset & ~bit(r->from));
	case HOME_DO_SEND_ADOPT: {
		unsigned to = choose_adopter(r);

		if (to != r->from)
			send(r, to, MSG_DSM_ADOPT, r->target < DSM_ANY_NODE);
		return;
	}
	case HOME_DO_QUEUE:
		return enqueue(r);
	case HOME_DO_SERVE_NEXT:
		return serve_next(r->dsm, page, r->gfn);
	}
	bug("no home action %d", action);
}

static void serve(struct request *r)
{
	enum home_event event = classify(r);
	const struct dsm_cell *cell = &home_table[r->page->state][event];

	if (cell->impossible) {
		char text[256];

		dsm_describe(r->dsm, r->gfn, text, sizeof(text));
		return dsm_is_wrong(r->dsm, "%s: %s from node %u, though %s", text,
				    home_event_name[event], r->from, cell->impossible);
	}
	r->page->state = cell->next;
	for (int i = 0; i < CELL_ACTIONS && cell->actions[i]; i++)
		act(r, (enum home_action)cell->actions[i]);
}

void home_on_message(struct dsm *dsm, uint16_t type, const struct msg_dsm *body)
{
	struct request r = { dsm,  &dsm->homes[body->gfn],   body->gfn,
			     type, (uint8_t)body->requester, (uint8_t)body->acks };

	if (type == MSG_DSM_CONFIRM && (body->txn != r.page->txn || r.from != r.page->requester))
		return dsm_is_wrong(
			dsm, "page %#x: node %u confirms transaction %u, but %u of node %u runs",
			body->gfn, r.from, body->txn, r.page->txn, r.page->requester);
	serve(&r);
}
