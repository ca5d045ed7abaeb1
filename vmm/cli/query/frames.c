/* frames.c - reads the guest's memory for a command, a page at a time; each page is read once. */
#include "vmm/cli/query/query_private.h"

#include <stdlib.h>
#include <string.h>
#include "base/layout.h"

struct frames {
	struct event *limit;
	uint8_t **page; /* of each frame: owned */
	uint32_t pages;
	gfn_t awaited;
	bool waits;	/* for `awaited` */
	bool gave_up;	/* the machine does not answer, or has gone */
};

static void on_limit(evutil_socket_t fd, short events, void *context)
{
	struct query *q = context;

	(void)fd, (void)events;
	q->frames->gave_up = true;
	event_base_loopbreak(q->base);
}

static bool start(struct query *q)
{
	struct frames *p = q->frames = calloc(1, sizeof *p);

	if (!p)
		return false;
	p->pages = ram_pages_of(q->info.machine.mem_mib);
	p->page = calloc(p->pages, sizeof *p->page);
	p->limit = evtimer_new(q->base, on_limit, q);
	p->gave_up = !p->page || !p->limit;
	return true;
}

const uint8_t *frames_page(void *query, gfn_t gfn)
{
	static const struct timeval limit = { 2, 0 };
	struct query *q = query;
	struct msg_frame frame = { .cpu = 0, .gfn = gfn };
	struct frames *p;

	if (!q->frames && !start(q))
		return NULL;
	p = q->frames;
	if (gfn >= p->pages || p->gave_up || p->page[gfn])
		return gfn < p->pages && p->page ? p->page[gfn] : NULL;
	p->awaited = gfn;
	p->waits = true;
	client_send(&q->client, MSG_FRAME_REQUEST, VNODE_CPU(frame.cpu), &frame, sizeof frame,
		    NULL, 0);
	p->gave_up = event_add(p->limit, &limit);
	while (p->waits && !p->gave_up && q->client.fd >= 0)
		if (event_base_loop(q->base, EVLOOP_ONCE))
			p->gave_up = true;
	event_del(p->limit);
	return p->page[gfn];
}

void frames_on_page(struct query *q, const struct message *m, const struct msg_frame *frame)
{
	struct frames *p = q->frames;

	if (!p || !p->waits || frame->gfn != p->awaited)
		return;
	p->waits = false;
	if (m->payload_bytes != PAGE_BYTES)
		return;
	p->page[p->awaited] = malloc(PAGE_BYTES);
	if (p->page[p->awaited])
		memcpy(p->page[p->awaited], m->payload, PAGE_BYTES);
}

void frames_free(struct query *q)
{
	struct frames *p = q->frames;

	if (!p)
		return;
	for (uint32_t i = 0; p->page && i < p->pages; i++)
		free(p->page[i]);
	free(p->page);
	if (p->limit)
		event_free(p->limit);
	free(p);
	q->frames = NULL;
}
