/* dsm.c - the entry points: they check incoming messages, and deliver messages of this node to
 * itself.
 *
 * A message to this node itself goes into a queue of work, which the outermost entry point
 * drains.  So no handler runs inside another one, and messages within a node keep their order as
 * those between nodes do.
 */
#include "dsm/dsm_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

static void *allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (!memory)
		die("no memory for the page tables (%zu MiB)", count * bytes >> 20);
	return memory;
}

struct dsm *dsm_new(unsigned node, unsigned n_nodes, uint32_t n_pages, const struct dsm_host *host)
{
	struct dsm *dsm = allocate(1, sizeof(*dsm));

	bug_on(n_nodes > MAX_NODES || node >= (n_nodes ? n_nodes : MAX_NODES) ||
	       n_pages > VNODE_HOME_COUNT);
	dsm->node = node;
	dsm->nodes = (uint32_t)((1ull << n_nodes) - 1) | 1u << node;
	dsm->n_pages = n_pages;
	homes_start(dsm, n_nodes);
	dsm->host = *host;
	/* The kernel gives zeroed memory page by page as it is touched: a home costs nothing for
	 * pages of other homes. */
	dsm->pages = allocate(n_pages, sizeof(*dsm->pages));
	dsm->homes = allocate(n_pages, sizeof(*dsm->homes));
	dsm->work_room = 64;
	dsm->work = allocate(dsm->work_room, sizeof(*dsm->work));
	return dsm;
}

void dsm_free(struct dsm *dsm)
{
	if (!dsm)
		return;
	free(dsm->pages);
	free(dsm->homes);
	free(dsm->waiters);
	free(dsm->work);
	free(dsm);
}

void dsm_is_wrong(struct dsm *dsm, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!dsm->host.wrong)
		bug("%s", text);
	if (!dsm->broken)
		dsm->host.wrong(dsm->host.ctx, text);
	dsm->broken = true;
}

void dsm_preloaded(struct dsm *dsm, gfn_t first, uint32_t count, unsigned owner)
{
	bug_on(owner >= MAX_NODES || first > dsm->n_pages || count > dsm->n_pages - first);
	for (gfn_t gfn = first; gfn < first + count; gfn++) {
		if (owner == dsm->node) {
			if (dsm->pages[gfn].state != NODE_NONE &&
			    dsm->pages[gfn].state != NODE_WRITE)
				return dsm_is_wrong(
					dsm, "page %#x is preloaded, and in use already", gfn);
			dsm->pages[gfn].state = NODE_WRITE;
		}
		if (home_is_here(dsm, gfn)) {
			struct home_page *page = &dsm->homes[gfn];

			if (page->state != HOME_UNTOUCHED &&
			    (page->state != HOME_IDLE || page->owner != owner))
				return dsm_is_wrong(
					dsm, "page %#x is preloaded, and its home has it already",
					gfn);
			page->state = HOME_IDLE;
			page->owner = (uint8_t)owner;
			page->copyset = 1u << owner;
		}
	}
}

static void work_push(struct dsm *dsm, const struct dsm_work *item)
{
	if (dsm->work_tail - dsm->work_head == dsm->work_room) {
		struct dsm_work *wider = allocate(dsm->work_room * 2, sizeof(*wider));

		for (uint32_t i = 0; i < dsm->work_room; i++)
			wider[i] = dsm->work[(dsm->work_head + i) & (dsm->work_room - 1)];
		free(dsm->work);
		dsm->work = wider;
		dsm->work_head = 0;
		dsm->work_tail = dsm->work_room;
		dsm->work_room *= 2;
	}
	dsm->work[dsm->work_tail++ & (dsm->work_room - 1)] = *item;
}

