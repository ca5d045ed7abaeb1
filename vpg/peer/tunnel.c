/* tunnel.c - see tunnel.h. */
#include "vpg/peer/tunnel.h"

#include <errno.h>
#include <event2/buffer.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/log.h"

enum { HANDSHAKE_US = 10000000, AGAIN_US = 2000 };

int64_t tunnel_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static struct tunnel *of_instance(struct daemon *d, ph_vp_t instance)
{
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (!t->dead && t->instance == instance && !t->mirror)
			return t;
	return NULL;
}

struct tunnel *tunnel_to(struct daemon *d, const char *nick, bool writes)
{
	if (!strcmp(nick, d->net.settings.nick))
		return d->self[writes ? 0 : 1];
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->open && !t->dead && !t->mirror && !strcmp(t->nick, nick))
			return t;
	return NULL;
}

/* ---- frames ---- */

static void hear_frame(struct tunnel *t, long size)
{
	const unsigned char *frame = evbuffer_pullup(t->in, size);
	union vpg_any m;
	int type = frame ? message_get(frame, (size_t)size, &m) : -ENOMEM;

	if (type < 0) {
		tunnel_close(t, "it sends what no version sends");
		return;
	}
	hear(t, (enum vpg_type)type, &m);
	if (!t->dead)
		evbuffer_drain(t->in, (size_t)size);
}

static void hear_frames(struct tunnel *t)
{
	unsigned char head[VPG_LENGTH_BYTES];
	long size = 0;

	while (!t->dead) {
		ev_ssize_t n = evbuffer_copyout(t->in, head, sizeof head);

		size = message_size(head, n < 0 ? 0 : (size_t)n);
		if (size <= 0 || (size_t)size > evbuffer_get_length(t->in))
			break;
		hear_frame(t, size);
	}
	if (size < 0)
		tunnel_close(t, "it sends what no version sends");
}

/* ---- the overlay's side ---- */

static void wake(struct tunnel *t, long us)
{
	const struct timeval soon = { 0, us };

	if (!event_pending(t->pump, EV_TIMEOUT, NULL))
		event_add(t->pump, &soon);
}

/* Gives the overlay what OpenSSL has made, as far as it has room. */
static void flush(struct tunnel *t)
{
	while (t->held || (t->held = pieces_take(&t->pieces))) {
		if (ph_send_sealed(t->instance, t->held->bytes, t->held->n, TUNNEL_TAG, free,
				   t->held)) {
			wake(t, AGAIN_US);
			return;
		}
		t->held = NULL;
	}
}

void tunnel_flush(struct tunnel *t)
{
	if (!t->dead && !t->mirror && t->open)
		flush(t);
}

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct tunnel *t = arg;

	(void)fd, (void)what;
	if (t->dead)
		return;
	if (t->mirror)
		hear_frames(t);
	else
		flush(t);
}

void tunnel_send_frame(struct tunnel *t, const unsigned char *frame, size_t n)
{
	if (t->dead || !n)
		return;
	if (t->mirror) {
		evbuffer_add(t->mirror->in, frame, n);
		event_active(t->mirror->pump, EV_TIMEOUT, 0);
		return;
	}
	if (!t->open)
		return;
	if (SSL_write(t->ssl, frame, (int)n) == (int)n)
		return;
	t->failed = true;	/* closed later, so that a sender need not expect it */
	event_active(t->d->bury, EV_TIMEOUT, 0);
}

void tunnel_send_more(struct tunnel *t, enum vpg_type type, const void *fields)
{
	static unsigned char frame[VPG_FRAME_MAX];

	tunnel_send_frame(t, frame, message_put(type, fields, frame, sizeof frame));
}

void tunnel_send(struct tunnel *t, enum vpg_type type, const void *fields)
{
	tunnel_send_more(t, type, fields);
	tunnel_flush(t);
}

/* ---- life ---- */

static void tunnel_free(struct tunnel *t)
{
	SSL_free(t->ssl);	/* frees its BIO too */
	pieces_free(&t->pieces);
	if (t->in)
		evbuffer_free(t->in);
	free(t->held);
	if (t->pump)
		event_free(t->pump);
	free(t);
}

static struct tunnel *tunnel_new(struct daemon *d, ph_vp_t instance)
{
	struct tunnel *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	*t = (struct tunnel){ .d = d, .instance = instance, .since_us = tunnel_now_us() };
	t->in = evbuffer_new();
	t->pump = event_new(d->base, -1, 0, on_pump, t);
	if (!t->in || !t->pump) {
		tunnel_free(t);
		return NULL;
	}
	t->next = d->tunnels;
	d->tunnels = t;
	return t;
}

int tunnel_start_self(struct daemon *d)
{
	for (int i = 0; i < 2; i++) {
		d->self[i] = tunnel_new(d, 0);
		if (!d->self[i])
			return -1;
		d->self[i]->open = true;
		memcpy(d->self[i]->nick, d->net.settings.nick, NICK_BYTES);
	}
	d->self[0]->mirror = d->self[1];
	d->self[1]->mirror = d->self[0];
	return 0;
}

static struct tunnel *secure(struct daemon *d, ph_vp_t instance, bool client)
{
	unsigned n = 0;
	struct tunnel *t;
	BIO *bio;

