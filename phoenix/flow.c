/* flow.c - messages from end to end: none lost, none doubled, in order per destination.
 *
 * A message first waits in the queue of its destination (`struct dest`).  Once the routing table names a holder it enters
 * the flow to that node, gets a number there, and is kept until the ACK says what became of it:
 *   CONSUMED  the application has it (or its time was up): forget it
 *   BOUNCED   the holder does not assume the destination any more: back into the queue, and on to the next holder
 *   HELD      it arrived and waits for the application: no need to send it again
 *   MISSING   send it again, after a while or when the link to the next hop has changed
 * An ACK carries all outcomes from the sender's oldest unresolved number on, so any ACK may be lost.
 *
 * Order.  A flow delivers in order.  A destination that moves is fenced: nothing more is sent to it before all that was
 * under way to its old holder is resolved, and what came back goes first, in its old order.  The receiver does its part:
 * after it has bounced a message it bounces all later ones to the same destinations that were sent before their sender
 * knew (`gen`), even when it assumes the destination again.
 *
 * Bounds.  WINDOW_* per flow, SEND_QUEUE_BYTES per sender, RECV_QUEUE_BYTES per receiver: over it, arriving messages are
 * dropped unseen, and sent again later.
 */
#include <stdio.h>
#include "phoenix/core.h"

enum { OVERHEAD = sizeof(struct smsg), BOUNCE_WAIT = 2000, GAP_WAIT = 20000, RESEND_MSGS = 64, RESEND_BYTES = 1 << 20,
       HEAD_LIMIT = 90, MAX_RUNS = 256 };

static unsigned bucket(ph_vp_t name)
{
	return (unsigned)((uint64_t)name * 0x9e3779b97f4a7c15ULL >> 56);
}

static void soon(uint64_t *at, uint64_t when)
{
	if (!*at || when < *at)
		*at = when;
}

static void ack_within(struct phnx *ph, struct flow *f, uint64_t at)
{
	soon(&f->ack_at, at);
	if (f->ack_at < ph->flows.ack_soonest)
		ph->flows.ack_soonest = f->ack_at;
}

/* ---- destinations ---- */

static struct dest *dest_get(struct phnx *ph, ph_vp_t vp)
{
	struct flows *fl = &ph->flows;
	struct dest **slot = fl->dests + bucket(vp), *d;

	for (d = *slot; d; d = d->hash_next)
		if (d->vp == vp)
			return d;
	if ((d = fl->spare_dest))
		fl->spare_dest = d->next;
	else if (!(d = malloc(sizeof *d)))
		return NULL;
	*d = (struct dest){ .hash_next = *slot, .next = fl->active, .vp = vp, .active = true };
	d->queue_end = &d->queue;
	*slot = d;
	if (d->next)
		d->next->prev = d;
	fl->active = d;
	return d;
}

/* Forgets a destination that has nothing under way. */
static void dest_done(struct phnx *ph, struct dest *d)
{
	struct flows *fl = &ph->flows;
	struct dest **at = fl->dests + bucket(d->vp);

	if (d->queue || d->outstanding)
		return;
	while (*at != d)
		at = &(*at)->hash_next;
	*at = d->hash_next;
	if (d->prev)
		d->prev->next = d->next;
	else
		fl->active = d->next;
	if (d->next)
		d->next->prev = d->prev;
	d->next = fl->spare_dest;
	d->active = false;
	fl->spare_dest = d;
}

static void smsg_free(struct phnx *ph, struct smsg *m)
{
	ph->flows.out_bytes -= m->body->len + OVERHEAD;
	ph->flows.n_timed -= m->deadline_us != 0;
	pbuf_put(m->body);
	m->next = ph->flows.spare;
	ph->flows.spare = m;
}

static struct smsg *queue_pop(struct dest *d)
{
	struct smsg *m = d->queue;

	d->queue = m->next;
	if (!d->queue)
		d->queue_end = &d->queue;
	m->next = NULL;
	return m;
}

static void queue_insert(struct dest *d, struct smsg *m)
{
	struct smsg **at = &d->queue;

	while (*at && (*at)->order < m->order)
		at = &(*at)->next;
	m->next = *at;
	*at = m;
	if (!m->next)
		d->queue_end = &m->next;
}

/* ---- flows ---- */

static struct flow *flow_find(struct phnx *ph, ph_vp_t peer)
{
	struct flow *f = ph->flows.table[bucket(peer)];

	while (f && f->peer != peer)
		f = f->next;
	return f;
}

static struct flow *flow_get(struct phnx *ph, ph_vp_t peer)
{
	struct flow *f = flow_find(ph, peer);

