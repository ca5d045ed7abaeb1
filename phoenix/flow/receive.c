/* receive.c - the receiver's side of flow.c: messages in order, to the application.  What their
 * senders are told: ack.c. */
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/flow_upcalls.h"

/* ---- to the application ---- */

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
	ph->flows->bounced++;
	ack_resolve(ph, m, OUT_BOUNCED);
	rmsg_free(m);
}

/* Returns where the handler of this tag is, or would be. */
static struct handler **handler_at(struct phnx *ph, int tag)
{
	struct handler **at = ph->flows->handlers + (unsigned)tag % HANDLER_TABLE;

	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	return at;
}

/* Gives a message to the library or to a handler at once, or queues it. */
static void deliver(struct phnx *ph, struct rmsg *m)
{
	struct handler *h = m->flags & DATA_INTERNAL ? NULL : *handler_at(ph, m->pub.tag);

	if (!(m->flags & (DATA_INTERNAL | DATA_VOID)) && !h) {
		bool was_empty = !ph->flows->received;
		m->next = NULL;
		*ph->flows->received_end = m;
		ph->flows->received_end = &m->next;
		ph->flows->in_bytes += rmsg_bytes(m);
		ph->flows->n_timed += m->deadline_us != 0;
		if (was_empty)
			ph->ops->arrived(ph->ctx);
		return;
	}
	/* a multicast is delivered within a message of the library's own */
	bool outer = ph->flows->handling;
	ph->flows->handling = true;
	ph->flows->delivered++;
	ack_resolve(ph, m, OUT_CONSUMED);
	if (m->flags & DATA_INTERNAL && (m->pub.tag == TAG_DOUBT || m->pub.tag == TAG_CERTAINTY))
		doubt_on_message(ph, m);
	else if (m->flags & DATA_INTERNAL)
		services_on_message(ph, m);
	else if (h && !(m->flags & DATA_VOID))
		h->fn(h->arg, &m->pub, m->source);
	ph->flows->handling = outer;
	rmsg_free(m);
}

static struct rmsg *unlink_received(struct phnx *ph, struct rmsg **at)
{
	struct rmsg *m = *at;

	*at = m->next;
	if (!*at)
		ph->flows->received_end = at;
	ph->flows->in_bytes -= rmsg_bytes(m);
	ph->flows->n_timed -= m->deadline_us != 0;
	ph->pump |= ph->flows->self_waits;
	return m;
}

static bool tags_match(int wanted, int tag)
{
	return wanted == PH_MSG_ANY_TAG || tag == PH_MSG_ANY_TAG || wanted == tag;
}

void receive_expire(struct phnx *ph, uint64_t now)
{
	for (struct rmsg **at = &ph->flows->received; *at;) {
		if (!(*at)->deadline_us || now < (*at)->deadline_us) {
			at = &(*at)->next;
			continue;
		}
		struct rmsg *m = unlink_received(ph, at);
		ack_resolve(ph, m, OUT_CONSUMED);
		rmsg_free(m);
	}
}

struct rmsg *flow_receive(struct phnx *ph, int tag)
{
	if (ph->flows->n_timed)
		receive_expire(ph, core_now(ph));
	for (struct rmsg **at = &ph->flows->received; *at; at = &(*at)->next)
		if (tags_match(tag, (*at)->pub.tag)) {
			struct rmsg *m = unlink_received(ph, at);
			ph->flows->delivered++;
			ack_resolve(ph, m, OUT_CONSUMED);
			if (!ph->flows->received)
				ph->ops->arrived(ph->ctx);
			return m;
		}
	return NULL;
}

/* Gives waiting messages to a handler that was just set. */
static void handle_waiting(struct phnx *ph)
{
	struct rmsg *all = ph->flows->received, *m;

	ph->flows->received = NULL;
	ph->flows->received_end = &ph->flows->received;
	while ((m = all)) {
		all = m->next;
		ph->flows->in_bytes -= rmsg_bytes(m);
		ph->flows->n_timed -= m->deadline_us != 0;
		deliver(ph, m);
	}
	ph->pump |= ph->flows->self_waits;
	if (!ph->flows->received)
		ph->ops->arrived(ph->ctx);
}

