/* link.c - the life of a link: pings, what its frames mean, when it ends.  Its frames on their way
 * out and in: outbox.c, inbox.c.  The handshake: handshake.c. */
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/link/link_private.h"
#include "phoenix/link/link_upcalls.h"
/* ---- reports ---- */

/* Reports an error of the peer, with its address and name as far as they are known; the name is
 * what the peer claims. */
void link_report_peer(const struct plink *l, int error, const char *what, const char *why)
{
	struct link *k = link_of(l);
	char where[WHERE_ROOM], name[40] = "";

	contact_where(l->contact, l->from, where);
	if (k->claimed)
		snprintf(name, sizeof name, ", resource name %lld,", k->claimed);
	core_report(l->ph, error, "the peer at %s%s %s%s", where, name, what, why);
}

static void ping(struct plink *l, uint64_t now)
{
	struct writer w = { 0 };

	link_of(l)->ping_us = now;
	put64(&w, now);
	put64(&w, route_digest(l->ph));
	link_send(l, FRAME_PING, &w, NULL);
	free(w.data);
}

/* How long after a ping the next one is due.  With a link to each of N nodes, the nodes would
 * otherwise send 2 * N * N pings each second. */
static uint64_t ping_interval(const struct phnx *ph)
{
	uint64_t us = (uint64_t)ph->links->n * PING_PAUSE;

	if (us < PING_INTERVAL)
		return PING_INTERVAL;
	return us < PING_INTERVAL_MOST ? us : PING_INTERVAL_MOST;
}

/* The first ping waits until no connection is being made, since nobody needs its result soon;
 * but not for ever. */
uint64_t link_ping_at(const struct plink *l, uint64_t now)
{
	struct link *k = link_of(l);
	uint64_t rest = tell_rests_at(l->ph, now), latest = k->opened_us + PING_INTERVAL;

	return k->ping_us ? k->ping_us + ping_interval(l->ph) : rest < latest ? rest : latest;
}

/* ---- liveness, and the repair of routing tables ---- */

/* A neighbour that was promised an entry by another node does not get it if that node's link
 * breaks.  Equal tables have equal digests: if the digests differ in three pings in a row,
 * everything is sent again. */
static int on_ping(struct plink *l, struct reader *r)
{
	struct link *k = link_of(l);
	struct writer w = { 0 };
	uint64_t stamp = get64(r), digest = get64(r);

	put64(&w, stamp);
	link_send(l, FRAME_PONG, &w, NULL);
	free(w.data);
	k->digest_misses = digest == route_digest(l->ph) ? 0 : k->digest_misses + 1;
	if (k->digest_misses >= 3) {
		k->digest_misses = 0;
		route_resend_all(l->ph, l);
	}
	return 0;
}

/* Returns -1 if the link is closed and freed. */
static int on_pong(struct plink *l, struct reader *r)
{
	struct link *k = link_of(l);

	/* the clock may not have moved (TRICKS: never-zero) */
	uint64_t rtt = core_now(l->ph) - get64(r) + 1;
	bool first = !k->measured;

	if (r->bad || rtt >= LINK_TIMEOUT)
		return 0;
	l->ph->links->slowest_us = rtt > l->ph->links->slowest_us ? rtt : l->ph->links->slowest_us;
	l->rtt_us = first ? rtt : (7 * l->rtt_us + rtt) / 8;
	k->measured = true;
	return first && handshake_close_double(l) ? -1 : 0;
}
/* ---- what arrives ---- */

int link_handle(struct plink *l, enum frame_type type, const unsigned char *body, size_t len)
{
	struct reader r = { body, body + len, false };
	struct phnx *ph = l->ph;
	int bad;

	ph->links->frames_in[type]++;
	switch (type) {
	case FRAME_HELLO:
		return handshake_on_hello(l, &r);
	case FRAME_AUTH:
		return handshake_on_auth(l, &r);
	case FRAME_REFUSE:
		return handshake_on_refuse(l, &r);
	case FRAME_PING:
		bad = on_ping(l, &r);
		break;
	case FRAME_PONG:
		if (on_pong(l, &r))
			return -1;
		bad = 0;
		break;
	case FRAME_ROUTE:
		bad = route_on_update(ph, l, &r);
		break;
	case FRAME_SEQREQ:
		bad = route_on_seqreq(ph, l, &r);
		break;
	case FRAME_DATA:
	case FRAME_ACK:
	case FRAME_PROBE:
	case FRAME_GOSSIP:
		bad = flow_on_frame(ph, type, body, len);
		break;
	case FRAME_HEARD:
		bad = len != 0;
		break;
	case FRAME_BARE:
		bad = inbox_on_bare(l, &r);
		break;
	default:
		bad = -1;
	}
	if (bad || r.bad) {
		link_close(l, PH_EPEER, "malformed frame of type %d", (int)type);
		return -1;
	}
	return 0;
}
/* ---- life ---- */

uint64_t link_handshake_timeout(const struct phnx *ph, uint64_t now)
{
	return HANDSHAKE_TIMEOUT + MANY_TURNS * core_lateness(ph, now);
}

/* Returns when the peer must have proved itself.  Through ssh that takes longer, because ssh
 * logs in first. */
static uint64_t proved_by(const struct plink *l, uint64_t now)
{
	struct link *k = link_of(l);

	return k->opened_us + (k->through_ssh ? LOGIN_TIMEOUT : link_handshake_timeout(l->ph, now));
}

