/* enrol.c - lets computers join: the port beside the overlay's, TLS 1.3 in which both sides show a
 * key.
 *
 * The joining computer knows this one's key from its invitation.  This one accepts any key, and
 * asks for a token.  The guest sends one frame, and gets a few; then the connection ends.
 *
 * Anybody may connect, and say nothing or a byte now and then.  So a connection has a few seconds
 * in all, and one address has few of the connections: then others can join meanwhile.
 */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/log.h"
#include "vpg/peer/tunnel.h"

enum { GUESTS_MAX = 16, GUESTS_OF_ONE = 4, PATIENCE_S = 10, ORIGIN_BYTES = 8 };

struct guest {
	struct guest *next;
	struct enrol *e;
	struct bufferevent *socket;
	struct event *limit;
	unsigned char origin[ORIGIN_BYTES];
	bool answered;
};

struct enrol {
	struct daemon *d;
	SSL_CTX *ctx;
	struct evconnlistener *listener[2];
	struct guest *guests;
	unsigned n;
};

static int take_any(void *arg, const unsigned char key[KEY_BYTES])
{
	(void)arg, (void)key;
	return 0;
}

static void guest_free(struct guest *g)
{
	for (struct guest **at = &g->e->guests; *at; at = &(*at)->next)
		if (*at == g) {
			*at = g->next;
			break;
		}
	g->e->n--;
	event_free(g->limit);
	bufferevent_free(g->socket);
	free(g);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	guest_free(arg);
}

/* Writes what all addresses of one computer have in common: of IPv6, the network. */
static void origin_of(const struct sockaddr *from, unsigned char origin[ORIGIN_BYTES])
{
	memset(origin, 0, ORIGIN_BYTES);
	if (from->sa_family == AF_INET6)
		memcpy(origin, &((const struct sockaddr_in6 *)from)->sin6_addr, ORIGIN_BYTES);
	else if (from->sa_family == AF_INET)
		memcpy(origin, &((const struct sockaddr_in *)from)->sin_addr, 4);
}

static bool has_room(const struct enrol *e, const unsigned char origin[ORIGIN_BYTES])
{
	unsigned same = 0;

	for (const struct guest *g = e->guests; g; g = g->next)
		same += !memcmp(g->origin, origin, ORIGIN_BYTES);
	return e->n < GUESTS_MAX && same < GUESTS_OF_ONE;
}

static void say(struct guest *g, enum vpg_type type, const void *fields)
{
	static unsigned char frame[VPG_FRAME_MAX];

	bufferevent_write(g->socket, frame, message_put(type, fields, frame, sizeof frame));
}

static void say_members(struct guest *g)
{
	const struct members *all = &g->e->d->net.members;
	char key[KEY_TEXT];

	for (size_t i = 0; i < all->n; i++) {
		const struct member *m = all->at + i;

		member_key_text(m, key);
		struct vpg_MEMBER row = { key, m->nick, m->since, m->revoked };
		say(g, VPG_MEMBER, &row);
	}
}

/* Admits the computer as a member.  All connected peers are told at once. */
static int admit(struct guest *g, const struct vpg_JOIN *join, struct why *why)
{
	struct daemon *d = g->e->d;
	struct member m = { .since = (uint64_t)time(NULL) };
	const struct member *new;

	if (join->token.n != TOKEN_BYTES || !nick_is_valid(join->nick))
		return why_set(why, "that is no invitation of this version of vmp");
	if (identity_of_peer(bufferevent_openssl_get_ssl(g->socket), m.key))
		return why_set(why, "the computer that joins has shown no key");
	snprintf(m.nick, sizeof m.nick, "%s", join->nick);
	if (network_admit(&d->net, join->token.at, &m, (uint64_t)time(NULL), why))
		return -1;
	new = members_of_key(&d->net.members, m.key);
	log_info("%s has joined", m.nick);
	hear_announce(d, new);
	return 0;
}

static void on_join(struct guest *g, const struct vpg_JOIN *join)
{
	struct daemon *d = g->e->d;
	char secret[SECRET_TEXT];
	struct vpg_WELCOME welcome = { d->net.settings.session, secret };
	struct vpg_DONE done = { 0, "" };
	struct why why;

	if (network_secret(&d->net, secret, &why) || admit(g, join, &why)) {
		log_warn("nobody joins: %s", why.line);
		done = (struct vpg_DONE){ 1, why.line };
	} else {
		say(g, VPG_WELCOME, &welcome);
		say_members(g);
	}
	say(g, VPG_DONE, &done);
	g->answered = true;
}