static void work_run(struct dsm *dsm)
{
	if (dsm->working)
		return;
	dsm->working = true;
	while (dsm->work_head != dsm->work_tail && !dsm->broken) {
		struct dsm_work item = dsm->work[dsm->work_head++ & (dsm->work_room - 1)];

		if (item.ahead)
			node_on_want_ahead(dsm, item.body.gfn, (enum page_right)item.body.acks);
		else if (!item.type)
			node_on_want(dsm, item.body.gfn, (enum page_right)item.body.acks);
		else if (item.to_home)
			home_on_message(dsm, item.type, &item.body);
		else
			node_on_message(dsm, item.type, &item.body, NULL);
	}
	dsm->working = false;
}

void dsm_send(struct dsm *dsm, vnode_t to, uint16_t type, const struct msg_dsm *body,
	      const void *payload)
{
	if (to >= VNODE_HOME_BASE &&
	    dsm->place[dsm_interval(body->gfn, dsm->n_pages)].node == NO_NODE)
		return dsm_is_wrong(
			dsm, "page %#x is requested before this node knows where its home is",
			body->gfn);
	if (dsm_node_of(dsm, to) != dsm->node) {
		dsm->stats.messages_sent++;
		dsm->host.send(dsm->host.ctx, to, type, body, payload, payload ? PAGE_BYTES : 0);
		return;
	}
	if (payload) /* the home forwards to an owner that is not the requester */
		return dsm_is_wrong(dsm, "page %#x: this node shall send it to itself", body->gfn);
	dsm->stats.messages_local++;
	work_push(dsm, &(struct dsm_work){ .type = type, .to_home = to >= VNODE_HOME_BASE,
					   .body = *body });
}

void dsm_want(struct dsm *dsm, gfn_t gfn, enum page_right right)
{
	bug_on(gfn >= dsm->n_pages || right == PAGE_NONE);
	work_push(dsm, &(struct dsm_work){ .body = { .gfn = gfn, .acks = right } });
	work_run(dsm);
}

void dsm_want_ahead(struct dsm *dsm, gfn_t gfn, enum page_right right)
{
	bug_on(gfn >= dsm->n_pages || right == PAGE_NONE);
	work_push(dsm, &(struct dsm_work){ .ahead = 1, .body = { .gfn = gfn, .acks = right } });
	work_run(dsm);
}

static bool is_for_home(uint16_t type)
{
	return type <= MSG_DSM_UPGRADE || type == MSG_DSM_CONFIRM || type == MSG_DSM_HANDOVER;
}

/* True if the message is one that a correct node can send: its type, size and numbers are within
 * bounds.  What starts a transaction names the node that gets the page, if that is not the
 * sender. */
static bool is_sound(const struct dsm *dsm, const struct msg_header *header,
		     const struct msg_dsm *body, bool has_page)
{
	uint32_t most_acks = header->type == MSG_DSM_HANDOVER ? DSM_ANY_NODE : MAX_NODES - 1;

	return header->type >= MSG_DSM_READ && header->type <= MSG_DSM_ADOPT &&
	       header->from_node < MAX_NODES &&
	       header->bytes == sizeof(*body) + (has_page ? PAGE_BYTES : 0) &&
	       body->gfn < dsm->n_pages && body->requester < MAX_NODES && body->acks <= most_acks;
}

int dsm_on_message(struct dsm *dsm, const struct msg_header *header, const struct msg_dsm *body,
		   const void *payload)
{
	bool has_page = header->type == MSG_DSM_GRANT_READ || header->type == MSG_DSM_GRANT_WRITE;

	bug_on(dsm->working);
	if (!is_sound(dsm, header, body, has_page))
		return -EPROTO;
	dsm->stats.messages_received++;
	if (dsm->broken)
		return 0;
	if (is_for_home(header->type) && !home_is_here(dsm, body->gfn)) {
		if (dsm->place[dsm_interval(body->gfn, dsm->n_pages)].node == NO_NODE)
			return -EPROTO;
		dsm->stats.home_forwarded++;
		dsm_send(dsm, dsm_home(body->gfn, dsm->n_pages), header->type, body, NULL);
		return 0;
	}
	dsm->working = true;
	if (is_for_home(header->type))
		home_on_message(dsm, header->type, body);
	else
		node_on_message(dsm, header->type, body, has_page ? payload : NULL);
	dsm->working = false;
	work_run(dsm);
	return 0;
}

