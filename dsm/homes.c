/* homes.c - where the homes are, and how they move: one interval of virtual nodes at a time,
 * with its pages' table and queues.
 *
 * The giver sends all parts of the interval and stops being its home.  From then on it forwards
 * messages for the interval to the taker, in order behind those parts.  The taker serves the
 * interval once the last part has arrived.  Earlier messages it forwards to the node that it
 * believes to be the home, the giver; they return behind the last part.  A move does not wait
 * for transactions: the requester of each one and its queue are sent along, and its confirmation
 * is forwarded as all other messages are.
 *
 * Each move of an interval starts a new generation.  A node replaces its belief only by a newer
 * one, so forwarding ends.
 */
#include "dsm/dsm_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

enum { PART_BYTES = sizeof(((struct dsm *)0)->contents) };

void homes_start(struct dsm *dsm, unsigned n_nodes)
{
	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		dsm->place[i].node = n_nodes ? dsm_interval_start(i, n_nodes) : NO_NODE;
}

unsigned dsm_node_of(const struct dsm *dsm, vnode_t vnode)
{
	unsigned node;

	if (vnode < VNODE_HOME_BASE)
		return (unsigned)vnode;
	node = dsm->place[(vnode - VNODE_HOME_BASE) / DSM_INTERVAL_VNODES].node;
	bug_on(node == NO_NODE);
	return node;
}

const struct home_place *dsm_homes(const struct dsm *dsm)
{
	return dsm->place;
}

/* Adopt newer places from another node.  Only the arrival and departure of a home's state decide
 * whether it is here.  (TRICKS: homes-not-phoenix) */
void dsm_homes_learn(struct dsm *dsm, const struct home_place *places)
{
	for (unsigned i = 0; i < DSM_INTERVALS; i++) {
		struct home_place *ours = &dsm->place[i];

		if (places[i].node >= MAX_NODES || places[i].node == dsm->node ||
		    ours->node == dsm->node)
			continue;
		if (ours->node == NO_NODE || places[i].generation > ours->generation)
			*ours = places[i];
	}
}

void dsm_homes_near(struct dsm *dsm, const struct page_range *ranges, unsigned n)
{
	uint32_t (*owned)[MAX_NODES] = calloc(DSM_INTERVALS, sizeof *owned);

	if (!owned)
		die("out of memory");
	for (unsigned i = 0; i < n; i++) {
		bug_on(ranges[i].owner >= MAX_NODES || ranges[i].first_gfn > dsm->n_pages ||
		       ranges[i].count > dsm->n_pages - ranges[i].first_gfn);
		for (gfn_t k = 0; k < ranges[i].count; k++)
			owned[dsm_interval(ranges[i].first_gfn + k, dsm->n_pages)]
			     [ranges[i].owner]++;
	}
	for (unsigned i = 0; i < DSM_INTERVALS; i++) {
		unsigned most = 0;

		for (unsigned node = 1; node < MAX_NODES; node++)
			if (owned[i][node] > owned[i][most])
				most = node;
		if (owned[i][most])
			dsm->place[i].node = most;
	}
	free(owned);
}

/* Return the inverse of K modulo DSM_INTERVALS.  Each Newton step doubles the number of correct
 * bits; for an odd number, the first three are correct. */
static uint32_t inverse_of_k(void)
{
	uint32_t inverse = DSM_HOME_K;

	for (unsigned bits = 3; 1u << bits < DSM_INTERVALS; bits *= 2)
		inverse *= 2 - DSM_HOME_K * inverse;
	return inverse;
}

/* Return the first page of the interval's block; it may lie beyond RAM. */
static gfn_t block_of(unsigned interval, uint32_t n_pages)
{
	return inverse_of_k() * interval % DSM_INTERVALS << dsm_block_bits(n_pages);
}

/* --- giving ----------------------------------------------------------------------------------- */

struct part { struct dsm *dsm; struct msg_home body; uint32_t bytes; };

static void send_part(struct part *part, bool last)
{
	part->body.last = last;
	part->dsm->host.send_home(part->dsm->host.ctx, &part->body, part->dsm->contents,
				  part->bytes);
	part->bytes = 0;
}

static uint32_t count_waiting(const struct dsm *dsm, const struct home_page *page)
{
	uint32_t count = 0, at = page->queue;

	if (at)
		do {
			at = dsm->waiters[at - 1].next;
			count++;
		} while (at != page->queue);
	return count;
}

