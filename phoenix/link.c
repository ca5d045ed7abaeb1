/* link.c - frames over a link, and the handshake before the first of them is believed.
 *
 * Both sides send HELLO at once, and answer the other's HELLO with AUTH: an HMAC under the session's secret over both
 * HELLOs (with their nonces) and, under TLS, the channel's exported key.  The sender's role goes in too, so that a proof
 * cannot be reflected.  Until AUTH is verified nothing but a small HELLO, AUTH or REFUSE is read.
 *
 * AUTH also says what its sender is, in the words of a FRAME_ROUTE: whoever believes the proof need not wait for another packet.
 * But its sender has not seen a proof yet; so only those who have the secret can read it. It is one more thing that the HMAC is
 * over, and encrypted under a key of its own with that as the initial counter (a synthetic one, as in RFC 5297).
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/core.h"

struct pbuf *pbuf_new(const void *data, size_t len)
{
	size_t room;
	struct pbuf *b = block_get(sizeof *b + len, &room);

	if (!b)
		return NULL;
	*b = (struct pbuf){ .refs = 1, .len = len, .room = room, .data = b->own };
	if (len && data)
		memcpy(b->own, data, len);
	return b;
}

struct pbuf *pbuf_lent(const void *data, size_t len)
{
	struct pbuf *b = pbuf_new(NULL, len);

	if (b)
		b->data = data;
	return b;
}

/* Whoever called for the message to be sent may soon write over it; if nobody has it any more, that is fine. */
void pbuf_keep(struct pbuf *b)
{
	if (b->refs > 1 && b->data != b->own && b->len)
		memcpy(b->own, b->data, b->len);
	b->data = b->own;
}

struct pbuf *pbuf_of(const void *data, size_t len, void (*release)(void *arg), void *arg)
{
	size_t room;
	struct pbuf *b = block_get(sizeof *b, &room);

	if (b)
		*b = (struct pbuf){ .refs = 1, .len = len, .room = room, .data = data, .release = release, .arg = arg };
	return b;
}

void pbuf_put(struct pbuf *b)
{
	if (!b || --b->refs)
		return;
	if (b->release)
		b->release(b->arg);
	block_put(b, b->room);
}

/* ---- sending ---- */

/* link_tick() is to look at the links by then. */
static void look_by(struct phnx *ph, uint64_t when)
{
	if (when < ph->links_due)
		ph->links_due = when;
	if (when < ph->due)
		ph->due = when;
}

static struct outframe *outframe_new(struct phnx *ph)
{
	struct outframe *f = ph->spare_frames;

	if (!f)
		return malloc(sizeof *f);
	ph->spare_frames = f->next;
	ph->n_spare_frames--;
	return f;
}

static void outframe_free(struct phnx *ph, struct outframe *f)
{
	enum { MOST_SPARE = 64 };

	pbuf_put(f->body);
	if (ph->n_spare_frames == MOST_SPARE) {
		free(f);
		return;
	}
	f->next = ph->spare_frames;
	ph->spare_frames = f;
	ph->n_spare_frames++;
}

struct outframe *link_frame(struct plink *l, struct writer *w)
{
	struct outframe *f = outframe_new(l->ph);

	if (f)
		*w = (struct writer){ .data = f->head + FRAME_HEAD, .room = FRAME_HEAD_MAX - FRAME_HEAD };
	return f;
}

void link_commit(struct plink *l, struct outframe *f, enum frame_type type, const struct writer *w, struct pbuf *body)
{
	size_t len = w->len + (body ? body->len : 0);

	f->next = NULL;
	f->head_len = FRAME_HEAD + (unsigned)w->len;
	f->done = 0;
	f->body = NULL;
	if (l->out_bytes + len > MAX_LINK_UNREAD || l->n_out == MAX_LINK_FRAMES) {
		l->unread = true;
		look_by(l->ph, 0);
		outframe_free(l->ph, f);
		return;
	}
	lay64(f->head, 'P' | 'H' << 8 | (uint64_t)type << 16 | PHNX_VERSION << 24 | (uint64_t)len << 32);
	if (len > w->len && body->len > SMALL_BODY) {
		f->body = body;
		body->refs++;
	} else if (len > w->len) {
		memcpy(f->head + f->head_len, body->data, body->len);
		f->head_len += (unsigned)body->len;
	}
	*l->out_end = f;
	l->out_end = &f->next;
	l->out_bytes += FRAME_HEAD + len;
	l->n_out++;
	l->has_spoken = true;
	l->ph->frames_out[type]++;
	l->ph->ops->kick(l->ph->ctx, l);
}