static void on_read(struct bufferevent *b, void *arg)
{
	struct guest *g = arg;
	struct evbuffer *in = bufferevent_get_input(b);
	unsigned char head[VPG_LENGTH_BYTES];
	ev_ssize_t n = evbuffer_copyout(in, head, sizeof head);
	long size = message_size(head, n < 0 ? 0 : (size_t)n);
	union vpg_any m;

	if (g->answered || (size >= 0 && size < 512 && evbuffer_get_length(in) < (size_t)size) ||
	    (!size && !g->answered))
		return;
	if (size < 0 || size >= 512 ||
	    message_get(evbuffer_pullup(in, size), (size_t)size, &m) != VPG_JOIN)
		guest_free(g);
	else
		on_join(g, &m.JOIN);
}

static void on_event(struct bufferevent *b, short what, void *arg)
{
	(void)b;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		guest_free(arg);
}

static void on_guest(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int n,
		     void *arg)
{
	const struct timeval patience = { PATIENCE_S, 0 };
	unsigned char origin[ORIGIN_BYTES];
	struct enrol *e = arg;
	struct guest *g = NULL;
	SSL *ssl = NULL;

	(void)l, (void)n;
	origin_of(from, origin);
	if (has_room(e, origin) && network_invites(&e->d->net, (uint64_t)time(NULL)))
		g = calloc(1, sizeof *g);
	if (g)
		ssl = SSL_new(e->ctx);
	if (ssl)
		g->socket = bufferevent_openssl_socket_new(e->d->base, fd, ssl,
							   BUFFEREVENT_SSL_ACCEPTING,
							   BEV_OPT_CLOSE_ON_FREE);
	if (g && g->socket)
		g->limit = evtimer_new(e->d->base, on_limit, g);
	if (!g || !g->socket || !g->limit) {
		if (g && g->socket)
			bufferevent_free(g->socket);	/* has the others */
		else
			SSL_free(ssl), evutil_closesocket(fd);
		free(g);
		return;
	}
	g->e = e;
	memcpy(g->origin, origin, ORIGIN_BYTES);
	g->next = e->guests;
	e->guests = g;
	e->n++;
	bufferevent_openssl_set_allow_dirty_shutdown(g->socket, 1);
	bufferevent_setcb(g->socket, on_read, NULL, on_event, g);
	event_add(g->limit, &patience);
	bufferevent_enable(g->socket, EV_READ | EV_WRITE);
}

static struct evconnlistener *listen_at(struct enrol *e, const struct sockaddr *at, int n)
{
	unsigned options = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE |
			   (at->sa_family == AF_INET6 ? LEV_OPT_BIND_IPV6ONLY : 0);

	return evconnlistener_new_bind(e->d->base, on_guest, e, options, 16, at, n);
}

int enrol_start(struct daemon *d, struct why *why)
{
	struct settings *s = &d->net.settings;
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)(s->port + 1)),
				    .sin_addr.s_addr = htonl(s->anywhere ? INADDR_ANY
									 : INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = four.sin_port,
				    .sin6_addr = s->anywhere ? in6addr_any : in6addr_loopback };
	struct enrol *e = calloc(1, sizeof *e);

	if (!e)
		return why_set(why, "out of memory");
	e->d = d;
	d->enrol = e;
	e->ctx = identity_context(&d->net.id, take_any, NULL);
	if (e->ctx)
		e->listener[0] = listen_at(e, (struct sockaddr *)&four, sizeof four);
	if (!e->listener[0]) {
		enrol_stop(d);
		return why_set(why, "port %u is taken", s->port + 1);
	}
	e->listener[1] = listen_at(e, (struct sockaddr *)&six, sizeof six);
	return 0;
}

void enrol_stop(struct daemon *d)
{
	struct enrol *e = d->enrol;

	if (!e)
		return;
	while (e->guests)
		guest_free(e->guests);
	for (int i = 0; i < 2; i++)
		if (e->listener[i])
			evconnlistener_free(e->listener[i]);
	SSL_CTX_free(e->ctx);
	free(e);
	d->enrol = NULL;
}