int flow_set_handler(struct phnx *ph, int tag, ph_handler_fn fn, void *arg)
{
	struct handler **at = handler_at(ph, tag), *h = *at;

	if (!fn) {
		if (h)
			*at = h->next;
		free(h);
		return 0;
	}
	if (!h)
		*at = h = calloc(1, sizeof *h);
	if (!h)
		return PH_ENOMEM;
	h->tag = tag;
	h->fn = fn;
	h->arg = arg;
	handle_waiting(ph);
	return 0;
}

bool flow_has_received(const struct phnx *ph)
{
	return ph->flows->received;
}

/* ---- memory for messages ---- */

static struct rmsg *rmsg_new(const void *body, size_t len)
{
	struct rmsg *m = rmsg_block(len);

	if (!m)
		return NULL;
	if (len)
		memcpy(m->block, body, len);
	m->block[len] = 0;
	m->pub.body = m->block;
	m->pub.len = len;
	return m;
}

/* Returns the last len bytes of the current frame as a message.  If a handler will have them at
 * once, the message is *brief and its body stays where it is.  If the frame has a block to
 * itself, the block becomes the message.  Else the body is copied.  (A sender pads the head so
 * that the body is aligned; if it does not, that costs a copy.) */
static struct rmsg *rmsg_of_frame(struct phnx *ph, const unsigned char *body, size_t len,
				  struct rmsg *brief)
{
	struct rmsg *m = ph->landed;
	bool aligned = (uintptr_t)body % BODY_ALIGN == 0;

	if (brief && !aligned && len <= sizeof ph->flows->aligned) {
		body = memcpy(ph->flows->aligned, body, len);
		aligned = true;
	}
	if (brief && aligned) {
		*brief = (struct rmsg){ .pub = { .body = (void *)body, .len = len } };
		return brief;
	}
	if (!m || !aligned || len < rmsg_room(m) / 2)
		return rmsg_new(body, len);
	ph->landed = NULL;
	*m = (struct rmsg){ .pub = { .body = (void *)body, .len = len }, .room = m->room };
	((unsigned char *)m->pub.body)[len] = 0;	/* the block has room for it */
	return m;
}

/* A message for a handler needs no room; and one message is always allowed. */
bool receive_has_room(struct phnx *ph, int tag, size_t len)
{
	return *handler_at(ph, tag) || !ph->flows->in_bytes ||
	       ph->flows->in_bytes + len <= RECV_QUEUE_BYTES;
}

struct rmsg *receive_copy(const struct smsg *s)
{
	struct rmsg *m = rmsg_new(s->body->data, s->body->len);

	if (!m)
		return NULL;
	m->pub.dest = s->dest;
	m->pub.tag = s->tag;
	m->source = s->origin;
	m->seq = s->order;
	m->flags = s->flags & (DATA_UNORDERED | DATA_INTERNAL);
	m->deadline_us = s->deadline_us;
	return m;
}

void receive_local(struct phnx *ph, struct rmsg *m)
{
	deliver(ph, m);
}

/* This node's copy of a multicast. */
void receive_multicast(struct phnx *ph, ph_vp_t dest, ph_vp_t source, int tag, const void *body,
		       size_t len)
{
	struct rmsg *m = rmsg_new(body, len);

	if (!m) {
		core_report(ph, PH_ENOMEM, "out of memory: a multicast is lost");
		return;
	}
	m->pub.dest = dest;
	m->pub.tag = tag;
	m->source = source;
	deliver(ph, m);
}

/* ---- from the network ---- */

static bool is_mine(struct phnx *ph, ph_vp_t dest)
{
	return dest == ph->name || ph_vps_is_member(&ph->me.vps, dest);
}

static bool must_bounce(struct phnx *ph, const struct flow *f, const struct rmsg *m)
{
	return !is_mine(ph, m->pub.dest) ||
	       (m->gen < f->gen && m->pub.dest >= f->bounce_lo && m->pub.dest <= f->bounce_hi);
}

/* Takes over a message that finds no holder.  Returns false if this node may end before it finds
 * one: it leaves or has written its log. */
