/* replay_model.c - the hosts that replay.c describes: the page protocol is dsm/, the network, the
 * daemons and the programs are events in a heap. */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/wire.h"
#include "bench/replay.h"
#include "dsm/dsm.h"

enum { HEADER_BYTES = 64 };

enum kind { DELIVER, GO, TIMEOUT, RETRY };

struct event {
	double at_us;
	uint64_t order;
	enum kind kind;
	unsigned node, from;
	uint16_t type;
	uint32_t step; /* TIMEOUT: of which fetch */
	struct msg_dsm body;
	bool has_page;
};

/* Each host has one CPU. */
struct node {
	struct dsm *dsm;
	uint8_t *right;
	double daemon_free_us, link_free_us;
	uint32_t step; /* next fetch of its track */
	bool computing, awaits_loss, awaits_page;
	double end_us;
};

struct model model;

static struct {
	double now_us;
	double departs_us; /* when what the current handler sends leaves its host */
	unsigned hosts;
	struct node node[MAX_NODES];
	double last_us[MAX_NODES][MAX_NODES]; /* messages of a pair keep their order */
	struct event *heap;
	size_t n, room;
	uint64_t order;
} now;

static bool before(const struct event *a, const struct event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void add_event(struct event event)
{
	size_t i = now.n++;

	event.order = now.order++;
	if (now.n > now.room)
		now.heap = record_grow(now.heap, now.room = now.room ? 2 * now.room : 1024,
				  sizeof *now.heap);
	for (; i && before(&event, &now.heap[(i - 1) / 2]); i = (i - 1) / 2)
		now.heap[i] = now.heap[(i - 1) / 2];
	now.heap[i] = event;
}

static bool next_event(struct event *event)
{
	struct event last;
	size_t i = 0, child;

	if (!now.n)
		return false;
	*event = now.heap[0];
	last = now.heap[--now.n];
	while ((child = 2 * i + 1) < now.n) {
		if (child + 1 < now.n && before(&now.heap[child + 1], &now.heap[child]))
			child++;
		if (!before(&now.heap[child], &last))
			break;
		now.heap[i] = now.heap[child];
		i = child;
	}
	if (now.n)
		now.heap[i] = last;
	return true;
}

static const struct track *track_at(unsigned node)
{
	return &record.track[node % record.tracks];
}

/* The protocol's page for a recorded one, as a host sees it. */
static gfn_t gfn_of(unsigned node, uint32_t page)
{
	unsigned group = record.page[page].global ? 0 : node / record.tracks;

	return group * record.pages + page;
}

static void on_send(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body,
		    const void *payload, uint32_t payload_bytes)
{
	struct node *node = ctx;
	unsigned from = (unsigned)(node - now.node), peer = dsm_node_of(node->dsm, to);
	struct event event = { .kind = DELIVER, .node = peer, .from = from, .type = type,
			       .body = *body, .has_page = payload };
	double *last = &now.last_us[from][peer];
	double leaves_us = now.departs_us > node->link_free_us ? now.departs_us
								: node->link_free_us;

	node->link_free_us = leaves_us + (HEADER_BYTES + payload_bytes) * model.us_per_byte;
	event.at_us = node->link_free_us + model.one_way_us;
	if (event.at_us < *last)
		event.at_us = *last;
	*last = event.at_us;
	model.messages++;
	add_event(event);
}

static void on_send_home(void *ctx, const struct msg_home *body, const void *payload, uint32_t n)
{
	(void)ctx, (void)body, (void)payload, (void)n;
	bug("homes do not move here");
}

static void set_right(void *ctx, gfn_t gfn, enum page_right right)
{
	((struct node *)ctx)->right[gfn] = (uint8_t)right;
}

static void on_take(void *ctx, gfn_t gfn, enum page_right new_right, void *contents)
{
	struct node *node = ctx;
	unsigned me = (unsigned)(node - now.node);

	if (contents)
		memset(contents, 0, PAGE_BYTES);
	set_right(ctx, gfn, new_right);
	if (node->awaits_loss && gfn_of(me, track_at(me)->fetch[node->step].page) == gfn) {
		node->awaits_loss = false;
		add_event((struct event){ .kind = GO, .node = me, .at_us = now.departs_us });
	}
}

static void on_fill(void *ctx, gfn_t gfn, const void *contents, enum page_right right)
{
	(void)contents;
	set_right(ctx, gfn, right);
}

static void on_upgrade(void *ctx, gfn_t gfn) { set_right(ctx, gfn, PAGE_WRITE); }

static uint32_t on_hold(void *ctx, gfn_t gfn, enum page_right right)
{
	(void)ctx, (void)gfn, (void)right;
	return 0;
}

static void on_after(void *ctx, gfn_t gfn, uint32_t us)
{
	add_event((struct event){ .kind = RETRY,
				  .node = (unsigned)((struct node *)ctx - now.node),
				  .at_us = now.now_us + us,
				  .body.gfn = gfn });
}

/* The CPU computes until its next fetch, or waits until the page is lost. */
static void go_on(unsigned number, double at_us)
{
	struct node *node = &now.node[number];
	const struct track *track = track_at(number);
	const struct fetch *next = &track->fetch[node->step];
	double part = (double)record.tracks / now.hosts;

	node->end_us = at_us;
	if (node->step == track->n)
		return;
	if (next->waits && node->right[gfn_of(number, next->page)] >= next->right) {
		node->awaits_loss = true;
		add_event((struct event){ .kind = TIMEOUT, .node = number, .step = node->step,
					  .at_us = at_us + next->compute_us });
		return;
	}
	add_event((struct event){ .kind = GO, .node = number,
				  .at_us = at_us + (next->waits ? 0 : next->compute_us * part) });
}

static void on_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	struct node *node = ctx;
	unsigned me = (unsigned)(node - now.node);
	const struct fetch *fetch = &track_at(me)->fetch[node->step];

	if (!node->awaits_page || gfn_of(me, fetch->page) != gfn || right < fetch->right)
		return;
	node->awaits_page = false;
	node->step++;
	go_on(me, now.departs_us + record.to_guest_us + record.overhead_us);
}

