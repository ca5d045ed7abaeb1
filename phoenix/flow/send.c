/* send.c - the sender's side of flow.c: destinations, and the queues of messages to them.  What
 * becomes of a message once its flow has it: send_window.c. */
#include "phoenix/flow/flow_private.h"

enum { OVERHEAD = sizeof(struct smsg), BOUNCE_WAIT = 2000 };

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

void send_free(struct phnx *ph, struct smsg *m)
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

/* ---- sending ---- */

static bool give_to_flow(struct phnx *ph, struct dest *d, ph_vp_t node, unsigned more_flags)
{
	struct flow *f = flow_get(ph, node);

	if (!f || !window_has_room(f, d->queue))
		return false;
	struct smsg *m = queue_pop(d);
	m->flags |= more_flags;
	m->to = d;
	d->outstanding++;
	d->via = node;
	window_add(ph, f, m);
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
	send_free(ph, queue_pop(d));
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
			send_free(ph, queue_pop(d));
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
		send_free(ph, m);
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

void send_resolved(struct phnx *ph, struct smsg *m)
{
	struct dest *d = m->to;

	d->outstanding--;
	send_free(ph, m);
	dest_done(ph, d);
}

void send_requeue(struct phnx *ph, struct smsg *m)
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

/* ---- departures ---- */

/* Calls fn() for every message that is queued or unresolved, until it returns false.  Returns
 * whether it never did. */
static bool for_all(struct phnx *ph, bool (*fn)(struct smsg *m))
{
	bool all = true;

	for (struct dest *d = ph->flows->active; d; d = d->next)
		for (struct smsg *m = d->queue; m && all; m = m->next)
			all = fn(m);
	for (struct flow *f = ph->flows->all; f; f = f->all_next) {
		uint64_t seq = f->una;
		for (struct smsg *m; all && (m = window_next(f, &seq));)
			all = fn(m);
	}
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
	send_free(ph, m);
}

/* Resolves what was under way to a node that is gone.  What is returned to the application makes it
 * call the library again: so neither the flow nor a destination may be found then that is about to
 * end. */
static void resolve_flow(struct phnx *ph, struct flow *f)
{
	bool resend = ph->flows->gone_policy == PH_GONE_RESEND;
	uint64_t seq = f->una;

	for (struct smsg *m; (m = window_next(f, &seq));) {
		if ((resend || m->flags & DATA_INTERNAL || m->logged) && m->dest != f->peer) {
			send_requeue(ph, m);
			continue;
		}
		m->to->outstanding--;
		dest_done(ph, m->to);
		return_message(ph, f->peer, m);
	}
	doubt_keep(ph, f);
	flow_destroy(ph, f);
}

/* Returns all that waits for a destination: no other node will ever have this name. */
static void return_queue(struct phnx *ph, ph_vp_t name)
{
	struct dest *d = ph->flows->dests[flow_bucket(name)];
	struct smsg *first, *m;

	while (d && d->vp != name)
		d = d->hash_next;
	if (!d)
		return;
	first = d->queue;
	d->queue = NULL;
	d->queue_end = &d->queue;
	dest_done(ph, d);
	while ((m = first)) {
		first = m->next;
		return_message(ph, name, m);
	}
}

void flow_peer_gone(struct phnx *ph, ph_vp_t peer)
{
	struct flow *f;

	flow_catch_up(ph);
	f = flow_take(ph, peer);
	if (f)
		resolve_flow(ph, f);
	for (struct dest *d = ph->flows->active; d; d = d->next)
		for (struct smsg *m = d->queue; m; m = m->next)
			if (m->doubt.peer == peer) {	/* the node cannot be asked any more */
				m->doubt.peer = 0;
				d->wait_us = 0;
				ph->pump = true;
			}
	return_queue(ph, peer);
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

/* ---- the end ---- */

void send_dest_free(struct phnx *ph, struct dest *d)
{
	while (d->queue)
		send_free(ph, queue_pop(d));
	free(d);
}