static void give_page(struct part *part, gfn_t gfn)
{
	struct dsm *dsm = part->dsm;
	struct home_page *page = &dsm->homes[gfn];
	struct home_item item = { .gfn = gfn,
				  .txn = page->txn,
				  .copyset = page->copyset,
				  .state = page->state,
				  .owner = page->owner,
				  .requester = page->requester,
				  .waiting = count_waiting(dsm, page) };
	uint32_t bytes = sizeof(item) + item.waiting * (uint32_t)sizeof(struct home_item_waiting);

	if (page->state == HOME_UNTOUCHED)
		return;
	if (bytes > PART_BYTES)
		return dsm_is_wrong(dsm, "page %#x: %u requests wait for it", gfn, item.waiting);
	if (part->bytes + bytes > PART_BYTES)
		send_part(part, false);
	memcpy(dsm->contents + part->bytes, &item, sizeof(item));
	home_take_queue(dsm, gfn,
			(struct home_item_waiting *)(dsm->contents + part->bytes + sizeof(item)),
			item.waiting);
	part->bytes += bytes;
	*page = (struct home_page){ 0 };
}

/* (TRICKS: home-moves-busy) */
int dsm_home_give(struct dsm *dsm, unsigned interval, unsigned to)
{
	struct home_place *place = &dsm->place[interval];
	struct part part = {
		.dsm = dsm,
		.body = { .interval = interval, .generation = place->generation + 1, .to = to }
	};

	bug_on(dsm->working || interval >= DSM_INTERVALS || to >= MAX_NODES || to == dsm->node);
	if (place->node != dsm->node)
		return -ENOENT;
	for (gfn_t gfn = block_of(interval, dsm->n_pages), n = 0;
	     n >> dsm_block_bits(dsm->n_pages) == 0 && gfn < dsm->n_pages; n++, gfn++)
		give_page(&part, gfn);
	*place = (struct home_place){ to, part.body.generation };
	send_part(&part, true);
	return 0;
}

/* --- taking ----------------------------------------------------------------------------------- */

static bool item_is_sound(const struct dsm *dsm, const struct home_item *item, unsigned interval,
			  uint32_t room)
{
	return item->gfn < dsm->n_pages && dsm_interval(item->gfn, dsm->n_pages) == interval &&
	       item->state < HOME_STATE_COUNT && item->owner < MAX_NODES &&
	       item->requester < MAX_NODES &&
	       item->waiting <= room / sizeof(struct home_item_waiting);
}

static bool waiting_is_sound(const struct home_item_waiting *waiting, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (waiting[i].from >= MAX_NODES || waiting[i].target > DSM_ANY_NODE ||
		    (waiting[i].type > MSG_DSM_UPGRADE && waiting[i].type != MSG_DSM_HANDOVER) ||
		    waiting[i].type < MSG_DSM_READ)
			return false;
	return true;
}

/* Take over one page; return the bytes used, or -EPROTO. */
static int take_page(struct dsm *dsm, unsigned interval, const uint8_t *at, uint32_t bytes)
{
	struct home_item_waiting waiting[PART_BYTES / sizeof(struct home_item_waiting)];
	struct home_item item;
	uint32_t queue_bytes;

	if (bytes < sizeof(item))
		return -EPROTO;
	memcpy(&item, at, sizeof(item));
	if (!item_is_sound(dsm, &item, interval, bytes - (uint32_t)sizeof(item)))
		return -EPROTO;
	queue_bytes = item.waiting * (uint32_t)sizeof(*waiting);
	if (queue_bytes > sizeof(waiting))
		return -EPROTO;
	memcpy(waiting, at + sizeof(item), queue_bytes);
	if (!waiting_is_sound(waiting, item.waiting))
		return -EPROTO;
	dsm->homes[item.gfn] = (struct home_page){ .copyset = item.copyset,
						   .txn = item.txn,
						   .state = item.state,
						   .owner = item.owner,
						   .requester = item.requester };
	home_put_queue(dsm, item.gfn, waiting, item.waiting);
	return (int)(sizeof(item) + queue_bytes);
}

int dsm_on_home_state(struct dsm *dsm, const struct msg_home *body, const void *payload,
		      uint32_t payload_bytes)
{
	const uint8_t *at = payload, *end = at + payload_bytes;

	bug_on(dsm->working);
	if (body->interval >= DSM_INTERVALS || body->to != dsm->node ||
	    dsm->place[body->interval].node == dsm->node)
		return -EPROTO;
	while (at < end) {
		int bytes = take_page(dsm, body->interval, at, (uint32_t)(end - at));

		if (bytes < 0)
			return bytes;
		at += bytes;
	}
	if (!body->last)
		return 0;
	dsm->place[body->interval] = (struct home_place){ dsm->node, body->generation };
	return 1;
}
