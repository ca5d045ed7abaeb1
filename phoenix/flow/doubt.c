/* doubt.c - messages of a message log: which of them had arrived already, and which were loaded
 * already.
 *
 * A log records, for each message that was under way, the node that it was under way to, the
 * sender's name and the message's number.  The loader asks that node (TAG_DOUBT) which of them have
 * arrived, drops these and sends the rest.  Until the answer arrives, the message waits, and so
 * does everything behind it for the same destination.  A node that is gone, or cannot be asked for
 * DOUBT_WAIT, cannot deny anything: then the message is sent.
 *
 * A message that the answer denies may still be under way.  It is refused when it arrives, since
 * its sender has ended and the loader sends it.
 *
 * A node knows the answer as long as it has its side of the flow.  When the other side is gone for
 * good, what the answer needs is kept, for the last MAX_PAST nodes that left something in doubt.
 *
 * A message that waited for a holder when the log was written was under way to nobody, and no other
 * node can tell whether it was loaded before.  So the loader remembers that itself.
 */
#include <unistd.h>
#include "phoenix/flow/flow_private.h"

enum { BITS = 2 * WINDOW_MSGS };

/* ---- the node that is asked ---- */

static bool has_arrived(const struct rslot *slot)
{
	return (slot->outcome == OUT_HELD || slot->outcome == OUT_CONSUMED) && !slot->early;
}

static bool set_bit(unsigned char *bits, uint64_t i)
{
	if (i < BITS)
		bits[i / 8] |= (unsigned char)(1u << i % 8);
	return i < BITS;
}

void doubt_keep(struct phnx *ph, const struct flow *f)
{
	struct doubts *all = ph->doubts;
	struct past *p = NULL;

	for (uint64_t s = f->r_una; s < f->r_una + f->n_slots; s++) {
		if (!has_arrived(slot_at(f, s)))
			continue;
		if (!p && !(p = calloc(1, sizeof *p + BITS / 8)))
			return;
		set_bit(p->bits, s - f->r_una);
	}
	if (!p)
		return;
	p->name = f->peer;
	p->from = f->r_una;
	free(all->past[all->next_past]);
	all->past[all->next_past] = p;
	all->next_past = (all->next_past + 1) % MAX_PAST;
}

static const struct past *past_of(const struct phnx *ph, ph_vp_t name)
{
	for (int i = 0; i < MAX_PAST; i++)
		if (ph->doubts->past[i] && ph->doubts->past[i]->name == name)
			return ph->doubts->past[i];
	return NULL;
}

static bool arrived(struct phnx *ph, const struct past *p, ph_vp_t name, uint64_t seq)
{
	const struct flow *f = flow_find(ph, name);

	if (p)
		return seq < p->from || (seq - p->from < BITS &&
					 p->bits[(seq - p->from) / 8] >> (seq - p->from) % 8 & 1);
	if (!f || f->recv_next == UINT64_MAX)
		return false;
	return seq < f->r_una || (seq - f->r_una < f->n_slots && has_arrived(slot_at(f, seq)));
}

static void on_question(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	ph_vp_t name = (ph_vp_t)get64(r);
	uint64_t first = get64(r), n = get32(r);
	unsigned char bits[BITS / 8] = { 0 };
	struct writer w = { 0 };

	if (r->bad || n > BITS || name < ph->upper || name == ph->name)
		return;
	const struct past *p = past_of(ph, name);
	for (uint64_t i = 0; i < n; i++)
		if (arrived(ph, p, name, first + i))
			set_bit(bits, i);
	/* nothing of a node that is gone is accepted anyway */
	if (!p && !route_is_gone(ph, name))
		receive_deny(ph, name, first, n, bits);
	put64(&w, (uint64_t)name);
	put64(&w, first);
	put32(&w, (uint32_t)n);
	put_bytes(&w, bits, (n + 7) / 8);
	flow_send_internal(ph, from, TAG_CERTAINTY, &w, 0);
}

/* ---- the node that asks ---- */