	if (f || ph->flows.n == MAX_FLOWS || !(f = calloc(1, sizeof *f)))
		return f;
	f->next = ph->flows.table[bucket(peer)];
	f->peer = peer;
	f->credit = RECV_QUEUE_BYTES;
	f->rto_us = RTO_MIN;
	f->recv_next = f->r_una = UINT64_MAX;	/* nothing was received yet */
	ph->flows.table[bucket(peer)] = f;
	ph->flows.n++;
	return f;
}

static bool ring_room(struct flow *f)
{
	unsigned n = f->ring_size;

	if (f->next_seq - f->una < n)
		return true;
	n = n ? 2 * n : 16;
	struct smsg **ring = calloc(n, sizeof *ring);
	if (!ring)
		return false;
	for (uint64_t s = f->una; s < f->next_seq; s++)
		ring[s % n] = f->ring[s % f->ring_size];
	free(f->ring);
	f->ring = ring;
	f->ring_size = n;
	return true;
}

static bool slot_room(struct flow *f, uint64_t seq)
{
	unsigned n = f->n_slots ? f->n_slots : 16;

	if (f->n_slots && seq - f->r_una < f->n_slots)
		return true;
	while (seq - f->r_una >= n)
		n *= 2;
	struct rslot *slots = calloc(n, sizeof *slots);
	if (!slots)
		return false;
	for (uint64_t s = f->r_una; f->n_slots && s < f->r_una + f->n_slots; s++)
		slots[s % n] = f->slots[s % f->n_slots];
	free(f->slots);
	f->slots = slots;
	f->n_slots = n;
	return true;
}

/* A frame through the overlay; small ones stay in the frame's head. */
static bool send_routed(struct phnx *ph, ph_vp_t to, enum frame_type type, struct writer *w)
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
	free(w->data);
	return sent;
}

static void send_ack_asking(struct phnx *ph, struct flow *f, bool confirm)
{
	struct writer w = { 0 };
	uint64_t room = ph->flows.in_bytes < RECV_QUEUE_BYTES ? RECV_QUEUE_BYTES - ph->flows.in_bytes : 0;

	f->ack_at = 0;
	f->unacked = 0;
	put_var(&w, f->r_una);
	put_var(&w, room);
	put_var(&w, (uint64_t)f->gen << 1 | confirm);
	uint64_t s = f->r_una;
	for (int runs = 0; f->n_slots && runs < MAX_RUNS && s < f->r_una + f->n_slots; runs++) {
		uint64_t start = s;
		uint8_t outcome = f->slots[s % f->n_slots].outcome;
		while (s < f->r_una + f->n_slots && f->slots[s % f->n_slots].outcome == outcome)
			s++;
		put8(&w, outcome);
		put_var(&w, s - start);
	}
	send_routed(ph, f->peer, FRAME_ACK, &w);
}

static void send_ack(struct phnx *ph, struct flow *f)
{
	send_ack_asking(ph, f, false);
}

static uint64_t way_to(struct phnx *ph, ph_vp_t peer)
{
	struct rentry *e = route_find(ph, peer);
	struct plink *l = e && e->direct ? e->direct : e ? e->fwd : NULL;

	return l ? l->serial : 0;
}

static void transmit(struct phnx *ph, struct flow *f, struct smsg *m)
{
	unsigned char stack[HEAD_LIMIT];
	struct writer w = { .data = stack, .room = sizeof stack };	/* never grows: no allocation on this path */
	uint64_t now = phnx_now(ph);

	if (f->ack_at)
		send_ack(ph, f);
	m->sent_us = now;
	put_var(&w, f->una);
	put_var(&w, m->seq - f->una);
	put_var(&w, f->gen_seen);
	put64(&w, (uint64_t)m->origin);
	put64(&w, (uint64_t)m->dest);
	put32(&w, (uint32_t)m->tag);
	put8(&w, (uint8_t)m->flags);
	put_var(&w, m->deadline_us > now ? m->deadline_us - now : m->deadline_us ? 1 : 0);
	if (route_frame(ph, f->peer, FRAME_DATA, &w, m->body) && !f->way)
		f->way = way_to(ph, f->peer);
	if (!f->rto_at)
		f->rto_at = now + f->rto_us;
	if (f->rto_at < ph->due)
		ph->due = f->rto_at;
}

/* ---- towards the application ---- */

/* The message's outcome, for its sender. */
static void resolve_received(struct phnx *ph, struct rmsg *m, enum outcome outcome)
{
	struct flow *f = m->peer ? flow_find(ph, m->peer) : NULL;

	if (!f || m->seq < f->r_una || m->seq - f->r_una >= f->n_slots)
		return;
	f->slots[m->seq % f->n_slots].outcome = (uint8_t)outcome;
	uint64_t now = phnx_now(ph);
	ack_within(ph, f, ++f->unacked >= ACK_EVERY || outcome == OUT_BOUNCED ? now : now + ACK_DELAY);
}

