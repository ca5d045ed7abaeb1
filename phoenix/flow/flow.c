/* flow.c - messages from end to end: none lost, none doubled, in order per destination.
 *
 * A message first waits in the queue of its destination (`struct dest`).  Once the routing table
 * names a holder, the message enters the flow to that node, gets a number there, and is kept until
 * an ACK tells its outcome:
 *   CONSUMED  the application has it, or its time was up: forget it
 *   BOUNCED   the holder does not assume the destination any more: back into the queue, and on to
 *             the next holder
 *   HELD      it arrived and waits for the application: no need to send it again
 *   MISSING   it has not arrived yet
 * An ACK carries all outcomes from the sender's oldest unresolved number on, so any ACK may be
 * lost.
 *
 * Losses.  Links lose nothing until they break.  A message that takes long is on its way, perhaps
 * behind much else, and to retransmit it would make everything take longer.  So nothing is
 * retransmitted because a timeout has expired or the route has changed.  Instead the receiver is
 * asked (PROBE) by the same route, behind what is still on its way.  What its answer lacks of what
 * was sent before the question is lost, and is retransmitted.  If that is much, a part is
 * retransmitted, and the next part when the answer to another question says that this one has
 * arrived.  A sender also asks when later messages have arrived and an earlier one has not.
 *
 * Order.  A flow delivers in order.  A destination that moves is fenced: nothing more is sent to it
 * before everything under way to its old holder is resolved, and what came back goes first, in its
 * old order.  The receiver does its part: after it has bounced a message it also bounces all later
 * ones to the same destinations that were sent before their sender knew of that (`gen`), even if it
 * assumes the destination again.  Three rules keep `gen` true.  A retransmitted message carries
 * what its sender knew the first time.  A message that arrives before its turn says nothing about
 * what its sender knew when it sent the earlier ones.  An ACK that is too short for all outcomes
 * does not tell of new bouncing.
 *
 * Bounds.  WINDOW_* limits a flow, SEND_QUEUE_BYTES a sender, RECV_QUEUE_BYTES a receiver, which
 * drops what arrives above that; it is retransmitted later.
 */
#include "phoenix/flow/flow_private.h"
#include "phoenix/routing/detect.h"

struct flow *flow_find(struct phnx *ph, ph_vp_t peer)
{
	struct flow *f = ph->flows->table[flow_bucket(peer)];

	while (f && f->peer != peer)
		f = f->next;
	return f;
}

struct flow *flow_get(struct phnx *ph, ph_vp_t peer)
{
	struct flow *f = flow_find(ph, peer);

	if (f || ph->flows->n == MAX_FLOWS || !(f = calloc(1, sizeof *f)))
		return f;
	f->next = ph->flows->table[flow_bucket(peer)];
	f->all_next = ph->flows->all;
	ph->flows->all = f;
	f->peer = peer;
	f->credit = RECV_QUEUE_BYTES;
	f->rto_us = RTO_MIN;
	f->recv_next = f->r_una = UINT64_MAX;	/* nothing has arrived yet */
	ph->flows->table[flow_bucket(peer)] = f;
	ph->flows->n++;
	return f;
}

struct writer *flow_frame(struct phnx *ph)
{
	ph->flows->scratch.len = 0;
	ph->flows->scratch.bad = false;
	return &ph->flows->scratch;
}

/* A small frame is written into the frame's head, without another block. */
bool flow_send_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, struct writer *w)
{
	static const struct writer nothing;
	bool sent;

	if (w->bad) {
		sent = false;
	} else if (w->len <= HEAD_LIMIT) {
		sent = route_frame(ph, to, type, w, NULL);
	} else {
		struct pbuf *b = pbuf_new(w->data, w->len);
		sent = b && route_frame(ph, to, type, &nothing, b);
		pbuf_put(b);
	}
	return sent;
}

/* Returns the serial of the link towards peer, or 0. */
static uint64_t way_to(struct phnx *ph, ph_vp_t peer)
{
	struct plink *l = route_way(ph, peer);

	return l ? l->serial : 0;
}

/* ---- frames ---- */

static void release_block(void *m)
{
	rmsg_free(m);
}

static void forward(struct phnx *ph, ph_vp_t to, enum frame_type type, const unsigned char *frame,
		    size_t len)
{
	struct plink *l = route_way(ph, to);
	unsigned hops = frame[16] + 1u;

	if (!l || l->state != LINK_UP || hops > MAX_HOPS || l->out_bytes > MAX_LINK_QUEUE) {
		ph->flows->dropped++;
		return;
	}
	const unsigned char *rest = frame + ROUTED_HEAD;
	struct pbuf *b = ph->landed ? pbuf_of(rest, len - ROUTED_HEAD, release_block, ph->landed)
				    : pbuf_new(rest, len - ROUTED_HEAD);
	struct writer w = { 0 };
	put_bytes(&w, frame, ROUTED_HEAD - 1);
	put8(&w, (uint8_t)hops);
	if (b) {
		ph->landed = NULL;
		b->sealed = link_sealed(ph) < b->len ? link_sealed(ph) : 0;
		link_send(l, type, &w, b);
	}
	ph->flows->forwarded++;
	free(w.data);
	pbuf_put(b);
}