void link_send(struct plink *l, enum frame_type type, const struct writer *head, struct pbuf *body)
{
	struct writer w;

	if (l->state == LINK_CLOSING || (head && (head->bad || FRAME_HEAD + head->len > FRAME_HEAD_MAX)))
		return;
	struct outframe *f = link_frame(l, &w);
	if (!f)
		return;		/* as if the frame was lost: what matters is sent again */
	if (head)
		put_bytes(&w, head->data, head->len);
	link_commit(l, f, type, &w, body);
}

static void send_buffer(struct plink *l, enum frame_type type, struct writer *w)
{
	struct pbuf *b = w->bad ? NULL : pbuf_new(w->data, w->len);

	if (b)
		link_send(l, type, NULL, b);
	pbuf_put(b);
}

void phnx_link_taken(struct plink *l, size_t n)
{
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
			l->out_end = &l->out;
		l->n_out--;
		outframe_free(l->ph, f);
	}
}

/* ---- handshake ---- */

/* Who the peer is, as far as that is known: its name is what it claims. */
static void report_peer(const struct plink *l, int error, const char *what, const char *why)
{
	char where[WHERE_ROOM], name[40] = "";

	contact_where(l->contact, l->from, where);
	if (l->claimed)
		snprintf(name, sizeof name, ", resource name %lld,", l->claimed);
	phnx_report(l->ph, error, "the peer at %s%s %s%s", where, name, what, why);
}

static void put_hello(struct plink *l)
{
	struct phnx *ph = l->ph;
	struct writer *w = &l->my_hello;

	put_bytes(w, "phnx", 4);
	put8(w, PHNX_VERSION);
	put8(w, l->contact ? 1 : 0);
	put8(w, ph->has_session);
	put8(w, (uint8_t)strlen(ph->session));
	put_bytes(w, ph->session, strlen(ph->session));
	put64(w, (uint64_t)ph->lower);
	put64(w, (uint64_t)ph->upper);
	put64(w, (uint64_t)ph->name);
	put_le(w, ph->me.n_addrs ? (uint64_t)ph->me.addrs[0].port : 0, 2);
	put_bytes(w, l->nonce, sizeof l->nonce);
	send_buffer(l, FRAME_HELLO, w);
}

static bool proof(struct plink *l, bool mine, const struct writer *said, unsigned char mac[32])
{
	const struct writer *a = mine ? &l->my_hello : &l->peer_hello, *b = mine ? &l->peer_hello : &l->my_hello;
	unsigned char all[64 + 3 * MAX_HANDSHAKE_FRAME];
	struct writer w = { .data = all, .room = sizeof all };	/* never grows */
	unsigned n = 32;

	put_bytes(&w, "phnx proof", 10);
	put_le(&w, a->len, 2);
	put_bytes(&w, a->data, a->len);
	put_bytes(&w, b->data, b->len);
	put_bytes(&w, l->binding, sizeof l->binding);
	put_bytes(&w, said->data, said->len);
	return !a->bad && !b->bad && HMAC(EVP_sha256(), l->ph->secret, SECRET_BYTES, w.data, w.len, mac, &n);
}

/* The same makes it legible again. */
static bool seal(struct phnx *ph, struct writer *said, const unsigned char mac[32])
{
	static const unsigned char purpose[] = "phnx seal";
	unsigned char key[32];
	unsigned n = sizeof key;
	int len = (int)said->len;

	if (!len)
		return true;
	if (!ph->seal && HMAC(EVP_sha256(), ph->secret, SECRET_BYTES, purpose, sizeof purpose - 1, key, &n) &&
	    (ph->seal = EVP_CIPHER_CTX_new()) && !EVP_EncryptInit_ex(ph->seal, EVP_aes_256_ctr(), NULL, key, NULL)) {
		EVP_CIPHER_CTX_free(ph->seal);
		ph->seal = NULL;
	}
	return ph->seal && EVP_EncryptInit_ex(ph->seal, NULL, NULL, NULL, mac) &&
	       EVP_EncryptUpdate(ph->seal, said->data, &len, said->data, len);
}