static void bounce(struct phnx *ph, struct flow *f, struct rmsg *m)
{
	ph_vp_t dest = m->pub.dest;

	if (f->gen_acked == f->gen) {
		f->bounce_lo = f->bounce_hi = dest;
	} else {
		f->bounce_lo = dest < f->bounce_lo ? dest : f->bounce_lo;
		f->bounce_hi = dest > f->bounce_hi ? dest : f->bounce_hi;
	}
	f->gen++;
	ph->flows.bounced++;
	resolve_received(ph, m, OUT_BOUNCED);
	free(m);
}

static struct handler *handler_of(struct phnx *ph, int tag)
{
	struct handler *h = ph->handlers;

	while (h && h->tag != tag)
		h = h->next;
	return h;
}

static size_t rmsg_bytes(const struct rmsg *m)
{
	return sizeof *m + m->pub.len;
}

/* Consumes at once what the library or a handler wants; queues the rest. */
static void deliver(struct phnx *ph, struct rmsg *m)
{
	struct handler *h = m->flags & DATA_INTERNAL ? NULL : handler_of(ph, m->pub.tag);

	if (!(m->flags & (DATA_INTERNAL | DATA_VOID)) && !h) {
		bool was_empty = !ph->flows.received;
		m->next = NULL;
		*ph->flows.received_end = m;
		ph->flows.received_end = &m->next;
		ph->flows.in_bytes += rmsg_bytes(m);
		ph->flows.n_timed += m->deadline_us != 0;
		if (was_empty)
			ph->ops->arrived(ph->ctx);
		return;
	}
	ph->flows.delivered++;
	resolve_received(ph, m, OUT_CONSUMED);
	if (m->flags & DATA_INTERNAL && m->pub.tag == TAG_MIGRATION)
		migrate_on_message(ph, m);
	else if (m->flags & DATA_INTERNAL)
		collective_on_message(ph, m);
	else if (h && !(m->flags & DATA_VOID))
		h->fn(h->arg, &m->pub, m->source);
	free(m);
}

static struct rmsg *unlink_received(struct phnx *ph, struct rmsg **at)
{
	struct rmsg *m = *at;

	*at = m->next;
	if (!*at)
		ph->flows.received_end = at;
	ph->flows.in_bytes -= rmsg_bytes(m);
	ph->flows.n_timed -= m->deadline_us != 0;
	return m;
}

static bool tags_match(int wanted, int tag)
{
	return wanted == PH_MSG_ANY_TAG || tag == PH_MSG_ANY_TAG || wanted == tag;
}

bool flow_waiting(struct phnx *ph, int tag)
{
	for (struct rmsg *m = ph->flows.received; m; m = m->next)
		if (tags_match(tag, m->pub.tag))
			return true;
	return false;
}

static void expire_received(struct phnx *ph, uint64_t now)
{
	for (struct rmsg **at = &ph->flows.received; *at;) {
		if (!(*at)->deadline_us || now < (*at)->deadline_us) {
			at = &(*at)->next;
			continue;
		}
		struct rmsg *m = unlink_received(ph, at);
		resolve_received(ph, m, OUT_CONSUMED);
		free(m);
	}
}

struct rmsg *flow_receive(struct phnx *ph, int tag)
{
	if (ph->flows.n_timed)
		expire_received(ph, phnx_now(ph));
	for (struct rmsg **at = &ph->flows.received; *at; at = &(*at)->next)
		if (tags_match(tag, (*at)->pub.tag)) {
			struct rmsg *m = unlink_received(ph, at);
			ph->flows.delivered++;
			resolve_received(ph, m, OUT_CONSUMED);
			if (!ph->flows.received)
				ph->ops->arrived(ph->ctx);
			return m;
		}
	return NULL;
}

void flow_handle(struct phnx *ph)
{
	struct rmsg *all = ph->flows.received, *m;

	ph->flows.received = NULL;
	ph->flows.received_end = &ph->flows.received;
	while ((m = all)) {
		all = m->next;
		ph->flows.in_bytes -= rmsg_bytes(m);
		ph->flows.n_timed -= m->deadline_us != 0;
		deliver(ph, m);
	}
	if (!ph->flows.received)
		ph->ops->arrived(ph->ctx);
}

static struct rmsg *rmsg_new(const void *body, size_t len)
{
	struct rmsg *m = malloc(sizeof *m + len + 1);