int flow_on_frame(struct phnx *ph, enum frame_type type, const unsigned char *frame, size_t len)
{
	struct reader r = { frame, frame + len, false };
	ph_vp_t to = (ph_vp_t)get64(&r), from = (ph_vp_t)get64(&r);

	get8(&r);
	if (r.bad || from < ph->upper || from == ph->name)
		return r.bad ? -1 : 0;
	if (to != ph->name) {
		forward(ph, to, type, frame, len);
		return 0;
	}
	if (!route_heard(ph, from))
		return 0;
	if (type != FRAME_DATA)
		flow_catch_up(ph);
	switch (type) {
	case FRAME_DATA:
		return receive_on_data(ph, from, &r);
	case FRAME_ACK:
		return window_on_ack(ph, from, &r);
	case FRAME_PROBE: {
		struct flow *f = flow_get(ph, from);
		uint64_t una = get_var(&r), sent = get_var(&r);
		if (f && !r.bad && sent <= WINDOW_MSGS) {
			ack_forget(f, una);
			ack_answer(ph, f, una + sent);
		}
		return 0;
	}
	case FRAME_GOSSIP:
		return detect_on_gossip(ph, &r);
	default:
		return -1;
	}
}

/* ---- the end of a flow ---- */

struct flow *flow_take(struct phnx *ph, ph_vp_t peer)
{
	struct flow **at = ph->flows->table + flow_bucket(peer), *f;

	while (*at && (*at)->peer != peer)
		at = &(*at)->next;
	f = *at;
	if (!f)
		return NULL;
	*at = f->next;
	ph->flows->n--;
	for (at = &ph->flows->all; *at != f;)
		at = &(*at)->all_next;
	*at = f->all_next;
	return f;
}

void flow_destroy(struct phnx *ph, struct flow *f)
{
	for (unsigned i = 0; i < f->n_slots; i++)
		if (f->slots[i].early) {
			ph->flows->in_bytes -= rmsg_bytes(f->slots[i].early);
			rmsg_free(f->slots[i].early);
		}
	free(f->slots);
	free(f->ring);
	free(f);
}

/* ---- timers ---- */

static bool is_up(const struct phnx *ph, uint64_t way)
{
	const struct plink *l = link_first(ph);

	while (l && (l->serial != way || l->state != LINK_UP))
		l = l->next;
	return l != NULL;
}

static void tick_flow(struct phnx *ph, struct flow *f, uint64_t now, uint64_t *next)
{
	if (ph->flows->n_timed && f->ring_size)
		window_expire(ph, f, now);
	if (f->una != f->next_seq) {
		uint64_t way = way_to(ph, f->peer);
		if (way && way != f->way) {
			if (!is_up(ph, f->way)) {	/* what was under way there may be lost */
				f->rto_us = RTO_MIN;
				soon(&f->rto_at, now);
			}
			f->way = way;
		}
		if (!f->rto_at)
			f->rto_at = now + f->rto_us;
		if (now >= f->rto_at)
			window_ask(ph, f, now);
		*next = f->rto_at < *next ? f->rto_at : *next;
	}
	if (f->ack_at && now >= f->ack_at)
		ack_send(ph, f);
	if (f->ack_at && f->ack_at < *next)
		*next = f->ack_at;
}

void flow_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	enum { TIMED_STEP = 10000 };

	ph->ack_due = UINT64_MAX;
	if (ph->flows->stranded) {
		flow_release(ph);
		ph->pump = true;
		*next = now + MEMORY_WAIT < *next ? now + MEMORY_WAIT : *next;
	}
	if (ph->flows->n_timed) {
		receive_expire(ph, now);
		*next = now + TIMED_STEP < *next ? now + TIMED_STEP : *next;
	}
	for (struct flow *f = ph->flows->all; f; f = f->all_next)
		tick_flow(ph, f, now, next);
	bool waiting = false;	/* some wait has ended (TRICKS: wait-then-pump) */
	for (struct dest *d = ph->flows->active; d; d = d->next)
		if (d->queue && d->wait_us) {
			if (now >= d->wait_us) {
				waiting = true;
				d->wait_us = 0;
			} else if (d->wait_us < *next) {
				*next = d->wait_us;
			}
		}
	if (ph->pump || waiting || ph->flows->n_timed || ph->ways_seen != ph->ways)
		flow_pump(ph);
	if (ph->pump)
		*next = now;
}

uint64_t flow_forwarded(const struct phnx *ph)
{
	return ph->flows->forwarded;
}

bool flow_calls_back(const struct phnx *ph)
{
	bool any = ph->flows->gone_fn != NULL;

	for (int i = 0; i < HANDLER_TABLE; i++)
		any |= ph->flows->handlers[i] != NULL;
	return any;
}

/* ---- start and end ---- */

int flow_init(struct phnx *ph)
{
	ph->flows = calloc(1, sizeof *ph->flows);
	if (!ph->flows)
		return -1;
	ph->flows->received_end = &ph->flows->received;
	ph->ack_due = UINT64_MAX;
	return 0;
}

void flow_free(struct phnx *ph)
{
	if (!ph->flows)
		return;
	for (int i = 0; i < FLOW_TABLE; i++) {
		struct flow *f;
		struct dest *d;
		while ((f = ph->flows->table[i])) {
			flow_take(ph, f->peer);
			window_free(ph, f);
			flow_destroy(ph, f);
		}
		while ((d = ph->flows->dests[i])) {
			ph->flows->dests[i] = d->hash_next;
			send_dest_free(ph, d);
		}
	}
	while (ph->flows->received) {
		struct rmsg *m = ph->flows->received;
		ph->flows->received = m->next;
		rmsg_free(m);
	}
	while (ph->flows->spare) {
		struct smsg *m = ph->flows->spare;
		ph->flows->spare = m->next;
		free(m);
	}
	while (ph->flows->spare_dest) {
		struct dest *d = ph->flows->spare_dest;
		ph->flows->spare_dest = d->next;
		free(d);
	}
	for (int i = 0; i < HANDLER_TABLE; i++)
		for (struct handler *h; (h = ph->flows->handlers[i]); free(h))
			ph->flows->handlers[i] = h->next;
	free(ph->flows->scratch.data);
	free(ph->flows);
}