static void send_proof(struct plink *l)
{
	struct writer *said = &l->ph->scratch;
	unsigned char mac[32];

	l->owes_proof = false;
	said->len = said->bad = 0;
	route_greet(l, said);
	if (!proof(l, true, said, mac) || !seal(l->ph, said, mac)) {
		memset(mac, 0, sizeof mac);
		said->len = 0;
	}
	struct writer head = { .data = mac, .len = sizeof mac };
	struct pbuf *body = pbuf_new(said->data, said->len);
	if (body)
		link_send(l, FRAME_AUTH, &head, body);
	pbuf_put(body);
}

static void owe_nothing(struct plink *l)
{
	for (struct plink **at = &l->ph->owing; *at; at = &(*at)->next_owing)
		if (*at == l) {
			*at = l->next_owing;
			if (!*at)
				l->ph->owing_end = at;
			return;
		}
}

/* All greetings that came together are known by then, and so route_greet() has somebody to name. */
void link_prove(struct phnx *ph)
{
	for (struct plink *l; (l = ph->owing);) {
		owe_nothing(l);
		if (l->owes_proof)
			send_proof(l);
	}
}

static void owe_proof(struct plink *l)
{
	struct routes *t = &l->ph->routes;

	t->last[t->n_last++ % LAST_NAMES] = l->claimed;
	l->owes_proof = true;
	l->next_owing = NULL;
	*l->ph->owing_end = l;
	l->ph->owing_end = &l->next_owing;
}

static int on_hello(struct plink *l, struct reader *r)
{
	struct phnx *ph = l->ph;
	unsigned char magic[4], nonce[32];
	char session[MAX_SESSION] = "";

	put_bytes(&l->peer_hello, r->p, (size_t)(r->end - r->p));
	get_bytes(r, magic, 4);
	unsigned version = get8(r);
	if (r->bad || memcmp(magic, "phnx", 4) || version != PHNX_VERSION) {
		link_close(l, PH_EREFUSED, "protocol version %u here, %u there", PHNX_VERSION, version);
		return -1;
	}
	get8(r);
	bool has_session = get8(r);
	size_t n = get8(r);
	if (n >= sizeof session) {
		link_close(l, PH_EPEER, "session name too long");
		return -1;
	}
	get_bytes(r, session, n);
	ph_vp_t lower = (ph_vp_t)get64(r), upper = (ph_vp_t)get64(r);
	l->claimed = (ph_vp_t)get64(r);
	l->port = (int)get_le(r, 2);
	get_bytes(r, nonce, sizeof nonce);
	if (r->bad || r->p != r->end)
		link_close(l, PH_EPEER, "malformed greeting");
	else if (has_session != ph->has_session)
		link_close(l, PH_EREFUSED, "%s a session here, %s there", has_session ? "without" : "with", has_session ? "with" : "without");
	else if (strcmp(session, ph->session))
		link_close(l, PH_EREFUSED, "session '%.64s' here, '%.64s' there", ph->session, session);
	else if (lower != ph->lower || upper != ph->upper)
		link_close(l, PH_EREFUSED, "virtual nodes [%lld, %lld) here, [%lld, %lld) there", ph->lower, ph->upper, lower,
			   upper);
	else if (l->claimed == ph->name) {
		if (l->contact)
			contact_is_self(ph, l->contact);
		link_close(l, 0, "this is myself");
	} else if (l->claimed < ph->upper || l->claimed <= 0)
		link_close(l, PH_EPEER, "a resource name among the virtual nodes");
	else {
		owe_proof(l);
		l->state = LINK_AUTH;
		ph->progress_us = phnx_now(ph);
		return 0;
	}
	return -1;
}

struct plink *link_find(struct phnx *ph, ph_vp_t peer)
{
	struct rentry *e = route_find(ph, peer);

	return e ? e->direct : NULL;
}

/* Two links to one peer: the node with the smaller name keeps the one that it dialed, and it alone closes the other; not before a
 * ping was answered if that is the older one, since the peer may have no other way yet. */
static bool close_double(struct plink *l)
{
	struct plink *other = link_find(l->ph, l->claimed);

	if (!other || other == l || l->ph->name > l->claimed)
		return false;
	struct plink *worse = other->contact || !l->contact ? l : other;
	if (worse == other && !l->measured)
		return false;
	if (worse->contact)
		contact_doubled(l->ph, worse->contact, l->claimed);
	link_close(worse, 0, "second link between the same nodes");
	return worse == l;
}

static void ping(struct plink *l, uint64_t now)
{
	struct writer w = { 0 };

	l->ping_us = now;
	put64(&w, now);
	put64(&w, l->ph->routes.digest);
	link_send(l, FRAME_PING, &w, NULL);
	free(w.data);
}