	if (!m)
		return NULL;
	memset(m, 0, sizeof *m);
	if (len)
		memcpy(m->body, body, len);
	m->body[len] = 0;
	m->pub.body = m->body;
	m->pub.len = len;
	return m;
}

static void deliver_local(struct phnx *ph, struct smsg *s)
{
	struct rmsg *m = rmsg_new(s->body->data, s->body->len);

	if (m) {
		m->pub.dest = s->dest;
		m->pub.tag = s->tag;
		m->source = s->origin;
		m->flags = s->flags & (DATA_UNORDERED | DATA_INTERNAL);
		m->deadline_us = s->deadline_us;
		deliver(ph, m);
	} else {
		phnx_report(ph, PH_ENOMEM, "a message was lost for want of memory");
	}
	smsg_free(ph, s);
}

/* This node's copy of a multicast. */
void deliver_multicast(struct phnx *ph, ph_vp_t dest, ph_vp_t source, int tag, const void *body, size_t len)
{
	struct rmsg *m = rmsg_new(body, len);

	if (!m)
		return;
	m->pub.dest = dest;
	m->pub.tag = tag;
	m->source = source;
	deliver(ph, m);
}

/* ---- sending ---- */

static bool window_open(struct flow *f, const struct smsg *m)
{
	if (f->next_seq == f->una)
		return true;
	return f->next_seq - f->una < WINDOW_MSGS && f->bytes + m->body->len <= WINDOW_BYTES &&
	       f->bytes + m->body->len <= f->credit;
}

static bool give_to_flow(struct phnx *ph, struct dest *d, ph_vp_t node, unsigned more_flags)
{
	struct flow *f = flow_get(ph, node);

	if (!f || !window_open(f, d->queue) || !ring_room(f))
		return false;
	struct smsg *m = queue_pop(d);
	m->seq = f->next_seq++;
	m->flags |= more_flags;
	m->held = false;
	m->to = d;
	f->ring[m->seq % f->ring_size] = m;
	f->bytes += m->body->len;
	d->outstanding++;
	d->via = node;
	ph->flows.sent++;
	transmit(ph, f, m);
	return true;
}

static void pump_dest(struct phnx *ph, struct dest *d, uint64_t now)
{
	while (d->queue) {
		struct smsg *m = d->queue;

		if (m->deadline_us && now >= m->deadline_us) {
			smsg_free(ph, queue_pop(d));
			continue;
		}
		d->fenced = d->fenced && d->outstanding;
		if (now < d->wait_us || d->fenced)
			break;
		ph_vp_t holder = route_holder(ph, d->vp);
		if (!holder || (d->outstanding && d->via != holder && !(m->flags & DATA_UNORDERED)))
			break;
		if (holder == ph->name)
			deliver_local(ph, queue_pop(d));
		else if (!give_to_flow(ph, d, holder, 0))
			break;
	}
	dest_done(ph, d);
}

int flow_send(struct phnx *ph, ph_vp_t vp, ph_vp_t origin, struct pbuf *body, int tag, unsigned flags, uint64_t deadline_us)
{
	struct flows *fl = &ph->flows;
	struct dest *d = dest_get(ph, vp);
	struct smsg *m = fl->spare;

	if (m)
		fl->spare = m->next;
	else
		m = malloc(sizeof *m);
	if (!d || !m) {
		free(m);
		return PH_ENOMEM;
	}
	*m = (struct smsg){ .dest = vp, .origin = origin, .tag = tag, .flags = flags, .order = ++fl->order,
			    .deadline_us = deadline_us, .body = body };
	body->refs++;
	fl->out_bytes += body->len + OVERHEAD;
	fl->n_timed += deadline_us != 0;
	bool first = !d->queue;
	*d->queue_end = m;
	d->queue_end = &m->next;
	if (first)
		pump_dest(ph, d, phnx_now(ph));
	return 0;
}

void flow_pump(struct phnx *ph)
{
	uint64_t now = phnx_now(ph);
	struct dest *following;

	ph->flows.pump = false;
	ph->flows.version_seen = ph->routes.version;
	for (struct dest *d = ph->flows.active; d; d = following) {
		following = d->next;
		if (d->queue)
			pump_dest(ph, d, now);
		if (following && !following->active) {	/* a handler has completed it just now: begin anew */
			ph->flows.pump = true;
			break;
		}
	}
}