void dsm_retry(struct dsm *dsm, gfn_t gfn)
{
	bug_on(gfn >= dsm->n_pages || dsm->working);
	if (dsm->broken)
		return;
	dsm->working = true;
	node_retry(dsm, gfn);
	dsm->working = false;
	work_run(dsm);
}

bool dsm_drop(struct dsm *dsm, gfn_t gfn)
{
	bool dropped;

	bug_on(gfn >= dsm->n_pages || dsm->working);
	if (dsm->broken)
		return false;
	dsm->working = true;
	dropped = node_drop(dsm, gfn);
	dsm->working = false;
	work_run(dsm);
	return dropped;
}

void dsm_handover(struct dsm *dsm, gfn_t gfn, unsigned to)
{
	bug_on(gfn >= dsm->n_pages || dsm->working || to > DSM_ANY_NODE);
	if (dsm->broken)
		return;
	dsm->working = true;
	node_hand_over(dsm, gfn, to);
	dsm->working = false;
	work_run(dsm);
}

enum page_right dsm_right(const struct dsm *dsm, gfn_t gfn)
{
	bug_on(gfn >= dsm->n_pages);
	return (enum page_right)node_state_right[dsm->pages[gfn].state];
}

bool dsm_is_owner(const struct dsm *dsm, gfn_t gfn)
{
	bug_on(gfn >= dsm->n_pages);
	switch (dsm->pages[gfn].state) {
	case NODE_OWNED:
	case NODE_OWNED_WRITING:
	case NODE_AWAITING:
	case NODE_WRITE:
		return true;
	default:
		return false;
	}
}

uint32_t dsm_copies(const struct dsm *dsm, gfn_t gfn)
{
	bug_on(gfn >= dsm->n_pages);
	return home_is_here(dsm, gfn) && dsm->homes[gfn].state == HOME_IDLE
		       ? dsm->homes[gfn].copyset : 0;
}

bool dsm_owns_quietly(const struct dsm *dsm, gfn_t gfn)
{
	bug_on(gfn >= dsm->n_pages);
	return dsm->pages[gfn].state == NODE_OWNED || dsm->pages[gfn].state == NODE_WRITE;
}

bool dsm_is_elsewhere(const struct dsm *dsm, gfn_t gfn)
{
	bug_on(gfn >= dsm->n_pages);
	return dsm->pages[gfn].state == NODE_NONE;
}

uint32_t dsm_coming(const struct dsm *dsm)
{
	return dsm->coming;
}

bool dsm_settled(const struct dsm *dsm)
{
	for (gfn_t gfn = 0; gfn < dsm->n_pages; gfn++)
		switch (dsm->pages[gfn].state) {
		case NODE_NONE:
		case NODE_COPY:
		case NODE_OWNED:
		case NODE_WRITE:
			break;
		default:
			return false;
		}
	return true;
}

void dsm_describe(const struct dsm *dsm, gfn_t gfn, char *text, size_t bytes)
{
	const struct node_page *page = &dsm->pages[gfn];
	const struct home_page *home = &dsm->homes[gfn];
	int length = snprintf(text, bytes, "page %#x at node %u: %s, wanted %u, acks %d, txn %u%s",
			      gfn, dsm->node, node_state_name[page->state], page->wanted,
			      page->acks_due, page->txn, page->held_type ? ", held" : "");

	if (home_is_here(dsm, gfn) && length > 0 && (size_t)length < bytes)
		snprintf(text + length, bytes - (size_t)length,
			 "; home: %s, owner %u, copyset %#x, txn %u for %u%s",
			 home_state_name[home->state], home->owner, home->copyset, home->txn,
			 home->requester, home->queue ? ", queue" : "");
}

const struct dsm_stats *dsm_stats(const struct dsm *dsm)
{
	return &dsm->stats;
}