static bool is_proof(struct plink *l, struct reader *r, struct writer *said)
{
	unsigned char mac[32], theirs[32];

	get_bytes(r, theirs, sizeof theirs);
	put_bytes(said, r->p, (size_t)(r->end - r->p));
	return !r->bad && seal(l->ph, said, theirs) && proof(l, false, said, mac) && !CRYPTO_memcmp(mac, theirs, sizeof mac);
}

/* The first ping waits until connections rest, as nobody waits for it, but not for ever. */
static uint64_t ping_at(const struct plink *l, uint64_t now)
{
	uint64_t rest = route_rests_at(l->ph, now), latest = l->opened_us + PING_INTERVAL;

	return l->ping_us ? l->ping_us + PING_INTERVAL : rest < latest ? rest : latest;
}

static void link_up(struct plink *l)
{
	l->peer = l->claimed;
	l->state = LINK_UP;
	l->rtt_us = phnx_now(l->ph) - l->opened_us + 1;	/* its greeting was answered */
	l->ph->slowest_us = l->rtt_us > l->ph->slowest_us ? l->rtt_us : l->ph->slowest_us;
	l->ph->n_proving--;
	free(l->my_hello.data);
	free(l->peer_hello.data);
	l->my_hello = l->peer_hello = (struct writer){ 0 };
	if (l->contact)
		contact_linked(l->ph, l->contact, l->peer);
	l->ph->progress_us = phnx_now(l->ph);
	look_by(l->ph, ping_at(l, phnx_now(l->ph)));
	route_link_up(l->ph, l);
}

static int on_auth(struct plink *l, struct reader *r)
{
	unsigned char words[MAX_HANDSHAKE_FRAME];
	struct writer said = { .data = words, .room = sizeof words };	/* never grows */
	bool closed = true, bad = false;

	if (l->owes_proof)
		send_proof(l);		/* before anything else that is sent to whoever has proved itself */
	if (!is_proof(l, r, &said))
		link_close(l, PH_EREFUSED, "the secrets of session '%.64s' differ", l->ph->session);
	else
		closed = close_double(l);
	if (!closed) {
		struct reader s = { said.data, said.data + said.len, false };
		link_up(l);
		bad = said.len && (route_on_update(l->ph, l, &s) || s.bad);
	}
	if (bad)
		link_close(l, PH_EPEER, "malformed words with a proof");
	return -(closed || bad);
}

static int on_refuse(struct plink *l, struct reader *r)
{
	int error = -(int)get8(r);
	char text[200];
	size_t n = (size_t)(r->end - r->p);

	n = n < sizeof text - 1 ? n : sizeof text - 1;
	get_bytes(r, text, n);
	text[n] = 0;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			text[i] = '?';
	if (error)
		report_peer(l, PH_EREFUSED, "refused this node: ", text);
	else if (l->contact && l->contact->state == CONTACT_DIALING && l->claimed)
		contact_doubled(l->ph, l->contact, l->claimed);
	link_close(l, 0, NULL);
	return -1;
}

/* ---- liveness, and the repair of routing tables ---- */

/* The promise "you will get it from another" is lost with a broken link: equal tables have equal digests, and what stays
 * different for three pings is sent again. */
static int on_ping(struct plink *l, struct reader *r)
{
	struct writer w = { 0 };
	uint64_t stamp = get64(r), digest = get64(r);

	put64(&w, stamp);
	link_send(l, FRAME_PONG, &w, NULL);
	free(w.data);
	l->digest_misses = digest == l->ph->routes.digest ? 0 : l->digest_misses + 1;
	if (l->digest_misses >= 3) {
		l->digest_misses = 0;
		route_resend_all(l->ph, l);
	}
	return 0;
}

/* -1: the link is closed and freed */
static int on_pong(struct plink *l, struct reader *r)
{
	uint64_t rtt = phnx_now(l->ph) - get64(r) + 1;	/* what is done at one go is done at one time: it may not be 0 */
	bool first = !l->measured;

	if (r->bad || rtt >= LINK_TIMEOUT)
		return 0;
	l->ph->slowest_us = rtt > l->ph->slowest_us ? rtt : l->ph->slowest_us;
	l->rtt_us = first ? rtt : (7 * l->rtt_us + rtt) / 8;
	l->measured = true;
	return first && close_double(l) ? -1 : 0;
}

/* ---- receiving ---- */