/* Messages that nobody assumes go to a neighbour, which sends them on as if they were its own. */
void flow_custody(struct phnx *ph)
{
	struct plink *keeper = NULL;
	struct dest *following;

	for (struct plink *l = ph->links; l; l = l->next) {
		struct rentry *e = l->state == LINK_UP ? route_find(ph, l->peer) : NULL;
		if (e && e->nhops == 1 && !e->payload.leaving && !e->payload.gone)
			keeper = l;
	}
	for (struct dest *d = ph->flows.active; keeper && d; d = following) {
		following = d->next;
		while (d->queue && !d->outstanding && !route_holder(ph, d->vp) && d->vp < ph->upper &&
		       !(d->queue->flags & DATA_INTERNAL))
			if (!give_to_flow(ph, d, keeper->peer, DATA_CUSTODY))
				break;
	}
}

/* The destination comes back from a flow: to its queue, in its old order. */
static void requeue(struct phnx *ph, struct smsg *m)
{
	struct dest *d = m->to;

	d->outstanding--;
	d->fenced = d->outstanding > 0;
	d->wait_us = phnx_now(ph) + BOUNCE_WAIT;
	m->flags &= ~(unsigned)DATA_CUSTODY;
	m->to = NULL;
	queue_insert(d, m);
	ph->flows.pump = true;
}

static void resolve_sent(struct phnx *ph, struct flow *f, uint64_t seq, enum outcome outcome)
{
	struct smsg *m = f->ring[seq % f->ring_size];

	if (!m)
		return;
	f->ring[seq % f->ring_size] = NULL;
	f->bytes -= m->body->len;
	if (outcome == OUT_BOUNCED && !(m->flags & DATA_VOID)) {
		requeue(ph, m);
		return;
	}
	struct dest *d = m->to;
	d->outstanding--;
	smsg_free(ph, m);
	dest_done(ph, d);
}

static void advance_una(struct phnx *ph, struct flow *f)
{
	uint64_t before = f->una;

	while (f->una < f->next_seq && !f->ring[f->una % f->ring_size])
		f->una++;
	if (f->una != before || f->una == f->next_seq) {
		f->rto_us = RTO_MIN;
		f->rto_at = f->una == f->next_seq ? 0 : phnx_now(ph) + f->rto_us;
		ph->flows.pump = true;
	}
}

static void send_probe(struct phnx *ph, struct flow *f)
{
	struct writer w = { 0 };

	put_var(&w, f->una);
	send_routed(ph, f->peer, FRAME_PROBE, &w);
}

/* Sends again what has not arrived; when all has, asks what became of it. */
static void resend(struct phnx *ph, struct flow *f, uint64_t now)
{
	unsigned msgs = 0;
	size_t bytes = 0;

	f->rto_us = 2 * f->rto_us < RTO_MAX ? 2 * f->rto_us : RTO_MAX;
	f->rto_at = now + f->rto_us;
	for (uint64_t s = f->una; s < f->next_seq && msgs < RESEND_MSGS && bytes < RESEND_BYTES; s++) {
		struct smsg *m = f->ring[s % f->ring_size];
		if (!m || m->held)
			continue;
		ph->flows.resent++;
		transmit(ph, f, m);
		msgs++;
		bytes += m->body->len;
	}
	if (msgs == 0)
		send_probe(ph, f);
}

/* ---- frames ---- */

static int on_ack(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	struct flow *f = flow_find(ph, from);
	uint64_t s = get_var(r), credit = get_var(r), gen = get_var(r), now = phnx_now(ph);
	bool confirm = gen & 1;
	uint64_t gap = UINT64_MAX;

	if (r->bad || !f || !f->ring_size || s > f->next_seq)
		return 0;
	f->credit = credit;
	gen >>= 1;
	if (gen > f->gen_seen)
		f->gen_seen = (unsigned)gen;
	while (r->p < r->end) {
		enum outcome outcome = get8(r);
		uint64_t n = get_var(r);
		if (r->bad || n > UINT64_MAX / 2 - s)
			return -1;
		for (uint64_t end = s + n; s < end && s < f->next_seq; s++) {
			struct smsg *m = s < f->una ? NULL : f->ring[s % f->ring_size];
			if (!m)
				continue;
			if (outcome == OUT_MISSING) {
				gap = gap < s ? gap : s;
				continue;
			}
			m->held = true;
			if (gap < s) {		/* something later has arrived: the gap is a loss */
				struct smsg *lost = f->ring[gap % f->ring_size];
				if (lost && now >= lost->sent_us + GAP_WAIT) {
					ph->flows.resent++;
					transmit(ph, f, lost);
				}
				gap = UINT64_MAX - 1;
			}
			if (outcome != OUT_HELD)
				resolve_sent(ph, f, s, outcome);
		}
	}
	advance_una(ph, f);
	if (confirm)
		send_probe(ph, f);	/* it tells our una */
	return 0;
}

