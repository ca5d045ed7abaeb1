/* send_window.c - the windows of flows: numbered messages that are under way to a node, until it
 * has told what has become of them.  What it lacks is sent again (flow.c, "Losses"). */
#include "phoenix/flow/flow_private.h"

enum { GAP_WAIT = 20000, RESEND_MSGS = 256, RESEND_BYTES = 1 << 20 };

/* ---- sending ---- */

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

static bool is_open(const struct flow *f, const struct smsg *m)
{
	if (f->next_seq == f->una)
		return true;
	return f->next_seq - f->una < WINDOW_MSGS && f->bytes + m->body->len <= WINDOW_BYTES &&
	       f->bytes + m->body->len <= f->credit;
}

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

bool window_has_room(struct flow *f, const struct smsg *m)
{
	return is_open(f, m) && ring_room(f);
}

void window_add(struct phnx *ph, struct flow *f, struct smsg *m)
{
	m->seq = f->next_seq++;
	m->gen = f->gen_seen;	/* and not later (TRICKS: first-gen) */
	m->held = m->again = false;
	*ring_at(f, m->seq) = m;
	f->bytes += m->body->len;
	ph->flows->sent++;
	transmit(ph, f, m);
}

struct smsg *window_next(const struct flow *f, uint64_t *seq)
{
	struct smsg *m = NULL;

	while (!m && *seq < f->next_seq)
		m = *ring_at(f, (*seq)++);
	return m;
}

/* ---- outcomes ---- */

/* Resolves a message under way.  One that is in a log stays unresolved, so that its receiver
 * does not forget its outcome before the log's loader asks. */
static void resolve_sent(struct phnx *ph, struct flow *f, uint64_t seq, enum outcome outcome)
{
	struct smsg *m = *ring_at(f, seq);

	if (!m || m->logged)
		return;
	*ring_at(f, seq) = NULL;
	f->bytes -= m->body->len;
	if (outcome == OUT_BOUNCED && !(m->flags & DATA_VOID))
		send_requeue(ph, m);
	else
		send_resolved(ph, m);
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

/* A question that is not answered keeps its timer: the window moves also while what was lost
 * comes again one by one (TRICKS: window-is-no-answer). */
static void advance_una(struct phnx *ph, struct flow *f)
{
	uint64_t before = f->una;

	while (f->una < f->next_seq && !*ring_at(f, f->una))
		f->una++;
	if (f->una == f->next_seq)
		f->asked_us = 0;	/* there is nothing to be answered */
	if (f->una != before || f->una == f->next_seq) {
		ph->pump = true;
		if (f->asked_us)
			return;
		f->rto_us = patience(f);
		f->rto_at = f->una == f->next_seq ? 0 : core_now(ph) + f->rto_us;
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
void window_ask(struct phnx *ph, struct flow *f, uint64_t now)
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

int window_on_ack(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	struct flow *f = flow_find(ph, from);
	uint64_t s = get_var(r), credit = get_var(r), gen = get_var(r), now = core_now(ph);
	bool confirm = gen & 1, measured = false, lacks = false;
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
				lacks = lost && now >= lost->sent_us + GAP_WAIT + f->srtt_us +
								4 * f->rttvar_us;
				if (lacks)
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
	/* what is lost is seldom one message: the answer to a question names all */
	if (confirm || (lacks && !f->asked_us && f->una != f->next_seq))
		send_probe(ph, f);	/* that frame tells this side's una */
	return 0;
}

/* Puts an acknowledgement that came with a message off: the application gets the message first,
 * since others wait for its answer.  The effect is as if the acknowledgement had come on its own
 * right behind the message: it is read before any other, and before anybody asks what is under
 * way.  A malformed one closes no link, since it is not known any more over which link it came. */
int window_keep_ack(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	size_t len = (size_t)(r->end - r->p);

	flow_catch_up(ph);
	if (len > LATE_ACK)
		return window_on_ack(ph, from, r);
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
	window_on_ack(ph, ph->flows->late.from, &r);
}

/* ---- departures ---- */

/* Tells each receiver whose outcomes are all known that it may forget them: nothing is then in
 * doubt when this node is gone. */
void window_settle(struct phnx *ph)
{
	flow_catch_up(ph);
	for (struct flow *f = ph->flows->all; f; f = f->all_next)
		if (f->next_seq && f->una == f->next_seq)
			send_probe(ph, f);
}

/* ---- timers, and the end ---- */

/* The time of a message is up while it is under way: it keeps its number but not its body. */
void window_expire(struct phnx *ph, struct flow *f, uint64_t now)
{
	uint64_t seq = f->una;

	for (struct smsg *m; (m = window_next(f, &seq));) {
		if (!m->deadline_us || m->held || now < m->deadline_us ||
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

void window_free(struct phnx *ph, struct flow *f)
{
	uint64_t seq = f->una;

	for (struct smsg *m; (m = window_next(f, &seq));)
		send_free(ph, m);
}