static const unsigned may_come_in[N_FRAME_TYPES] = {
#define FRAME(name, when) [FRAME_##name] = when,
#include "phoenix/frame.def"
#undef FRAME
};

/* -1: the link is closed and freed */
static int dispatch(struct plink *l, enum frame_type type, const unsigned char *body, size_t len)
{
	struct reader r = { body, body + len, false };
	struct phnx *ph = l->ph;
	int bad;

	ph->frames_in[type]++;
	switch (type) {
	case FRAME_HELLO:
		return on_hello(l, &r);
	case FRAME_AUTH:
		return on_auth(l, &r);
	case FRAME_REFUSE:
		return on_refuse(l, &r);
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
		bad = flow_on_frame(ph, l, type, body, len);
		break;
	case FRAME_HEARD:
		bad = len != 0;
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

/* Bytes of all links arrive in the node's one buffer.  The beginning of a frame that has not come whole moves to a block of
 * the link's own, which is then read to that frame's end exactly.  If the frame is a message, the block becomes the message.
 * After a large frame another one like it is expected, and a block of that size is read into from the start: if it is one,
 * its body is copied nowhere. */
unsigned char *phnx_link_space(struct plink *l, size_t *room)
{
	enum { LEAST = 2048, MOST = 256 << 10 };

	if (!l->in && l->last_frame >= LEAST && l->last_frame <= MOST && (l->in = rmsg_block(l->last_frame))) {
		l->in_len = 0;
		l->in_room = l->last_frame;
	}
	*room = l->in ? l->in_room - l->in_len : sizeof l->ph->in;
	return l->in ? l->in->block + l->in_len : l->ph->in;
}

/* The whole length of the frame that begins at h. 0: it cannot come here, and the link is closed and freed. */
static size_t frame_length(struct plink *l, const unsigned char *h)
{
	struct reader r = { h + 4, h + FRAME_HEAD, false };
	size_t len = get32(&r), most = l->state == LINK_UP ? MAX_FRAME : MAX_HANDSHAKE_FRAME;

	if (h[0] != 'P' || h[1] != 'H' || h[2] >= N_FRAME_TYPES || len > most || !(may_come_in[h[2]] & l->state))
		link_close(l, PH_EPEER, "a frame of type %u and %zu bytes cannot come here", h[2], len);
	else if (h[3] != PHNX_VERSION)
		link_close(l, PH_EREFUSED, "protocol version %u here, %u there", PHNX_VERSION, h[3]);
	else
		return FRAME_HEAD + len;
	return 0;
}

/* The n bytes at p begin a frame of `whole` bytes, as far as its length is known. */
static int keep_beginning(struct plink *l, const unsigned char *p, size_t n, size_t whole)
{
	struct rmsg *in = l->in;

	if (!in || rmsg_room(in) < whole)
		in = rmsg_block(whole);
	if (!in) {
		link_close(l, PH_ENOMEM, "no memory for a frame of %zu bytes", whole);
		return -1;
	}
	if (p != in->block)
		memmove(in->block, p, n);
	if (in != l->in)
		rmsg_free(l->in);
	l->in = in;
	l->in_len = n;
	l->in_room = whole;
	return 0;
}

/* The link's block holds a whole frame and nothing else. */
static int land(struct plink *l)
{
	struct phnx *ph = l->ph;

	ph->landed = l->in;
	l->in = NULL;
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
	const unsigned char *start = l->in ? l->in->block : l->ph->in, *p = start;

	l->heard_us = phnx_now(l->ph);
	n += l->in_len;
	while (n) {
		size_t whole = n < FRAME_HEAD ? FRAME_HEAD : frame_length(l, p);
		if (!whole)
			return -1;
		if (n < whole || n < FRAME_HEAD)
			return keep_beginning(l, p, n, whole);
		l->last_frame = whole;
		if (l->in && p == start && n == whole) {
			l->in_len = n;
			return land(l);
		}
		if (dispatch(l, (enum frame_type)p[2], p + FRAME_HEAD, whole - FRAME_HEAD))
			return -1;
		p += whole;
		n -= whole;
	}
	rmsg_free(l->in);
	l->in = NULL;
	l->in_len = 0;
	return 0;
}

/* An sshd that carries nothing but a connection leaves Nagle's algorithm on: the second of two small messages waits until the first is
 * acknowledged, and the host of ssh, which has nothing to send, does that 40 ms later. So something is sent at once. */
int phnx_link_input(struct plink *l, size_t n)
{
	l->has_spoken = false;
	if (take_input(l, n))
		return -1;
	if (l->contact && l->contact->at.protocol == PHNX_SSH && l->state == LINK_UP && !l->has_spoken)
		link_send(l, FRAME_HEARD, NULL, NULL);
	return 0;
}

/* ---- life ---- */

uint64_t phnx_handshake_timeout(const struct phnx *ph, uint64_t now)
{
	return HANDSHAKE_TIMEOUT + MANY_TURNS * phnx_lateness(ph, now);
}

/* When the other side must have proved itself: later through ssh, which logs in first. */
static uint64_t proved_by(const struct plink *l, uint64_t now)
{
	return l->opened_us + (l->contact && l->contact->at.protocol == PHNX_SSH ? LOGIN_TIMEOUT : phnx_handshake_timeout(l->ph, now));
}

struct plink *phnx_link_open(struct phnx *ph, void *transport, struct contact *c, const unsigned char binding[32])
{
	unsigned slot = 0;

	while (slot < MAX_LINKS && ph->link_slots[slot / 64] >> slot % 64 & 1)
		slot++;
	struct plink *l = slot < MAX_LINKS && !ph->closing ? calloc(1, sizeof *l) : NULL;
	if (!l)
		return NULL;
	ph->link_slots[slot / 64] |= 1ULL << slot % 64;
	*l = (struct plink){ .next = ph->links, .ph = ph, .transport = transport, .contact = c, .state = LINK_HELLO,
			     .slot = slot, .serial = ++ph->link_serial, .opened_us = phnx_now(ph), .heard_us = phnx_now(ph) };
	l->out_end = &l->out;
	if (binding)
		memcpy(l->binding, binding, sizeof l->binding);
	ph->ops->random(ph->ctx, l->nonce, sizeof l->nonce);
	ph->links = l;
	ph->n_links++;
	ph->n_proving++;
	look_by(ph, proved_by(l, l->opened_us));
	ph->progress_us = phnx_now(ph);
	put_hello(l);
	return l;
}

static void drop(struct plink *l)
{
	struct phnx *ph = l->ph;
	struct plink **at = &ph->links;
	bool up = l->state == LINK_UP;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	ph->n_links--;
	ph->n_proving -= !up;
	owe_nothing(l);
	l->state = LINK_CLOSING;
	if (up)
		route_link_down(ph, l);
	ph->link_slots[l->slot / 64] &= ~(1ULL << l->slot % 64);
	if (l->contact && l->contact->state == CONTACT_DIALING)
		phnx_dial_failed(ph, l->contact);
	if (up && !link_find(ph, l->peer))
		contact_link_down(ph, l->peer);
	while (l->out) {
		struct outframe *f = l->out;
		l->out = f->next;
		outframe_free(ph, f);
	}
	free(l->my_hello.data);
	free(l->peer_hello.data);
	rmsg_free(l->in);
	free(l->named);
	free(l);
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
			report_peer(l, error, "was refused: ", text);
		put8(&w, (uint8_t)-error);
		put_bytes(&w, text, strlen(text));
		send_buffer(l, FRAME_REFUSE, &w);
		free(w.data);
	}
	ph->ops->close(ph->ctx, l);
	drop(l);
}

void phnx_link_lost(struct plink *l)
{
	drop(l);
}

void link_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	enum { TOGETHER = PING_INTERVAL / 4 };	/* pings that are due so soon go now, so that seldom is anything due */
	struct plink *following;

	if (now < ph->links_due) {
		*next = ph->links_due < *next ? ph->links_due : *next;
		return;
	}
	ph->links_due = UINT64_MAX;
	for (struct plink *l = ph->links; l; l = following) {
		following = l->next;
		uint64_t limit = l->state == LINK_UP ? l->heard_us + LINK_TIMEOUT : proved_by(l, now);
		if (now >= limit || l->unread) {
			if (l->unread)
				report_peer(l, PH_EPEER, "reads too little of what is sent to it", "");
			link_close(l, 0, NULL);
			following = ph->links;	/* closing may have changed the list */
			ph->links_due = UINT64_MAX;
			continue;
		}
		if (l->state == LINK_UP && now + (l->ping_us ? TOGETHER : 0) >= ping_at(l, now))
			ping(l, now);
		uint64_t due = l->state == LINK_UP ? ping_at(l, now) : limit;
		ph->links_due = due < ph->links_due ? due : ph->links_due;
	}
	*next = ph->links_due < *next ? ph->links_due : *next;
}
