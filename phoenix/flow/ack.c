/* ack.c - what has become of the numbered messages of a flow, and how their sender is told.
 *
 * Each number has a slot from when its message arrives until the sender says that it has read the
 * outcome.  An acknowledgement tells the outcomes of all these numbers, so any may be lost.  It
 * travels with a message to the sender if there is one in time.
 */
#include "phoenix/flow/flow_private.h"

enum {
	MAX_RUNS = 256,		/* runs of equal outcomes in one ACK */
	RUN_BYTES = 1 + 3, GEN_BYTES = 5, LAST_BYTES = 1 + 10,
	MOST_ACK = 10 + 10 + GEN_BYTES + MAX_RUNS * RUN_BYTES,
};

/* ---- outcomes ---- */

bool ack_room(struct flow *f, uint64_t seq)
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
		slots[s % n] = *slot_at(f, s);
	free(f->slots);
	f->slots = slots;
	f->n_slots = n;
	return true;
}

/* Records the outcome of a message, to be told to its sender (TRICKS: own-ack). */
void ack_resolve(struct phnx *ph, struct rmsg *m, enum outcome outcome)
{
	struct flow *f = m->peer ? flow_find(ph, m->peer) : NULL;

	if (!f || m->seq < f->r_una || m->seq - f->r_una >= f->n_slots)
		return;
	slot_at(f, m->seq)->outcome = (uint8_t)outcome;
	uint64_t now = core_now(ph);
	f->unacked_bytes += m->pub.len;
	bool many = ++f->unacked >= ACK_EVERY || f->unacked_bytes >= ACK_BYTES;
	ack_within(ph, f, many || outcome == OUT_BOUNCED ? now : now + ACK_DELAY);
}

void ack_forget(struct flow *f, uint64_t una)
{
	if (f->recv_next == UINT64_MAX)
		f->recv_next = f->r_una = una;
	if (una > f->recv_next)
		return;		/* no honest peer does that */
	for (; f->r_una < una; f->r_una++)
		if (f->n_slots)
			*slot_at(f, f->r_una) = (struct rslot){ 0 };
}

/* ---- acknowledgements ---- */

/* Writes outcomes from *s on as runs of equal ones, in at most `most` bytes; sets *s to the
 * first that is not told. */
static unsigned char *lay_runs(const struct flow *f, uint64_t *s, uint64_t end, unsigned char *p,
			       size_t most)
{
	const unsigned char *limit = p + most;

	while (*s < end && p + RUN_BYTES <= limit) {
		uint64_t start = *s;
		uint8_t outcome = slot_at(f, start)->outcome;
		while (*s < end && slot_at(f, *s)->outcome == outcome)
			++*s;
		p = lay8(p, outcome);
		p = lay_var(p, *s - start);
	}
	return p;
}

/* Writes the outcomes of f's messages in at most `room` bytes; what does not fit is told later.
 * Missing messages at the end are not mentioned, unless the sender has asked for all numbers
 * below `sent`: then they come last, even if there are none. */
static void put_ack(struct phnx *ph, struct flow *f, bool confirm, uint64_t sent, struct writer *w,
		    size_t room)
{
	uint64_t free_bytes =
		ph->flows->in_bytes < RECV_QUEUE_BYTES ? RECV_QUEUE_BYTES - ph->flows->in_bytes : 0;
	uint64_t s = f->r_una, end = f->r_end > s ? f->r_end : s, due = f->ack_at;
	unsigned char *start = writer_room(w, room + LAST_BYTES);

	f->ack_at = 0;
	f->unacked = 0;
	f->unacked_bytes = 0;
	if (!start)
		return;
	unsigned char *gen_at = lay_var(lay_var(start, f->r_una), free_bytes >> 10);
	size_t most = (size_t)(start + room - gen_at) - GEN_BYTES;
	unsigned char *p =
		lay_runs(f, &s, end, lay_var(gen_at, (uint64_t)f->gen << 1 | confirm), most);
	/* too short for all outcomes: it must not say that its reader knows what bounced
	 * (TRICKS: short-ack) */
	if (s < end && f->gen_acked != f->gen) {
		s = f->r_una;
		p = lay_runs(f, &s, end, lay_var(gen_at, (uint64_t)f->gen_acked << 1 | confirm),
			     most);
	}
	if (sent && s == end)
		p = lay_var(lay8(p, OUT_MISSING), sent > s ? sent - s : 0);
	w->len += (size_t)(p - start);
	/* not later than if nothing had been told */
	if (room < MOST_ACK && s < end && slot_at(f, s)->outcome != OUT_MISSING)
		ack_within(ph, f, due ? due : core_now(ph) + ACK_DELAY);
}

static void send_ack(struct phnx *ph, struct flow *f, bool confirm, uint64_t sent)
{
	struct writer *w = flow_frame(ph);

	put_ack(ph, f, confirm, sent, w, MOST_ACK);
	flow_send_frame(ph, f->peer, FRAME_ACK, w);
}

void ack_send(struct phnx *ph, struct flow *f)
{
	send_ack(ph, f, false, 0);
}

void ack_answer(struct phnx *ph, struct flow *f, uint64_t sent)
{
	send_ack(ph, f, false, sent);
}

void ack_put(struct phnx *ph, struct flow *f, struct writer *w)
{
	put_ack(ph, f, false, 0, w, ACK_LIMIT);
}

/* ---- the end of this node ---- */

void flow_farewell(struct phnx *ph)
{
	window_settle(ph);
	for (struct flow *f = ph->flows->all; f; f = f->all_next)
		if (f->ack_at)
			ack_send(ph, f);
}

/* A node that leaves for good must not take outcomes along: a sender left in doubt would send
 * its message to the next holder. */
bool flow_settled(struct phnx *ph)
{
	uint64_t now = core_now(ph);
	bool settled = true;

	for (struct flow *f = ph->flows->all; f; f = f->all_next) {
		if (f->recv_next == UINT64_MAX || f->r_una == f->recv_next)
			continue;
		settled = false;
		if (now < f->confirm_us + RTO_MIN / 4)
			continue;
		f->confirm_us = now;
		send_ack(ph, f, true, 0);
	}
	return settled;
}

