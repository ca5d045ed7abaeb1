/* migrate_say.c - see migrate_say.h. */
#include "phoenix/routing/routes.h"
#include "phoenix/services/migrate_say.h"

static bool utter(struct phnx *ph, const struct unsaid *u)
{
	const struct migration *m = ph->migration;
	struct writer w = { 0 };

	put8(&w, (uint8_t)u->kind);
	put32(&w, u->attempt);
	put64(&w, (uint64_t)u->lo);
	put64(&w, (uint64_t)u->hi);
	put64(&w, route_clock(ph));
	put8(&w, (uint8_t)u->wish);
	put8(&w, u->side > 0);
	put64(&w, (uint64_t)u->count);
	if (u->kind == TRANSFER)
		put_bytes(&w, m->state, m->state_len);
	struct pbuf *b = w.bad ? NULL : pbuf_new(w.data, w.len);
	bool sent = b && !flow_send(ph, u->to, ph->name, b, TAG_MIGRATION, DATA_INTERNAL, 0);
	pbuf_put(b);
	free(w.data);
	return sent;
}

/* Sends what there was no memory for, before anything else: a partner that hears nothing waits
 * for ever. */
void migrate_say_rest(struct phnx *ph)
{
	struct migration *m = ph->migration;

	while (m->n_unsaid) {
		struct unsaid first = m->unsaid[0];
		/* the taker has died, and the giver has its interval back */
		bool void_now = first.kind == TRANSFER && !m->moving;
		if (!void_now && !utter(ph, &first))
			break;
		memmove(m->unsaid, m->unsaid + 1, --m->n_unsaid * sizeof *m->unsaid);
	}
}

void migrate_say(struct phnx *ph, ph_vp_t to, enum kind kind, uint32_t attempt, ph_vp_t lo,
		 ph_vp_t hi)
{
	struct migration *m = ph->migration;
	struct unsaid u = { .to = to,
			    .lo = lo,
			    .hi = hi,
			    .count = m->count,
			    .kind = kind,
			    .wish = m->wish,
			    .side = m->side,
			    .attempt = attempt };

	if (!m->n_unsaid && utter(ph, &u))
		return;
	if (m->n_unsaid == sizeof m->unsaid / sizeof *m->unsaid) {
		core_report(ph, PH_ENOMEM, "out of memory: a migration does not go on");
		return;
	}
	m->unsaid[m->n_unsaid++] = u;
	core_due_by(ph, core_now(ph) + MEMORY_WAIT);
}

bool migrate_read(const struct rmsg *msg, struct note *n)
{
	const unsigned char *body = msg->pub.body;
	struct reader r = { body, body + msg->pub.len, false };

	n->from = msg->source;
	n->kind = get8(&r);
	n->attempt = get32(&r);
	n->lo = (ph_vp_t)get64(&r);
	n->hi = (ph_vp_t)get64(&r);
	n->clock = get64(&r);
	n->wish = get8(&r);
	n->side = get8(&r) ? 1 : -1;
	n->count = (ph_vp_t)get64(&r);
	n->state = r.p;
	n->state_len = (size_t)(r.end - r.p);
	return !r.bad && n->kind < N_KINDS && n->count >= 0;
}