	for (t = d->tunnels; t; t = t->next)
		n++;
	t = n < TUNNELS_MAX ? tunnel_new(d, instance) : NULL;
	if (!t)
		return NULL;
	t->ssl = SSL_new(d->ctx);
	bio = t->ssl ? pieces_bio(&t->pieces) : NULL;
	if (!bio) {
		tunnel_close(t, "out of memory");
		return NULL;
	}
	SSL_set_bio(t->ssl, bio, bio);
	client ? SSL_set_connect_state(t->ssl) : SSL_set_accept_state(t->ssl);
	return t;
}

void tunnel_close(struct tunnel *t, const char *why)
{
	if (t->dead)
		return;
	t->dead = true;
	if (t->open) {
		ph_sendx(t->instance, "", 0, TUNNEL_RESET_TAG, 0);
		hear_closed(t, why);
	}
	event_active(t->d->bury, EV_TIMEOUT, 0);
}

void tunnels_flush(struct daemon *d)
{
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		tunnel_flush(t);
}

void tunnels_tidy(struct daemon *d)
{
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->failed)
			tunnel_close(t, "TLS failed");
	for (struct tunnel **at = &d->tunnels, *t; (t = *at);) {
		if (!t->open && !t->dead && tunnel_now_us() - t->since_us > HANDSHAKE_US)
			t->dead = true;
		if (!t->dead) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		tunnel_free(t);
	}
}

void tunnels_free(struct daemon *d)
{
	for (struct tunnel *t; (t = d->tunnels);) {
		d->tunnels = t->next;
		tunnel_free(t);
	}
}

/* ---- TLS ---- */

/* The handshake is done: the peer has proved who it is. */
static void open_tunnel(struct tunnel *t)
{
	struct daemon *d = t->d;
	const struct member *m = NULL;
	struct tunnel *before;

	if (!identity_of_peer(t->ssl, t->key))
		m = members_of_key(&d->net.members, t->key);
	if (!m || members_state(&d->net.members, t->key) != MEMBER_GOOD ||
	    !strcmp(m->nick, d->net.settings.nick)) {
		tunnel_close(t, "its key is not one of the network's");
		return;
	}
	before = tunnel_to(d, m->nick, true);
	if (before)
		tunnel_close(before, "its daemon was started anew");
	memcpy(t->nick, m->nick, NICK_BYTES);
	t->open = true;
	hear_open(t);
}

/* An open tunnel was good before: what is wrong now was changed on the way. */
static void failed(struct tunnel *t)
{
	const char *why = identity_failure(t->open);

	if (*why && !t->open)
		log_info("a tunnel was refused: %s", why);
	if (strstr(why, "this"))
		snprintf(t->d->refused, sizeof t->d->refused, "%s", why);
	flush(t);	/* sends the alert that gives the reason */
	tunnel_close(t, why);
}

/* Makes room for the next plain bytes.  A frame lies in one piece there. */
static bool make_room(struct tunnel *t, struct evbuffer_iovec *room)
{
	enum { RECORD = 16384 };
	size_t whole = t->pieces.left < VPG_FRAME_MAX ? t->pieces.left : VPG_FRAME_MAX;

	if (!evbuffer_get_length(t->in) && evbuffer_expand(t->in, whole))
		return false;
	return evbuffer_reserve_space(t->in, RECORD, room, 1) == 1;
}

/* Reads the plain bytes that have arrived, and serves each frame when it is complete, while it is
 * in the processor's cache.  `t` may be dead after that. */
static void read_clear(struct tunnel *t)
{
	struct evbuffer_iovec room;
	int n = 0;

	while (!t->dead && make_room(t, &room) &&
	       (n = SSL_read(t->ssl, room.iov_base, (int)room.iov_len)) > 0) {
		room.iov_len = (size_t)n;
		evbuffer_commit_space(t->in, &room, 1);
		hear_frames(t);
	}
	if (!t->dead && SSL_get_error(t->ssl, n) != SSL_ERROR_WANT_READ)
		failed(t);
}

static void advance(struct tunnel *t)
{
	if (!t->open) {
		int n = SSL_do_handshake(t->ssl);

		if (n != 1 && SSL_get_error(t->ssl, n) != SSL_ERROR_WANT_READ) {
			failed(t);
			return;
		}
		flush(t);
		if (n != 1)
			return;
		open_tunnel(t);
	}
	if (!t->dead)
		read_clear(t);
	if (!t->dead)
		flush(t);
}

void tunnel_meet(struct daemon *d, ph_vp_t instance)
{
	struct tunnel *t;

	if (of_instance(d, instance) || ph_get_resource_name() > instance)
		return;
	t = secure(d, instance, true);
	if (t)
		advance(t);
}

void tunnel_arrived(struct daemon *d, ph_vp_t instance, const void *bytes, size_t n)
{
	struct tunnel *t = of_instance(d, instance);

	if (!t && ph_get_resource_name() > instance)
		t = secure(d, instance, false);
	if (!t) {	/* the tunnel was closed here */
		ph_sendx(instance, "", 0, TUNNEL_RESET_TAG, 0);
		return;
	}
	ERR_clear_error();
	t->pieces.come = bytes;
	t->pieces.left = n;
	advance(t);	/* OpenSSL keeps the beginning of a record itself */
	t->pieces.left = 0;
}

void tunnel_reset(struct daemon *d, ph_vp_t instance)
{
	struct tunnel *t = of_instance(d, instance);

	if (t)
		tunnel_close(t, "it has closed the connection");
}

void tunnel_gone(struct daemon *d, ph_vp_t instance)
{
	struct tunnel *t = of_instance(d, instance);

	if (t)
		tunnel_close(t, "nothing is heard of it any more");
}