static void ask(struct phnx *ph, const struct doubt *about, uint64_t n)
{
	struct writer w = { 0 };

	put64(&w, (uint64_t)about->name);
	put64(&w, about->seq);
	put32(&w, (uint32_t)n);
	flow_send_internal(ph, about->peer, TAG_DOUBT, &w, about->until_us);
}

/* Asks one question for each run of at most BITS numbers of one flow. */
void doubt_ask(struct phnx *ph)
{
	for (struct dest *d = ph->flows->active; d; d = d->next)
		for (struct smsg *m = d->queue; m; m = m->next) {
			struct doubt *q = NULL;
			if (!m->doubt.peer || m->doubt.asked)
				continue;
			for (unsigned i = 0; i < ph->doubts->n_asking && !q; i++)
				if (ph->doubts->asking[i].peer == m->doubt.peer &&
				    ph->doubts->asking[i].name == m->doubt.name)
					q = ph->doubts->asking + i;
			if (!q && ph->doubts->n_asking < MAX_PAST) {
				q = ph->doubts->asking + ph->doubts->n_asking++;
				*q = m->doubt;
				q->last = q->seq;
			}
			if (q) {
				q->seq = m->doubt.seq < q->seq ? m->doubt.seq : q->seq;
				q->last = m->doubt.seq > q->last ? m->doubt.seq : q->last;
				m->doubt.asked = true;
			}
		}
	for (unsigned i = 0; i < ph->doubts->n_asking; i++) {
		struct doubt *q = ph->doubts->asking + i;
		for (; q->seq <= q->last; q->seq += BITS)
			ask(ph, q, q->last - q->seq + 1 < BITS ? q->last - q->seq + 1 : BITS);
	}
	ph->doubts->n_asking = 0;
}

static void on_answer(struct phnx *ph, ph_vp_t from, struct reader *r)
{
	ph_vp_t name = (ph_vp_t)get64(r);
	uint64_t first = get64(r), n = get32(r);
	unsigned char bits[BITS / 8];

	if (r->bad || n > BITS || (size_t)(r->end - r->p) != (n + 7) / 8)
		return;
	get_bytes(r, bits, (n + 7) / 8);
	send_certain(ph, from, name, first, n, bits);
}

void doubt_on_message(struct phnx *ph, const struct rmsg *m)
{
	const unsigned char *body = m->pub.body;
	struct reader r = { body, body + m->pub.len, false };

	if (m->pub.tag == TAG_DOUBT)
		on_question(ph, m->source, &r);
	else
		on_answer(ph, m->source, &r);
}

/* ---- what was loaded already ---- */

static bool has_order(const struct loaded *log, uint64_t order)
{
	size_t lo = 0, hi = log->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (log->orders[mid] < order)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < log->n && log->orders[lo] == order;
}

bool doubt_is_loaded(const struct phnx *ph, ph_vp_t writer, uint64_t order)
{
	for (const struct loaded *log = ph->doubts->loaded; log; log = log->next)
		if (log->writer == writer && has_order(log, order))
			return true;
	return false;
}

void doubt_note_loaded(struct phnx *ph, struct loaded *log)
{
	log->next = ph->doubts->loaded;
	ph->doubts->loaded = log;
}

void doubt_unlock(struct phnx *ph)
{
	for (struct loaded *log = ph->doubts->loaded; log; log = log->next) {
		if (log->fd >= 0)
			close(log->fd);
		log->fd = -1;
	}
}

int doubt_init(struct phnx *ph)
{
	ph->doubts = calloc(1, sizeof *ph->doubts);
	return ph->doubts ? 0 : -1;
}

void doubt_free(struct phnx *ph)
{
	if (!ph->doubts)
		return;
	doubt_unlock(ph);
	for (struct loaded *log; (log = ph->doubts->loaded); free(log))
		ph->doubts->loaded = log->next;
	for (int i = 0; i < MAX_PAST; i++)
		free(ph->doubts->past[i]);
	free(ph->doubts);
}