static bool keep(struct phnx *ph, const struct rmsg *m)
{
	bool ends = ph->leaving || ph->closing || ph->flows->logged;
	struct pbuf *b = ends ? NULL : pbuf_new(m->pub.body, m->pub.len);
	bool kept = b && !flow_send(ph, m->pub.dest, m->source, b, m->pub.tag,
				    m->flags & DATA_UNORDERED, m->deadline_us);

	pbuf_put(b);
	return kept;
}

/* The next message in order has arrived: its sender, and that of all later ones, knows at least
 * what it says. */
static void take_turn(struct flow *f, const struct rmsg *m)
{
	f->recv_next++;
	if (m->gen > f->gen_acked && m->gen <= f->gen)
		f->gen_acked = m->gen;
}

/* Gives a message to the application, keeps it for others, or bounces it. */
static void accept(struct phnx *ph, struct flow *f, struct rmsg *m)
{
	if (m->flags & DATA_VOID) {
		ack_resolve(ph, m, OUT_CONSUMED);
		rmsg_free(m);
	} else if (m->flags & DATA_CUSTODY ? !keep(ph, m) : must_bounce(ph, f, m)) {
		bounce(ph, f, m);
	} else if (m->flags & DATA_CUSTODY) {
		ack_resolve(ph, m, OUT_CONSUMED);
		rmsg_free(m);
	} else {
		deliver(ph, m);
	}
}

static void accept_in_turn(struct phnx *ph, struct flow *f)
{
	while (f->recv_next - f->r_una < f->n_slots) {
		struct rslot *slot = slot_at(f, f->recv_next);
		struct rmsg *m = slot->early;
		if (slot->outcome == OUT_MISSING)
			break;
		slot->early = NULL;
		if (!m) {		/* it was accepted or denied before its turn */
			f->recv_next++;
			continue;
		}
		take_turn(f, m);
		ph->flows->in_bytes -= rmsg_bytes(m);
		accept(ph, f, m);
	}
}

static void deny_one(struct phnx *ph, struct flow *f, uint64_t seq)
{
	if (seq < f->r_una || seq - f->r_una >= 2 * WINDOW_MSGS || !ack_room(f, seq))
		return;
	struct rslot *slot = slot_at(f, seq);
	if (slot->early) {
		ph->flows->in_bytes -= rmsg_bytes(slot->early);
		rmsg_free(slot->early);
	}
	*slot = (struct rslot){ .outcome = OUT_BOUNCED };
	f->r_end = seq < f->r_end ? f->r_end : seq + 1;
}

void receive_deny(struct phnx *ph, ph_vp_t name, uint64_t first, uint64_t n,
		  const unsigned char *bits)
{
	struct flow *f = flow_get(ph, name);

	if (!f)
		return;
	if (f->recv_next == UINT64_MAX)		/* nothing has arrived yet */
		f->recv_next = f->r_una = 0;
	for (uint64_t i = 0; i < n; i++)
		if (!(bits[i / 8] >> i % 8 & 1))
			deny_one(ph, f, first + i);
	accept_in_turn(ph, f);
}

struct data {			/* a FRAME_DATA, read */
	uint64_t una, seq, gen, life;
	ph_vp_t origin, dest;
	int tag;
	unsigned flags;
	struct reader ack;
	const unsigned char *body;
	size_t len;
};

/* The reader is passed by value, so that the compiler keeps it in registers. */
static inline bool get_data(struct reader r, struct data *d)
{
	d->una = get_var(&r);
	d->seq = d->una + get_var(&r);
	d->gen = get_var(&r);
	d->origin = (ph_vp_t)get64(&r);
	d->dest = (ph_vp_t)get64(&r);
	d->tag = (int)get32(&r);
	d->flags = get8(&r);
	d->life = get_var(&r);
	unsigned ack_len = get8(&r);
	d->ack = (struct reader){ r.p, r.p + ack_len, false };
	get_past(&r, ack_len);
	get_past(&r, get8(&r));
	d->body = r.p;
	d->len = (size_t)(r.end - r.p);
	return !r.bad && d->seq - d->una < WINDOW_MSGS && d->dest >= 0 && d->len <= PH_MSG_MAX;
}