static bool is_mine(struct phnx *ph, ph_vp_t dest)
{
	return dest == ph->name || ph_vps_is_member(&ph->me.vps, dest);
}

/* A message's turn has come. */
static void accept(struct phnx *ph, struct flow *f, struct rmsg *m)
{
	if (m->flags & DATA_VOID) {
		resolve_received(ph, m, OUT_CONSUMED);
		free(m);
	} else if (m->flags & DATA_CUSTODY) {
		struct pbuf *b = pbuf_new(m->body, m->pub.len);
		resolve_received(ph, m, b ? OUT_CONSUMED : OUT_BOUNCED);
		if (b)
			flow_send(ph, m->pub.dest, m->source, b, m->pub.tag, m->flags & DATA_UNORDERED, m->deadline_us);
		pbuf_put(b);
		free(m);
	} else if (!is_mine(ph, m->pub.dest) ||
		   (m->gen < f->gen && m->pub.dest >= f->bounce_lo && m->pub.dest <= f->bounce_hi)) {
		bounce(ph, f, m);
	} else {
		deliver(ph, m);
	}
}

static void accept_in_turn(struct phnx *ph, struct flow *f)
{
	while (f->recv_next - f->r_una < f->n_slots) {
		struct rslot *slot = f->slots + f->recv_next % f->n_slots;
		struct rmsg *m = slot->early;
		if (slot->outcome == OUT_MISSING)
			break;
		slot->early = NULL;
		f->recv_next++;
		if (!m)
			continue;
		ph->flows.in_bytes -= rmsg_bytes(m);
		accept(ph, f, m);
	}
}

/* The sender has read the outcomes of everything below una. */
static void forget_below(struct flow *f, uint64_t una)
{
	if (f->recv_next == UINT64_MAX)
		f->recv_next = f->r_una = una;
	if (una > f->recv_next)
		return;		/* impossible for an honest peer */
	for (; f->r_una < una; f->r_una++)
		if (f->n_slots)
			f->slots[f->r_una % f->n_slots] = (struct rslot){ 0 };
}

static int on_data(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	uint64_t una = get_var(r), seq = una + get_var(r), now = phnx_now(ph);
	uint64_t gen = get_var(r);
	ph_vp_t origin = (ph_vp_t)get64(r), dest = (ph_vp_t)get64(r);
	int tag = (int)get32(r);
	unsigned flags = get8(r);
	uint64_t life = get_var(r);
	size_t len = (size_t)(r->end - r->p);

	if (r->bad || seq - una >= WINDOW_MSGS || dest < 0 || len > PH_MSG_MAX)
		return -1;
	struct flow *f = flow_get(ph, from);
	if (!f)
		return 0;
	forget_below(f, una);
	if (gen > f->gen_acked && gen <= f->gen)
		f->gen_acked = (unsigned)gen;
	ack_within(ph, f, now + ACK_DELAY);
	if (seq < f->r_una || seq - f->r_una >= 2 * WINDOW_MSGS)
		return 0;
	if (!slot_room(f, seq) || f->slots[seq % f->n_slots].outcome != OUT_MISSING) {
		ack_within(ph, f, now);	/* doubled: its sender missed an ACK */
		return 0;
	}
	size_t most = seq == f->recv_next ? 2u * RECV_QUEUE_BYTES : RECV_QUEUE_BYTES;	/* the gap must close */
	if (ph->flows.in_bytes && ph->flows.in_bytes + len > most) {
		ph->flows.dropped++;
		return 0;
	}
	struct rmsg *m = rmsg_new(r->p, len);
	if (!m)
		return 0;
	m->pub.dest = dest;
	m->pub.tag = tag;
	m->source = origin;
	m->peer = from;
	m->seq = seq;
	m->flags = flags;
	m->gen = (unsigned)gen;
	m->deadline_us = life ? now + life : 0;
	f->slots[seq % f->n_slots] = (struct rslot){ .outcome = OUT_HELD };
	if (flags & DATA_UNORDERED)
		accept(ph, f, m);
	else {
		f->slots[seq % f->n_slots].early = m;
		ph->flows.in_bytes += rmsg_bytes(m);
	}
	accept_in_turn(ph, f);
	return 0;
}

static void forward(struct phnx *ph, ph_vp_t to, enum frame_type type, const unsigned char *frame, size_t len)
{
	enum { HEAD = 17 };
	struct rentry *e = route_find(ph, to);
	struct plink *l = e && e->direct ? e->direct : e ? e->fwd : NULL;
	unsigned hops = frame[16] + 1u;

	if (!l || l->state != LINK_UP || hops > MAX_HOPS || l->out_bytes > MAX_LINK_QUEUE) {
		ph->flows.dropped++;
		return;
	}
	struct pbuf *b = pbuf_new(frame + HEAD, len - HEAD);
	struct writer w = { 0 };
	put_bytes(&w, frame, HEAD - 1);
	put8(&w, (uint8_t)hops);
	if (b)
		link_send(l, type, &w, b);
	ph->flows.forwarded++;
	free(w.data);
	pbuf_put(b);
}