struct plink *link_open(struct phnx *ph, void *transport, struct contact *c,
			const unsigned char binding[32])
{
	struct links *all = ph->links;
	unsigned slot = 0;

	while (slot < MAX_LINKS && all->slots[slot / 64] >> slot % 64 & 1)
		slot++;
	struct link *k = slot < MAX_LINKS && !ph->closing
				 ? calloc(1, sizeof *k + route_neighbour_bytes)
				 : NULL;
	if (!k)
		return NULL;
	struct plink *l = &k->pub;
	all->slots[slot / 64] |= 1ULL << slot % 64;
	*l = (struct plink){ .next = all->list,
			     .ph = ph,
			     .transport = transport,
			     .contact = c,
			     .state = LINK_HELLO,
			     .slot = slot,
			     .serial = ++all->serial,
			     .heard_us = core_now(ph) };
	l->neighbour = (struct neighbour *)(k + 1);
	k->opened_us = l->heard_us;
	outbox_init(l);
	k->through_ssh = c && contact_uses_ssh(c);
	if (binding)
		memcpy(k->binding, binding, sizeof k->binding);
	ph->ops->random(ph->ctx, k->nonce, sizeof k->nonce);
	all->list = l;
	all->n++;
	all->n_proving++;
	link_look_by(ph, proved_by(l, k->opened_us));
	all->progress_us = core_now(ph);
	handshake_begin(l);
	return l;
}

static void drop(struct plink *l)
{
	struct link *k = link_of(l);
	struct phnx *ph = l->ph;
	struct plink **at = &ph->links->list;
	bool up = l->state == LINK_UP;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	ph->links->n--;
	ph->links->n_proving -= !up;
	handshake_forget(l);
	l->state = LINK_CLOSING;
	if (up)
		route_link_down(ph, l);
	ph->links->slots[l->slot / 64] &= ~(1ULL << l->slot % 64);
	if (l->contact && contact_is_dialing(l->contact))
		contact_dial_failed(ph, l->contact);
	if (up && !route_link_to(ph, l->peer))
		contact_link_down(ph, l->peer, core_now(ph) - k->opened_us);
	outbox_free(l);
	free(k->my_hello.data);
	free(k->peer_hello.data);
	inbox_free(l);
	tell_forget_link(l);
	free(k);
}

void link_close(struct plink *l, int error, const char *format, ...)
{
	struct phnx *ph = l->ph;
	char text[200];
	va_list args;

	if (format) {
		struct writer w = { 0 };
		va_start(args, format);
		vsnprintf(text, sizeof text, format, args);
		va_end(args);
		if (error)
			link_report_peer(l, error, "was refused: ", text);
		put8(&w, (uint8_t)-error);
		put_bytes(&w, text, strlen(text));
		link_send_buffer(l, FRAME_REFUSE, &w);
		free(w.data);
	}
	ph->ops->close(ph->ctx, l);
	drop(l);
}

void link_lost(struct plink *l)
{
	drop(l);
}

void link_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	/* pings that are due soon go now, so that timers expire seldom */
	enum { TOGETHER = PING_INTERVAL / 4 };
	struct plink *following;

	if (now < ph->links->due) {
		*next = ph->links->due < *next ? ph->links->due : *next;
		return;
	}
	ph->links->due = UINT64_MAX;
	for (struct plink *l = ph->links->list; l; l = following) {
		following = l->next;
		uint64_t limit =
			l->state == LINK_UP ? l->heard_us + LINK_TIMEOUT : proved_by(l, now);
		if (now >= limit || link_of(l)->out.unread) {
			if (link_of(l)->out.unread)
				link_report_peer(l, PH_EPEER,
						 "reads too little of what is sent to it", "");
			link_close(l, 0, NULL);
			/* closing a link may have changed the list */
			following = ph->links->list;
			ph->links->due = UINT64_MAX;
			continue;
		}
		if (l->state == LINK_UP &&
		    now + (link_of(l)->ping_us ? TOGETHER : 0) >= link_ping_at(l, now))
			ping(l, now);
		uint64_t due = l->state == LINK_UP ? link_ping_at(l, now) : limit;
		ph->links->due = due < ph->links->due ? due : ph->links->due;
	}
	*next = ph->links->due < *next ? ph->links->due : *next;
}

/* ---- the list of links ---- */

struct plink *link_first(const struct phnx *ph)
{
	return ph->links->list;
}

unsigned link_count(const struct phnx *ph)
{
	return ph->links->n;
}

unsigned link_count_proving(const struct phnx *ph)
{
	return ph->links->n_proving;
}

uint64_t link_progress(const struct phnx *ph)
{
	return ph->links->progress_us;
}

uint64_t link_slowest(const struct phnx *ph)
{
	return ph->links->slowest_us;
}

uint64_t link_frames_out(const struct phnx *ph, enum frame_type type)
{
	return ph->links->frames_out[type];
}

void link_count_frame(struct phnx *ph, enum frame_type type)
{
	ph->links->frames_out[type]++;
}

void link_forgive(struct phnx *ph, uint64_t us)
{
	for (struct plink *l = ph->links->list; l; l = l->next)
		l->heard_us += us;
}

int link_init(struct phnx *ph)
{
	ph->links = calloc(1, sizeof *ph->links);
	if (!ph->links)
		return -1;
	ph->links->owing_end = &ph->links->owing;
	return 0;
}

void link_free_all(struct phnx *ph)
{
	while (ph->links && ph->links->list) {
		ph->ops->close(ph->ctx, ph->links->list);
		link_lost(ph->links->list);
	}
}

void link_free(struct phnx *ph)
{
	if (!ph->links)
		return;
	outbox_free_spare(ph);
	EVP_CIPHER_CTX_free(ph->links->seal);
	free(ph->links->scratch.data);
	free(ph->links);
}