/* The CPU touches its next page. */
static void touch(unsigned number)
{
	struct node *node = &now.node[number];
	const struct fetch *fetch = &track_at(number)->fetch[node->step];
	gfn_t gfn = gfn_of(number, fetch->page);

	if (node->right[gfn] >= fetch->right) {
		node->step++;
		go_on(number, now.now_us);
		return;
	}
	model.fetches++;
	node->awaits_page = true;
	now.departs_us = now.now_us + record.to_daemon_us;
	dsm_want(node->dsm, gfn, (enum page_right)fetch->right);
}

/* A daemon handles one message after the other. */
static void deliver(struct event *event)
{
	static const uint8_t contents[PAGE_BYTES];
	struct node *node = &now.node[event->node];
	struct msg_header header = { .type = event->type, .from_node = (uint8_t)event->from,
				     .bytes = (uint32_t)sizeof event->body +
					      (event->has_page ? PAGE_BYTES : 0) };

	if (node->daemon_free_us > now.now_us) {
		event->at_us = node->daemon_free_us;
		add_event(*event);
		return;
	}
	node->daemon_free_us = now.departs_us = now.now_us + model.serve_us;
	if (dsm_on_message(node->dsm, &header, &event->body, event->has_page ? contents : NULL))
		bug("the page protocol refuses its own message");
}

static void handle(struct event *event)
{
	struct node *node = &now.node[event->node];

	now.now_us = now.departs_us = event->at_us;
	switch (event->kind) {
	case DELIVER:
		return deliver(event);
	case GO:
		return touch(event->node);
	case TIMEOUT:
		if (!node->awaits_loss || node->step != event->step)
			return;
		node->awaits_loss = false;
		return touch(event->node);
	case RETRY:
		return dsm_retry(node->dsm, event->body.gfn);
	}
}

static void begin(unsigned hosts)
{
	uint32_t groups = (hosts + record.tracks - 1) / record.tracks;
	uint32_t gfns = groups * record.pages;

	now.hosts = hosts;
	now.now_us = now.departs_us = 0;
	model.messages = model.fetches = now.order = 0;
	memset(now.last_us, 0, sizeof now.last_us);
	for (unsigned i = 0; i < hosts; i++) {
		struct dsm_host host = {
			.send = on_send, .send_home = on_send_home, .take = on_take,
			.fill = on_fill, .upgrade = on_upgrade, .ready = on_ready,
			.hold_us = on_hold, .after_us = on_after,
		};

		host.ctx = &now.node[i];
		now.node[i] = (struct node){ .dsm = dsm_new(i, hosts, gfns, &host),
					       .right = calloc(gfns, 1) };
		if (!now.node[i].right)
			die("no memory for %u pages", gfns);
	}
	for (uint32_t gfn = 0; gfn < gfns; gfn++) {
		const struct page *page = &record.page[gfn % record.pages];
		unsigned owner = gfn / record.pages * record.tracks + page->first_owner;

		if (!page->owned || owner >= hosts || page->first_owner >= record.tracks)
			continue;
		for (unsigned i = 0; i < hosts; i++)
			dsm_preloaded(now.node[i].dsm, gfn, 1, owner);
		now.node[owner].right[gfn] = PAGE_WRITE;
	}
}

double model_run(unsigned hosts)
{
	double end_us = 0;
	struct event event;

	begin(hosts);
	for (unsigned i = 0; i < hosts; i++)
		go_on(i, 0);
	while (next_event(&event))
		handle(&event);
	for (unsigned i = 0; i < hosts; i++) {
		bug_on(now.node[i].step != track_at(i)->n);
		if (now.node[i].end_us > end_us)
			end_us = now.node[i].end_us;
		dsm_free(now.node[i].dsm);
		free(now.node[i].right);
	}
	return end_us;
}
