/* link.c - frames over a link: sending, receiving, pings, the life of a link.  The handshake:
 * handshake.c. */
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/link/link_private.h"
#include "phoenix/link/link_upcalls.h"

/* ---- sending ---- */

static struct outframe *outframe_new(struct phnx *ph)
{
	struct outframe *f = ph->links->spare_frames;

	if (!f)
		return malloc(sizeof *f);
	ph->links->spare_frames = f->next;
	ph->links->n_spare_frames--;
	return f;
}

static void outframe_free(struct phnx *ph, struct outframe *f)
{
	enum { MOST_SPARE = 64 };

	pbuf_put(f->body);
	if (ph->links->n_spare_frames == MOST_SPARE) {
		free(f);
		return;
	}
	f->next = ph->links->spare_frames;
	ph->links->spare_frames = f;
	ph->links->n_spare_frames++;
}

struct outframe *link_frame(struct plink *l, struct writer *w)
{
	struct outframe *f = outframe_new(l->ph);

	if (f)
		*w = (struct writer){ .data = f->head + FRAME_HEAD,
				      .room = FRAME_HEAD_MAX - FRAME_HEAD };
	return f;
}

/* Puts a BARE before the frame, in whose head is room for it. */
static void announce_bare(struct plink *l, struct outframe *f, size_t bare)
{
	enum { BARE_BYTES = FRAME_HEAD + 4 };

	memmove(f->head + BARE_BYTES, f->head, f->head_len);
	lay64(f->head, 'P' | 'H' << 8 | (uint64_t)FRAME_BARE << 16 | PHNX_VERSION << 24 |
			       (uint64_t)4 << 32);
	lay32(f->head + FRAME_HEAD, (uint32_t)bare);
	f->head_len += BARE_BYTES;
	f->bare = bare;
	l->out_bytes += BARE_BYTES;
	l->ph->links->frames_out[FRAME_BARE]++;
}

void link_commit(struct plink *l, struct outframe *f, enum frame_type type, const struct writer *w,
		 struct pbuf *body)
{
	struct link *k = link_of(l);
	size_t len = w->len + (body ? body->len : 0);

	f->next = NULL;
	f->head_len = FRAME_HEAD + (unsigned)w->len;
	f->done = 0;
	f->bare = 0;
	f->body = NULL;
	if (l->out_bytes + len > MAX_LINK_UNREAD || k->n_out == MAX_LINK_FRAMES) {
		k->unread = true;
		link_look_by(l->ph, 0);
		outframe_free(l->ph, f);
		return;
	}
	lay64(f->head,
	      'P' | 'H' << 8 | (uint64_t)type << 16 | PHNX_VERSION << 24 | (uint64_t)len << 32);
	if (len > w->len && body->len > SMALL_BODY) {
		f->body = body;
		body->refs++;
		if (l->secured && body->sealed >= BARE_LEAST)
			announce_bare(l, f, body->sealed);
	} else if (len > w->len) {
		memcpy(f->head + f->head_len, body->data, body->len);
		f->head_len += (unsigned)body->len;
	}
	*k->out_end = f;
	k->out_end = &f->next;
	l->out_bytes += FRAME_HEAD + len;
	k->n_out++;
	k->has_spoken = true;
	l->ph->links->frames_out[type]++;
	l->ph->ops->kick(l->ph->ctx, l);
}

void link_send(struct plink *l, enum frame_type type, const struct writer *head, struct pbuf *body)
{
	struct writer w;

	if (l->state == LINK_CLOSING ||
	    (head && (head->bad || FRAME_HEAD + head->len > FRAME_HEAD_MAX)))
		return;
	struct outframe *f = link_frame(l, &w);
	if (!f)
		return;	/* as if the frame was lost on the way: what matters is sent again */
	if (head)
		put_bytes(&w, head->data, head->len);
	link_commit(l, f, type, &w, body);
}