int flow_on_frame(struct phnx *ph, struct plink *l, enum frame_type type, const unsigned char *frame, size_t len)
{
	struct reader r = { frame, frame + len, false };
	ph_vp_t to = (ph_vp_t)get64(&r), from = (ph_vp_t)get64(&r);

	(void)l;
	get8(&r);
	if (r.bad || from < ph->upper || from == ph->name)
		return r.bad ? -1 : 0;
	if (to != ph->name) {
		forward(ph, to, type, frame, len);
		return 0;
	}
	struct rentry *e = route_find(ph, from);
	if (e && e->payload.gone)
		return 0;
	if (e)
		e->heard_us = phnx_now(ph);
	switch (type) {
	case FRAME_DATA:
		return on_data(ph, from, &r);
	case FRAME_ACK:
		return on_ack(ph, from, &r);
	case FRAME_PROBE: {
		struct flow *f = flow_get(ph, from);
		uint64_t una = get_var(&r);
		if (f && !r.bad) {
			forget_below(f, una);
			send_ack(ph, f);
		}
		return 0;
	}
	case FRAME_GOSSIP:
		return detect_on_gossip(ph, &r);
	default:
		return -1;
	}
}

/* ---- changes of the mapping, and departures ---- */

/* What waits here for the released virtual nodes goes back to its senders, or on its way again if we sent it. */
void flow_release(struct phnx *ph, const struct ph_vps *vps)
{
	for (struct rmsg **at = &ph->flows.received; *at;) {
		if (!ph_vps_is_member((ph_vps_t)vps, (*at)->pub.dest)) {
			at = &(*at)->next;
			continue;
		}
		struct rmsg *m = unlink_received(ph, at);
		struct flow *f = m->peer ? flow_find(ph, m->peer) : NULL;
		if (f) {
			bounce(ph, f, m);
			continue;
		}
		struct pbuf *b = pbuf_new(m->body, m->pub.len);
		if (b)
			flow_send(ph, m->pub.dest, m->source, b, m->pub.tag, m->flags, m->deadline_us);
		pbuf_put(b);
		free(m);
	}
	if (!ph->flows.received)
		ph->ops->arrived(ph->ctx);
}

bool flow_idle(struct phnx *ph)
{
	return ph->flows.active == NULL;
}

void flow_ack_all(struct phnx *ph)
{
	for (int i = 0; i < FLOW_TABLE; i++)
		for (struct flow *f = ph->flows.table[i]; f; f = f->next)
			if (f->ack_at)
				send_ack(ph, f);
}

/* A node that leaves for good must not take the outcome of a message along: its sender, left in doubt, would send it to
 * the next holder. */
bool flow_settled(struct phnx *ph)
{
	uint64_t now = phnx_now(ph);
	bool settled = true;

	for (int i = 0; i < FLOW_TABLE; i++)
		for (struct flow *f = ph->flows.table[i]; f; f = f->next) {
			if (f->recv_next == UINT64_MAX || f->r_una == f->recv_next)
				continue;
			settled = false;
			if (now < f->confirm_us + RTO_MIN / 4)
				continue;
			f->confirm_us = now;
			send_ack_asking(ph, f, true);
		}
	return settled;
}

static void flow_destroy(struct phnx *ph, struct flow *f)
{
	for (unsigned i = 0; i < f->n_slots; i++)
		if (f->slots[i].early) {
			ph->flows.in_bytes -= rmsg_bytes(f->slots[i].early);
			free(f->slots[i].early);
		}
	free(f->slots);
	free(f->ring);
	free(f);
}

/* Gives a message that was under way to a dead node back to the application. */
static void return_message(struct phnx *ph, ph_vp_t peer, struct smsg *m)
{
	struct ph_msg pub = { (void *)m->body->data, m->body->len, m->dest, m->tag };

	if (ph->detector.policy == PH_GONE_RETURN && ph->detector.fn && !(m->flags & DATA_INTERNAL))
		ph->detector.fn(ph->detector.arg, peer, &pub);
	smsg_free(ph, m);
}

