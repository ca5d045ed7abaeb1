/* send.c - the sender's side of flow.c: destinations, their queues, and messages under way. */
#include "phoenix/flow/flow_private.h"

enum {
	OVERHEAD = sizeof(struct smsg),
	BOUNCE_WAIT = 2000,
	GAP_WAIT = 20000,
	RESEND_MSGS = 256,
	RESEND_BYTES = 1 << 20
};

/* ---- destinations ---- */

static struct dest *dest_get(struct phnx *ph, ph_vp_t vp)
{
	struct flows *fl = ph->flows;
	struct dest **slot = fl->dests + flow_bucket(vp), *d;

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

/* Frees a destination that has no messages left. */
static void dest_done(struct phnx *ph, struct dest *d)
{
	struct flows *fl = ph->flows;
	struct dest **at = fl->dests + flow_bucket(d->vp);

	if (d->queue || d->outstanding || d == fl->delivering)
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

static void free_message(struct phnx *ph, struct smsg *m)
{
	ph->flows->out_bytes -= m->body->len + OVERHEAD;
	ph->flows->n_timed -= m->deadline_us != 0;
	pbuf_put(m->body);
	m->next = ph->flows->spare;
	ph->flows->spare = m;
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
	struct smsg **at = m->order > d->newest ? d->queue_end : &d->queue;

	while (*at && (*at)->order < m->order)
		at = &(*at)->next;
	d->newest = m->order > d->newest ? m->order : d->newest;
	m->next = *at;
	*at = m;
	if (!m->next)
		d->queue_end = &m->next;
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
		ring[s % n] = *ring_at(f, s);
	free(f->ring);
	f->ring = ring;
	f->ring_size = n;
	return true;
}

/* ---- sending ---- */

/* Writes the head of a FRAME_DATA, at most HEAD_LIMIT bytes, for which there is room. */
static void put_data_head(struct phnx *ph, struct flow *f, const struct smsg *m, uint64_t now,
			  struct writer *w)
{
	unsigned char *p = lay_var(w->data + w->len, f->una);

	p = lay_var(p, m->seq - f->una);
	p = lay_var(p, m->gen);
	p = lay64(p, (uint64_t)m->origin);
	p = lay64(p, (uint64_t)m->dest);
	p = lay32(p, (uint32_t)m->tag);
	p = lay8(p, (uint8_t)m->flags);
	p = lay_var(p, m->deadline_us > now ? m->deadline_us - now : m->deadline_us ? 1 : 0);
	unsigned char *ack_len = p++;
	w->len = (size_t)(p - w->data);
	if (f->ack_at)		/* an acknowledgement that is due travels along */
		ack_put(ph, f, w);
	*ack_len = (unsigned char)(w->data + w->len - p);
	unsigned pad = BODY_ALIGN - 1 - (FRAME_HEAD + w->len) % BODY_ALIGN;
	p = lay8(w->data + w->len, (uint8_t)pad);
	lay64(lay64(p, 0), 0);		/* BODY_ALIGN zeros, of which `pad` count */
	w->len += 1 + pad;
}

static void transmit(struct phnx *ph, struct flow *f, struct smsg *m)
{
	uint64_t now = core_now(ph);
	struct plink *l = route_way(ph, f->peer);
	struct writer w;
	struct outframe *frame = route_begin(l, f->peer, FRAME_DATA, &w);

	m->sent_us = now;
	if (frame) {
		put_data_head(ph, f, m, now, &w);
		link_commit(l, frame, FRAME_DATA, &w, m->body);
		f->way = f->way ? f->way : l->serial;
	}
	if (!f->rto_at)
		f->rto_at = now + f->rto_us;
	if (f->rto_at < ph->due)
		ph->due = f->rto_at;
}

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
	m->gen = f->gen_seen;	/* and not later (TRICKS: first-gen) */
	m->flags |= more_flags;
	m->held = m->again = false;
	m->to = d;
	*ring_at(f, m->seq) = m;
	f->bytes += m->body->len;
	d->outstanding++;
	d->via = node;
	ph->flows->sent++;
	transmit(ph, f, m);
	return true;
}

/* Nothing is sent to d for so long. */
static void rest(struct phnx *ph, struct dest *d, uint64_t us)
{
	d->wait_us = core_now(ph) + us;
	if (d->wait_us < ph->due)
		ph->due = d->wait_us;
}

/* Delivers a message to this node itself if it has room.  A message that a handler sends to its
 * own node waits until the handler has returned (TRICKS: self-send-waits). */
static bool give_to_self(struct phnx *ph, struct dest *d)
{
	struct flows *fl = ph->flows;

	if (!(d->queue->flags & DATA_INTERNAL) &&
	    !receive_has_room(ph, d->queue->tag, d->queue->body->len)) {
		fl->self_waits = true;
		return false;
	}

	if (fl->handling) {
		ph->pump = true;
		return false;
	}
	struct rmsg *m = receive_copy(d->queue);
	if (!m) {
		rest(ph, d, MEMORY_WAIT);
		return false;
	}
	free_message(ph, queue_pop(d));
	fl->delivering = d;
	receive_local(ph, m);
	fl->delivering = NULL;
	return true;
}

/* Returns whether the first message of the queue must wait now, whoever assumes its destination;
 * sets d->wait_us if it must until then. */
static bool must_stay(const struct phnx *ph, struct dest *d, uint64_t now)
{
	const struct smsg *m = d->queue;

	if (m->doubt.peer && now < m->doubt.until_us)
		d->wait_us = m->doubt.until_us;
	d->fenced = d->fenced && d->outstanding;
	return m->logged || now < d->wait_us || d->fenced || ph->flows->stranded;
}

static void pump_dest(struct phnx *ph, struct dest *d, uint64_t now)
{
	while (d->queue) {
		struct smsg *m = d->queue;

		if (m->deadline_us && now >= m->deadline_us) {
			free_message(ph, queue_pop(d));
			continue;
		}
		if (must_stay(ph, d, now))
			break;
		ph_vp_t holder = holder_of(ph, d->vp);
		if (!holder || (d->outstanding && d->via != holder && !(m->flags & DATA_UNORDERED)))
			break;
		if (!(holder == ph->name ? give_to_self(ph, d) : give_to_flow(ph, d, holder, 0)))
			break;
	}
	dest_done(ph, d);
}

struct dest *send_enqueue(struct phnx *ph, ph_vp_t vp, ph_vp_t origin, struct pbuf *body, int tag,
			  unsigned flags, uint64_t deadline_us, uint64_t order)
{
	struct flows *fl = ph->flows;
	struct dest *d = dest_get(ph, vp);
	struct smsg *m = fl->spare;

	if (m)
		fl->spare = m->next;
	else
		m = malloc(sizeof *m);
	if (!d || !m) {
		free(m);
		if (d)
			dest_done(ph, d);
		return NULL;
	}
	*m = (struct smsg){ .dest = vp,
			    .origin = origin,
			    .tag = tag,
			    .flags = flags,
			    .order = order,
			    .deadline_us = deadline_us,
			    .body = body };
	body->refs++;
	fl->out_bytes += body->len + OVERHEAD;
	fl->n_timed += deadline_us != 0;
	queue_insert(d, m);
	return d;
}

int flow_send(struct phnx *ph, ph_vp_t vp, ph_vp_t origin, struct pbuf *body, int tag,
	      unsigned flags, uint64_t deadline_us)
{
	struct dest *d =
		send_enqueue(ph, vp, origin, body, tag, flags, deadline_us, ++ph->flows->order);

	if (d && !d->queue->next)	/* otherwise the message before it waits for something */
		pump_dest(ph, d, core_now(ph));
	return d ? 0 : PH_ENOMEM;
}

int send_again(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag,
	       unsigned flags, uint64_t deadline_us, const struct doubt *doubt)
{
	struct dest *d = dest_get(ph, dest);

	if (!d)
		return PH_ENOMEM;
	d->wait_us = doubt->until_us;		/* nothing goes before the answer to the question */
	int error = flow_send(ph, dest, origin, body, tag, flags, deadline_us);
	for (struct smsg *m = d->queue; m && !error; m = m->next)
		if (m->order == ph->flows->order)
			m->doubt = *doubt;
	return error;
}

int flow_send_own(struct phnx *ph, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags,
		  uint64_t deadline_us)
{
	ph_vp_t least_name = ph->upper > 1LL << 62 ? ph->upper : 1LL << 62;

	if ((dest < ph->lower || dest >= ph->upper) && dest < least_name)
		return PH_EBOUND;
	if (body->len > PH_MSG_MAX)
		return PH_ETOOBIG;
	if (!flow_has_room(ph, body->len))
		return PH_EAGAIN;
	return flow_send(ph, dest, ph->name, body, tag, flags, deadline_us);
}

static bool has_room(const struct phnx *ph, size_t len)
{
	return !ph->flows->out_bytes || ph->flows->out_bytes + len <= SEND_QUEUE_BYTES;
}

bool flow_has_room(struct phnx *ph, size_t len)
{
	if (!has_room(ph, len))
		flow_catch_up(ph);
	return has_room(ph, len);
}

void flow_send_internal(struct phnx *ph, ph_vp_t to, int tag, struct writer *w,
			uint64_t deadline_us)
{
	struct pbuf *b = w->bad ? NULL : pbuf_new(w->data, w->len);

	if (!b || flow_send(ph, to, ph->name, b, tag, DATA_INTERNAL, deadline_us))
		core_report(ph, PH_ENOMEM,
			    "out of memory: a part of a collective operation is lost");
	pbuf_put(b);
	free(w->data);
}

static void certain_of(struct phnx *ph, struct dest *d, ph_vp_t peer, ph_vp_t name, uint64_t first,
		       uint64_t n, const unsigned char *bits)
{
	for (struct smsg **at = &d->queue, *m; (m = *at);) {
		uint64_t i = m->doubt.seq - first;
		bool meant = m->doubt.peer == peer && m->doubt.name == name &&
			     m->doubt.seq >= first && i < n;
		if (meant)
			m->doubt.peer = 0;
		if (!meant || !(bits[i / 8] >> i % 8 & 1)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		if (d->queue_end == &m->next)
			d->queue_end = at;
		free_message(ph, m);
	}
	d->wait_us = 0;
}

void send_certain(struct phnx *ph, ph_vp_t peer, ph_vp_t name, uint64_t first, uint64_t n,
		  const unsigned char *bits)
{
	struct dest *following;

	for (struct dest *d = ph->flows->active; d; d = following) {
		following = d->next;
		if (d->wait_us)
			certain_of(ph, d, peer, name, first, n, bits);
		dest_done(ph, d);
	}
	ph->pump = true;
}

void flow_pump(struct phnx *ph)
{
	uint64_t now = core_now(ph);
	struct dest *following;

	ph->pump = ph->flows->self_waits = false;
	ph->ways_seen = ph->ways;
	for (struct dest *d = ph->flows->active; d; d = following) {
		following = d->next;
		if (d->queue)
			pump_dest(ph, d, now);
		/* a handler has completed it just now: begin anew */
		if (following && !following->active) {
			ph->pump = true;
			break;
		}
	}
}

/* Gives messages that nobody assumes to a neighbour, which sends them on like its own.  All
 * messages to one destination go to the same neighbour at once: otherwise some might find a
 * holder first, and overtake the others. */
void flow_custody(struct phnx *ph)
{
	uint64_t now = core_now(ph);
	struct plink *keeper = NULL;
	struct dest *following;

	flow_catch_up(ph);
	for (struct plink *l = link_first(ph); l; l = l->next) {
		if (l->state == LINK_UP && route_stays(ph, l->peer))
			keeper = l;
	}
	for (struct dest *d = ph->flows->active; keeper && d; d = following) {
		following = d->next;
		if (d->outstanding)
			continue;
		while (d->queue && !holder_of(ph, d->vp) && d->vp < ph->upper &&
		       !(d->queue->flags & DATA_INTERNAL) && !must_stay(ph, d, now))
			if (!give_to_flow(ph, d, keeper->peer, DATA_CUSTODY))
				break;
	}
}

/* ---- outcomes ---- */

/* Puts a message that came back from its flow into the queue of its destination, in its old
 * place. */
static void requeue(struct phnx *ph, struct smsg *m)
{
	struct dest *d = m->to;

	d->outstanding--;
	d->fenced = d->outstanding > 0;
	rest(ph, d, BOUNCE_WAIT);
	m->flags &= ~(unsigned)DATA_CUSTODY;
	m->to = NULL;
	queue_insert(d, m);
	ph->pump = true;
}

/* Resolves a message under way.  One that is in a log stays unresolved, so that its receiver
 * does not forget its outcome before the log's loader asks. */
static void resolve_sent(struct phnx *ph, struct flow *f, uint64_t seq, enum outcome outcome)
{
	struct smsg *m = *ring_at(f, seq);

	if (!m || m->logged)
		return;
	*ring_at(f, seq) = NULL;
	f->bytes -= m->body->len;
	if (outcome == OUT_BOUNCED && !(m->flags & DATA_VOID)) {
		requeue(ph, m);
		return;
	}
	struct dest *d = m->to;
	d->outstanding--;
	free_message(ph, m);
	dest_done(ph, d);
}

/* Measures how long an answer takes, by messages that were sent once only (RFC 6298). */
static void measure(struct flow *f, const struct smsg *m, uint64_t now)
{
	uint64_t took = now - m->sent_us,
		 off = took > f->srtt_us ? took - f->srtt_us : f->srtt_us - took;

	if (m->again)
		return;
	f->rttvar_us = f->srtt_us ? (3 * f->rttvar_us + off) / 4 : took / 2;
	f->srtt_us = f->srtt_us ? (7 * f->srtt_us + took) / 8 : took;
}

/* How long to wait before the receiver is asked for the first time. */
static uint64_t patience(const struct flow *f)
{
	uint64_t us = f->srtt_us + 4 * f->rttvar_us;

	return us < RTO_MIN ? RTO_MIN : us > RTO_MAX ? RTO_MAX : us;
}

static void advance_una(struct phnx *ph, struct flow *f)
{
	uint64_t before = f->una;

	while (f->una < f->next_seq && !*ring_at(f, f->una))
		f->una++;
	if (f->una != before || f->una == f->next_seq) {
		f->rto_us = patience(f);
		f->rto_at = f->una == f->next_seq ? 0 : core_now(ph) + f->rto_us;
		ph->pump = true;
	}
}

static void send_probe(struct phnx *ph, struct flow *f)
{
	struct writer *w = flow_frame(ph);

	if (!f->asked_us)
		f->asked_us = core_now(ph);
	put_var(w, f->una);
	put_var(w, f->next_seq - f->una);
	flow_send_frame(ph, f->peer, FRAME_PROBE, w);
}

/* The time is up: asks what has arrived, and retransmits nothing (TRICKS: late-is-not-lost). */
void send_ask(struct phnx *ph, struct flow *f, uint64_t now)
{
	f->rto_us = 2 * f->rto_us < RTO_MAX ? 2 * f->rto_us : RTO_MAX;
	f->rto_at = now + f->rto_us;
	send_probe(ph, f);
}

static void transmit_again(struct phnx *ph, struct flow *f, struct smsg *m)
{
	m->again = true;
	ph->flows->resent++;
	transmit(ph, f, m);
}

/* The peer has answered about all numbers below `end`: retransmits what it lacks of what was
 * sent before it was asked.  If that is too much for once, the peer is asked again behind it.
 * Without that question a receiver that waits for one of the last messages would get them at the
 * pace of the growing timeout. */
static void send_lost(struct phnx *ph, struct flow *f, uint64_t end)
{
	unsigned msgs = 0;
	size_t bytes = 0;
	bool more = false;

	for (uint64_t s = f->una; s < end; s++) {
		struct smsg *m = *ring_at(f, s);
		if (!m || m->held || m->sent_us >= f->asked_us ||
		    (msgs && bytes + m->body->len > f->credit))
			continue;
		more = msgs == RESEND_MSGS || bytes >= RESEND_BYTES;
		if (more)
			break;
		transmit_again(ph, f, m);
		msgs++;
		bytes += m->body->len;
	}
	f->asked_us = 0;
	if (msgs) {		/* the peer does answer */
		f->rto_us = patience(f);
		f->rto_at = core_now(ph) + f->rto_us;
	}
	if (more)
		send_probe(ph, f);
}

int send_on_ack(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	struct flow *f = flow_find(ph, from);
	uint64_t s = get_var(r), credit = get_var(r), gen = get_var(r), now = core_now(ph);
	bool confirm = gen & 1, measured = false;
	enum outcome outcome = OUT_CONSUMED;
	uint64_t gap = UINT64_MAX;

	if (r->bad || !f || !f->ring_size || s > f->next_seq)
		return 0;
	f->credit = credit << 10;
	gen >>= 1;
	if (gen > f->gen_seen)
		f->gen_seen = (unsigned)gen;
	while (r->p < r->end) {
		outcome = get8(r);
		uint64_t n = get_var(r);
		if (r->bad || n > UINT64_MAX / 2 - s)
			return -1;
		for (uint64_t end = s + n; s < end && s < f->next_seq; s++) {
			struct smsg *m = s < f->una ? NULL : *ring_at(f, s);
			if (!m)
				continue;
			if (outcome == OUT_MISSING) {
				gap = gap < s ? gap : s;
				continue;
			}
			if (!m->held && !measured)
				measure(f, m, now);
			m->held = measured = true;
			if (gap < s) {		/* a later message has arrived: the gap is a loss */
				struct smsg *lost = *ring_at(f, gap);
				if (lost &&
				    now >= lost->sent_us + GAP_WAIT + f->srtt_us + 4 * f->rttvar_us)
					transmit_again(ph, f, lost);
				gap = UINT64_MAX - 1;
			}
			if (outcome != OUT_HELD)
				resolve_sent(ph, f, s, outcome);
		}
	}
	advance_una(ph, f);
	if (outcome == OUT_MISSING && f->asked_us)
		send_lost(ph, f, s);
	if (confirm)
		send_probe(ph, f);	/* that frame tells this side's una */
	return 0;
}

/* Puts an acknowledgement that came with a message off: the application gets the message first,
 * since others wait for its answer.  The effect is as if the acknowledgement had come on its own
 * right behind the message: it is read before any other, and before anybody asks what is under
 * way.  A malformed one closes no link, since it is not known any more over which link it came. */
int send_keep_ack(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	size_t len = (size_t)(r->end - r->p);

	flow_catch_up(ph);
	if (len > LATE_ACK)
		return send_on_ack(ph, from, r);
	ph->flows->late.from = from;
	ph->flows->late.len = (unsigned)len;
	memcpy(ph->flows->late.bytes, r->p, len);
	return 0;
}

void flow_catch_up(struct phnx *ph)
{
	struct reader r = { ph->flows->late.bytes, ph->flows->late.bytes + ph->flows->late.len,
			    false };

	if (!ph->flows->late.len)
		return;
	ph->flows->late.len = 0;		/* the call may put another one off */
	send_on_ack(ph, ph->flows->late.from, &r);
}

/* ---- departures ---- */

/* Tells each receiver whose outcomes are all known that it may forget them: nothing is then in
 * doubt when this node is gone. */
void send_settled(struct phnx *ph)
{
	flow_catch_up(ph);
	for (struct flow *f = ph->flows->all; f; f = f->all_next)
		if (f->next_seq && f->una == f->next_seq)
			send_probe(ph, f);
}

/* Calls fn() for every message that is queued or unresolved, until it returns false.  Returns
 * whether it never did. */
static bool for_all(struct phnx *ph, bool (*fn)(struct smsg *m))
{
	bool all = true;

	for (struct dest *d = ph->flows->active; d; d = d->next)
		for (struct smsg *m = d->queue; m && all; m = m->next)
			all = fn(m);
	for (struct flow *f = ph->flows->all; f; f = f->all_next)
		for (uint64_t s = f->una; s < f->next_seq && all; s++)
			all = !*ring_at(f, s) || fn(*ring_at(f, s));
	return all;
}

/* A log holds the application's messages alone, without those whose time was up under way. */
static bool mark_logged(struct smsg *m)
{
	m->logged |= !(m->flags & (DATA_INTERNAL | DATA_VOID));
	return true;
}

static bool is_logged(struct smsg *m)
{
	return m->logged;
}

void send_logged(struct phnx *ph)
{
	flow_catch_up(ph);
	ph->flows->logged = true;
	for_all(ph, mark_logged);
}

bool flow_idle(struct phnx *ph)
{
	flow_catch_up(ph);
	return !ph->flows->active || for_all(ph, is_logged);
}

/* Returns a message that was under way to a node that is gone to the application, if that is the
 * policy. */
static void return_message(struct phnx *ph, ph_vp_t peer, struct smsg *m)
{
	struct ph_msg pub = { (void *)m->body->data, m->body->len, m->dest, m->tag };

	if (ph->flows->gone_policy == PH_GONE_RETURN && ph->flows->gone_fn &&
	    !(m->flags & DATA_INTERNAL))
		ph->flows->gone_fn(ph->flows->gone_arg, peer, &pub);
	free_message(ph, m);
}

void flow_peer_gone(struct phnx *ph, ph_vp_t peer)
{
	struct flow **at = ph->flows->table + flow_bucket(peer);

	flow_catch_up(ph);
	while (*at && (*at)->peer != peer)
		at = &(*at)->next;
	if (*at) {
		struct flow *f = *at;
		*at = f->next;
		ph->flows->n--;
		for (uint64_t s = f->una; s < f->next_seq; s++) {
			struct smsg *m = *ring_at(f, s);
			if (!m)
				continue;
			if ((ph->flows->gone_policy == PH_GONE_RESEND || m->flags & DATA_INTERNAL ||
			     m->logged) &&
			    m->dest != peer) {
				requeue(ph, m);
				continue;
			}
			struct dest *d = m->to;
			d->outstanding--;
			return_message(ph, peer, m);
			dest_done(ph, d);
		}
		doubt_keep(ph, f);
		flow_destroy(ph, f);
	}
	for (struct dest *d = ph->flows->active; d; d = d->next)
		for (struct smsg *m = d->queue; m; m = m->next)
			if (m->doubt.peer == peer) {	/* the node cannot be asked any more */
				m->doubt.peer = 0;
				d->wait_us = 0;
				ph->pump = true;
			}
	for (struct dest *d = ph->flows->dests[flow_bucket(peer)]; d; d = d->hash_next)
		if (d->vp == peer) {	/* no other node will ever have this name */
			while (d->queue)
				return_message(ph, peer, queue_pop(d));
			dest_done(ph, d);
			break;
		}
}

void flow_set_gone(struct phnx *ph, enum ph_gone_policy policy, ph_gone_fn fn, void *arg)
{
	ph->flows->gone_policy = policy;
	ph->flows->gone_fn = fn;
	ph->flows->gone_arg = arg;
}

void flow_tell_gone(struct phnx *ph, ph_vp_t peer)
{
	if (ph->flows->gone_fn)
		ph->flows->gone_fn(ph->flows->gone_arg, peer, NULL);
}

/* ---- timers, and the end ---- */

/* The time of a message is up while it is under way: it keeps its number but not its body. */
void send_expire(struct phnx *ph, struct flow *f, uint64_t now)
{
	for (uint64_t s = f->una; s < f->next_seq; s++) {
		struct smsg *m = *ring_at(f, s);
		if (!m || !m->deadline_us || m->held || now < m->deadline_us ||
		    (m->flags & DATA_VOID))
			continue;
		struct pbuf *empty = pbuf_new(NULL, 0);
		if (!empty)
			continue;
		f->bytes -= m->body->len;
		ph->flows->out_bytes -= m->body->len;
		pbuf_put(m->body);
		m->body = empty;
		m->flags |= DATA_VOID;
		soon(&f->rto_at, now);
	}
}

void send_free(struct phnx *ph, struct flow *f)
{
	for (uint64_t s = f->una; s < f->next_seq; s++)
		if (*ring_at(f, s))
			free_message(ph, *ring_at(f, s));
}

void send_dest_free(struct phnx *ph, struct dest *d)
{
	while (d->queue)
		free_message(ph, queue_pop(d));
	free(d);
}