void link_send_buffer(struct plink *l, enum frame_type type, struct writer *w)
{
	struct pbuf *b = w->bad ? NULL : pbuf_new(w->data, w->len);

	if (b)
		link_send(l, type, NULL, b);
	pbuf_put(b);
}

void link_taken(struct plink *l, size_t n)
{
	struct link *k = link_of(l);

	l->out_bytes -= n;
	while (l->out) {
		struct outframe *f = l->out;
		size_t left = f->head_len + (f->body ? f->body->len : 0) - f->done;

		if (n < left) {
			f->done += n;
			return;
		}
		n -= left;
		l->out = f->next;
		if (!l->out)
			k->out_end = &l->out;
		k->n_out--;
		outframe_free(l->ph, f);
	}
}

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

/* ---- receiving ---- */

static int on_bare(struct plink *l, struct reader *r)
{
	struct link *k = link_of(l);

	k->bare = get32(r);
	return l->secured && k->bare && k->bare <= MAX_FRAME ? 0 : -1;
}

size_t link_bare(const struct plink *l)
{
	const struct link *k = link_of(l);
	size_t left = k->in && l->in_len >= FRAME_HEAD ? k->in_room - l->in_len : 0;

	return left <= k->bare ? left : 0;
}

size_t link_sealed(const struct phnx *ph)
{
	return ph->links->sealed;
}

static const unsigned may_come_in[N_FRAME_TYPES] = {
#define FRAME(name, when) [FRAME_##name] = when,
#include "phoenix/link/frame.def"
#undef FRAME
};

/* Returns -1 if the link is closed and freed. */
static int handle(struct plink *l, enum frame_type type, const unsigned char *body, size_t len)
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
		bad = on_bare(l, &r);
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

/* The same, and counts what BARE has said of this frame. */
static int dispatch(struct plink *l, enum frame_type type, const unsigned char *body, size_t len)
{
	struct link *k = link_of(l);
	struct links *all = l->ph->links;
	int closed;

	all->sealed = k->bare;
	k->bare = 0;
	if (all->sealed && (type != FRAME_DATA || all->sealed > len)) {
		link_close(l, PH_EPEER, "a frame of type %d must not be bare", (int)type);
		return -1;
	}
	closed = handle(l, type, body, len);
	all->sealed = 0;
	return closed;
}

/* The bytes of all links arrive in one buffer of the node's.  The beginning of a frame that has
 * not arrived completely moves to a block of the link's own, which is then read exactly to the
 * end of that frame.  If the frame is a message, the block becomes the message.  After a large
 * frame another one of the same size is expected, and a block of that size is read into from the
 * start: if the guess is right, its body is not copied. */
unsigned char *link_space(struct plink *l, size_t *room)
{
	struct link *k = link_of(l);
	enum { LEAST = 2048, MOST = 256 << 10 };

	if (!k->in && k->last_frame >= LEAST && k->last_frame <= MOST &&
	    (k->in = rmsg_block(k->last_frame))) {
		l->in_len = 0;
		k->in_room = k->last_frame;
	}
	*room = k->in ? k->in_room - l->in_len : IN_BYTES;
	return k->in ? k->in->block + l->in_len : l->ph->links->in;
}

/* Returns the whole length of the frame that begins at h, or 0: it must not come here, and the
 * link is closed and freed. */
static size_t frame_length(struct plink *l, const unsigned char *h)
{
	struct reader r = { h + 4, h + FRAME_HEAD, false };
	size_t len = get32(&r), most = l->state == LINK_UP ? MAX_FRAME : MAX_HANDSHAKE_FRAME;

	if (h[0] != 'P' || h[1] != 'H' || h[2] >= N_FRAME_TYPES || len > most ||
	    !(may_come_in[h[2]] & l->state))
		link_close(l, PH_EPEER, "a frame of type %u and %zu bytes cannot come here", h[2],
			   len);
	else if (h[3] != PHNX_VERSION)
		link_close(l, PH_EREFUSED, "protocol version %u here, %u there", PHNX_VERSION,
			   h[3]);
	else
		return FRAME_HEAD + len;
	return 0;
}