void flow_peer_gone(struct phnx *ph, ph_vp_t peer)
{
	struct flow **at = ph->flows.table + bucket(peer);

	while (*at && (*at)->peer != peer)
		at = &(*at)->next;
	if (*at) {
		struct flow *f = *at;
		*at = f->next;
		ph->flows.n--;
		for (uint64_t s = f->una; s < f->next_seq; s++) {
			struct smsg *m = f->ring[s % f->ring_size];
			if (!m)
				continue;
			if ((ph->detector.policy == PH_GONE_RESEND || m->flags & DATA_INTERNAL) && m->dest != peer) {
				requeue(ph, m);
				continue;
			}
			struct dest *d = m->to;
			d->outstanding--;
			return_message(ph, peer, m);
			dest_done(ph, d);
		}
		flow_destroy(ph, f);
	}
	for (struct dest *d = ph->flows.dests[bucket(peer)]; d; d = d->hash_next)
		if (d->vp == peer) {	/* nobody will ever have this name again */
			while (d->queue)
				return_message(ph, peer, queue_pop(d));
			dest_done(ph, d);
			break;
		}
}

/* ---- timers ---- */

/* A message whose time is up while it is under way keeps its number, but not its contents. */
static void expire_sent(struct phnx *ph, struct flow *f, uint64_t now)
{
	for (uint64_t s = f->una; s < f->next_seq; s++) {
		struct smsg *m = f->ring[s % f->ring_size];
		if (!m || !m->deadline_us || m->held || now < m->deadline_us || (m->flags & DATA_VOID))
			continue;
		struct pbuf *empty = pbuf_new(NULL, 0);
		if (!empty)
			continue;
		f->bytes -= m->body->len;
		ph->flows.out_bytes -= m->body->len;
		pbuf_put(m->body);
		m->body = empty;
		m->flags |= DATA_VOID;
		soon(&f->rto_at, now);
	}
}

static void tick_flow(struct phnx *ph, struct flow *f, uint64_t now, uint64_t *next)
{
	if (ph->flows.n_timed && f->ring_size)
		expire_sent(ph, f, now);
	if (f->una != f->next_seq) {
		uint64_t way = way_to(ph, f->peer);
		if (way && way != f->way) {	/* what was under way on the old link may be lost */
			f->rto_us = RTO_MIN;
			soon(&f->rto_at, now);
			f->way = way;
		}
		if (!f->rto_at)
			f->rto_at = now + f->rto_us;
		if (now >= f->rto_at)
			resend(ph, f, now);
		*next = f->rto_at < *next ? f->rto_at : *next;
	}
	if (f->ack_at && now >= f->ack_at)
		send_ack(ph, f);
	if (f->ack_at && f->ack_at < *next)
		*next = f->ack_at;
}

void flow_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	enum { TIMED_STEP = 10000 };

	ph->flows.ack_soonest = UINT64_MAX;
	if (ph->flows.n_timed) {
		expire_received(ph, now);
		*next = now + TIMED_STEP < *next ? now + TIMED_STEP : *next;
	}
	for (int i = 0; i < FLOW_TABLE; i++)
		for (struct flow *f = ph->flows.table[i]; f; f = f->next)
			tick_flow(ph, f, now, next);
	bool waiting = false;
	for (struct dest *d = ph->flows.active; d; d = d->next)
		if (d->queue && d->wait_us) {
			waiting |= now >= d->wait_us;
			if (now < d->wait_us && d->wait_us < *next)
				*next = d->wait_us;
			else
				d->wait_us = 0;
		}
	if (ph->flows.pump || waiting || ph->flows.n_timed || ph->flows.version_seen != ph->routes.version)
		flow_pump(ph);
	if (ph->flows.pump)
		*next = now;
}

void flow_free(struct phnx *ph)
{
	for (int i = 0; i < FLOW_TABLE; i++) {
		struct flow *f;
		struct dest *d;
		while ((f = ph->flows.table[i])) {
			ph->flows.table[i] = f->next;
			for (uint64_t s = f->una; s < f->next_seq; s++)
				if (f->ring[s % f->ring_size])
					smsg_free(ph, f->ring[s % f->ring_size]);
			flow_destroy(ph, f);
		}
		while ((d = ph->flows.dests[i])) {
			ph->flows.dests[i] = d->hash_next;
			while (d->queue)
				smsg_free(ph, queue_pop(d));
			free(d);
		}
	}
	while (ph->flows.received) {
		struct rmsg *m = ph->flows.received;
		ph->flows.received = m->next;
		free(m);
	}
	while (ph->flows.spare) {
		struct smsg *m = ph->flows.spare;
		ph->flows.spare = m->next;
		free(m);
	}
	while (ph->flows.spare_dest) {
		struct dest *d = ph->flows.spare_dest;
		ph->flows.spare_dest = d->next;
		free(d);
	}
}