static bool has_place(const struct phnx *ph, const struct flow *f, const struct data *d)
{
	/* a message that closes a gap is accepted above the limit */
	size_t most = d->seq == f->recv_next ? 2u * RECV_QUEUE_BYTES : RECV_QUEUE_BYTES;

	if (ph->flows->in_bytes && ph->flows->in_bytes + d->len > most)
		return false;
	/* these may lead to more messages */
	return !(d->flags & (DATA_CUSTODY | DATA_INTERNAL)) || ph->flows->out_bytes <= KEPT_BYTES;
}

int receive_on_data(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	uint64_t now = core_now(ph);
	struct data d;

	if (!get_data(*r, &d))
		return -1;
	const uint64_t seq = d.seq;
	if (d.ack.p != d.ack.end && window_keep_ack(ph, from, &d.ack))
		return -1;
	struct flow *f = flow_get(ph, from);
	if (!f)
		return 0;
	ack_forget(f, d.una);
	ack_within(ph, f, now + ACK_DELAY);
	if (seq < f->r_una || seq - f->r_una >= 2 * WINDOW_MSGS)
		return 0;
	if (!ack_room(f, seq) || slot_at(f, seq)->outcome != OUT_MISSING) {
		ack_within(ph, f, now);	/* it has come twice: the sender missed an ACK */
		return 0;
	}
	if (!has_place(ph, f, &d)) {
		ph->flows->dropped++;
		return 0;
	}
	bool at_once = seq == f->recv_next &&
		       !(d.flags & (DATA_INTERNAL | DATA_VOID | DATA_CUSTODY)) &&
		       *handler_at(ph, d.tag);
	struct rmsg brief, *m = rmsg_of_frame(ph, d.body, d.len, at_once ? &brief : NULL);
	if (!m)
		return 0;
	m->pub.dest = d.dest;
	m->pub.tag = d.tag;
	m->source = d.origin;
	m->peer = from;
	m->seq = seq;
	m->flags = d.flags;
	m->gen = (unsigned)d.gen;
	m->deadline_us = d.life ? now + d.life : 0;
	*slot_at(f, seq) = (struct rslot){ .outcome = OUT_HELD };
	f->r_end = seq < f->r_end ? f->r_end : seq + 1;
	if (m == &brief)
		take_turn(f, m);
	if (m == &brief || d.flags & DATA_UNORDERED) {
		accept(ph, f, m);
	} else {
		slot_at(f, seq)->early = m;
		ph->flows->in_bytes += rmsg_bytes(m);
	}
	accept_in_turn(ph, f);
	return 0;
}

/* ---- changes of the mapping ---- */

static bool send_on(struct phnx *ph, const struct rmsg *m)
{
	struct pbuf *b = pbuf_new(m->pub.body, m->pub.len);
	uint64_t order = !m->peer && m->seq ? m->seq : ++ph->flows->order;
	bool sent = b && send_enqueue(ph, m->pub.dest, m->source, b, m->pub.tag, m->flags,
				      m->deadline_us, order);

	pbuf_put(b);
	return sent;
}

/* Returns whether m waits here for a virtual node that was released.  A copy of a multicast
 * stays, unless this node assumes nothing any more: whoever assumes the virtual node now may
 * have a copy of its own. */
static bool is_astray(struct phnx *ph, const struct rmsg *m)
{
	bool copy = !m->peer && !m->seq;

	return !is_mine(ph, m->pub.dest) && !(copy && ph->me.vps.n);
}

/* Bounces messages that wait for virtual nodes that were released, or queues them again if this
 * node is their sender.  If there is no memory for one, nothing leaves this node before it has
 * left, since nothing may overtake it. */
void flow_release(struct phnx *ph)
{
	bool stranded = false;

	for (struct rmsg **at = &ph->flows->received; *at;) {
		struct rmsg *m = *at;
		struct flow *f = m->peer ? flow_find(ph, m->peer) : NULL;
		bool goes = is_astray(ph, m);
		stranded |= goes && !f && !stranded && !send_on(ph, m);
		if (!goes || (!f && stranded)) {
			at = &m->next;
			continue;
		}
		unlink_received(ph, at);
		if (f)
			bounce(ph, f, m);
		else
			rmsg_free(m);
	}
	ph->flows->stranded = stranded;
	uint64_t again = core_now(ph) + MEMORY_WAIT;
	if (stranded && again < ph->due)
		ph->due = again;
	if (!ph->flows->received)
		ph->ops->arrived(ph->ctx);
}