/* Keeps the n bytes at p, which begin a frame of `whole` bytes (or of more, if its head is not
 * complete). */
static int keep_beginning(struct plink *l, const unsigned char *p, size_t n, size_t whole)
{
	struct link *k = link_of(l);
	struct rmsg *in = k->in;

	if (!in || rmsg_room(in) < whole)
		in = rmsg_block(whole);
	if (!in) {
		link_close(l, PH_ENOMEM, "out of memory: a frame of %zu bytes", whole);
		return -1;
	}
	if (p != in->block)
		memmove(in->block, p, n);
	if (in != k->in)
		rmsg_free(k->in);
	k->in = in;
	l->in_len = n;
	k->in_room = whole;
	return 0;
}

/* Handles the link's block, which holds a whole frame and nothing else. */
static int land(struct plink *l)
{
	struct link *k = link_of(l);
	struct phnx *ph = l->ph;

	ph->landed = k->in;
	k->in = NULL;
	size_t n = l->in_len;
	l->in_len = 0;
	const unsigned char *h = ph->landed->block;
	int closed = dispatch(l, (enum frame_type)h[2], h + FRAME_HEAD, n - FRAME_HEAD);
	rmsg_free(ph->landed);
	ph->landed = NULL;
	return closed;
}

static int take_input(struct plink *l, size_t n)
{
	struct link *k = link_of(l);
	const unsigned char *start = k->in ? k->in->block : l->ph->links->in, *p = start;

	l->heard_us = core_now(l->ph);
	n += l->in_len;
	while (n) {
		size_t whole = n < FRAME_HEAD ? FRAME_HEAD : frame_length(l, p);
		if (!whole)
			return -1;
		if (n < whole || n < FRAME_HEAD)
			return keep_beginning(l, p, n, whole);
		k->last_frame = whole;
		l->ph->links->behind = n - whole;
		if (k->in && p == start && n == whole) {
			l->in_len = n;
			return land(l);
		}
		if (dispatch(l, (enum frame_type)p[2], p + FRAME_HEAD, whole - FRAME_HEAD))
			return -1;
		p += whole;
		n -= whole;
	}
	rmsg_free(k->in);
	k->in = NULL;
	l->in_len = 0;
	return 0;
}

/* Handles received bytes.  Behind an sshd that has left Nagle's algorithm on, a message may wait
 * until this side sends something (TRICKS: nagle-behind-ssh): so it does. */
int link_input(struct plink *l, size_t n)
{
	struct link *k = link_of(l);

	struct links *all = l->ph->links;
	int closed;

	k->has_spoken = false;
	closed = take_input(l, n);
	all->behind = 0;
	if (closed)
		return -1;
	if (k->through_ssh && l->state == LINK_UP && !k->has_spoken)
		link_send(l, FRAME_HEARD, NULL, NULL);
	return 0;
}

bool link_has_more(const struct phnx *ph)
{
	return ph->links->behind >= FRAME_HEAD;
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
	k->out_end = &l->out;
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
		contact_link_down(ph, l->peer);
	while (l->out) {
		struct outframe *f = l->out;
		l->out = f->next;
		outframe_free(ph, f);
	}
	free(k->my_hello.data);
	free(k->peer_hello.data);
	rmsg_free(k->in);
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
		if (now >= limit || link_of(l)->unread) {
			if (link_of(l)->unread)
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
	while (ph->links->spare_frames) {
		struct outframe *f = ph->links->spare_frames;
		ph->links->spare_frames = f->next;
		free(f);
	}
	EVP_CIPHER_CTX_free(ph->links->seal);
	free(ph->links->scratch.data);
	free(ph->links);
}
