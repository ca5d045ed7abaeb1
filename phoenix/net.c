/* net.c - connections: TCP, TLS 1.3, SSH tunnels; readiness comes from libevent, bytes go straight to the sockets.
 *
 * No bufferevents: a message is written by the thread that sends it, at once, and read by the thread that waits for it.
 * TLS runs over memory BIOs, so that one pair of functions does all socket input and output (and no SIGPIPE is raised).
 * A listener tells TLS from plain connections by the first byte: a TLS record of a handshake begins with 0x16, a frame
 * with 'P'.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "phoenix/net.h"

extern char **environ;

enum conn_state { RESOLVING, CONNECTING, PEEKING, SECURING, OPEN, DRAINING };
enum ready { READY_READ = 1, READY_WRITE = 2, READY_RESOLVED = 4 };
struct conn {
	struct conn *next, *ready_next;
	unsigned ready;			/* under ready_lock */
	int lookup_error;
	struct evutil_addrinfo *found;
	struct net *net;
	enum conn_state state;
	int fd;
	struct event *readable, *writable;
	struct evdns_getaddrinfo_request *lookup;
	struct contact *contact;
	struct plink *l;
	SSL *ssl;
	BIO *from_net, *to_net;
	struct writer cipher;		/* bytes for the socket that did not fit into it */
	size_t cipher_sent;
	bool dirty, blocked;
	uint64_t since_us;
	pid_t ssh;
};
struct net {
	struct event_base *base;
	struct evdns_base *dns;
	struct event *timer, *listener;
	int listen_fd;
	struct phnx *ph;
	const struct net_owner *owner;
	struct conn *conns;
	struct event *wake;
	pthread_mutex_t ready_lock;
	struct conn *ready;
	atomic_bool knock;
	bool dirty;
	uint64_t due;
	SSL_CTX *server, *client;
};

/* ---- what libevent calls ----
 * Only notes what is ready: net_settle() does the work, under the lock of api.c.  A callback that took that lock itself
 * could wait for a thread that, in event_del(), waits for the callback. */

static void note(struct conn *k, unsigned what)
{
	pthread_mutex_lock(&k->net->ready_lock);
	if (!k->ready) {
		k->ready_next = k->net->ready;
		k->net->ready = k;
	}
	k->ready |= what;
	pthread_mutex_unlock(&k->net->ready_lock);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	note(arg, (what & EV_READ ? READY_READ : 0) | (what & EV_WRITE ? READY_WRITE : 0));
}

static void on_resolved(int error, struct evutil_addrinfo *found, void *arg)
{
	struct conn *k = arg;

	if (error == EVUTIL_EAI_CANCEL)
		return;		/* k is gone */
	pthread_mutex_lock(&k->net->ready_lock);
	k->lookup = NULL;
	k->lookup_error = error;
	k->found = found;
	pthread_mutex_unlock(&k->net->ready_lock);
	note(k, READY_RESOLVED);
}

static struct conn *pop_ready(struct net *net, unsigned *what)
{
	pthread_mutex_lock(&net->ready_lock);
	struct conn *k = net->ready;
	if (k) {
		net->ready = k->ready_next;
		*what = k->ready;
		k->ready = 0;
	}
	pthread_mutex_unlock(&net->ready_lock);
	return k;
}

/* ---- the node's view ---- */

static uint64_t op_now(void *ctx)
{
	struct timespec t;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void op_random(void *ctx, void *buf, size_t n)
{
	(void)ctx;
	while (n) {
		ssize_t got = getrandom(buf, n, 0);
		if (got > 0) {
			buf = (char *)buf + got;
			n -= (size_t)got;
		}
	}
}

static void op_kick(void *ctx, struct plink *l)
{
	struct net *net = ctx;

	((struct conn *)l->transport)->dirty = true;
	net->dirty = true;
}

static void op_report(void *ctx, int error, const char *text)
{
	((struct net *)ctx)->owner->report(error, text);
}

static void op_arrived(void *ctx)
{
	((struct net *)ctx)->owner->arrived();
}

/* ---- one connection ---- */

static struct conn *conn_new(struct net *net, int fd, struct contact *c, enum conn_state state)
{
	struct conn *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	*k = (struct conn){ .next = net->conns, .net = net, .fd = fd, .contact = c, .state = state,
			    .since_us = op_now(NULL) };
	net->conns = k;
	if (c)
		c->transport = k;
	return k;
}

static void conn_free(struct conn *k)
{
	struct conn **at = &k->net->conns;

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	if (k->readable)
		event_free(k->readable);	/* waits for its callback in another thread */
	if (k->writable)
		event_free(k->writable);
	pthread_mutex_lock(&k->net->ready_lock);
	if (k->lookup)
		evdns_getaddrinfo_cancel(k->lookup);
	for (at = &k->net->ready; k->ready && *at; at = &(*at)->ready_next)
		if (*at == k) {
			*at = k->ready_next;
			break;
		}
	pthread_mutex_unlock(&k->net->ready_lock);
	if (k->found)
		evutil_freeaddrinfo(k->found);
	SSL_free(k->ssl);
	if (k->fd >= 0)
		close(k->fd);
	if (k->ssh > 0) {
		kill(k->ssh, SIGTERM);
		waitpid(k->ssh, NULL, 0);
	}
	if (k->contact && k->contact->transport == k)
		k->contact->transport = NULL;
	free(k->cipher.data);
	free(k);
}

/* The connection is of no use any more: tell the node. */
static void conn_lost(struct conn *k)
{
	struct plink *l = k->l;
	struct contact *c = l ? NULL : k->contact;
	struct phnx *ph = k->net->ph;

	k->l = NULL;
	conn_free(k);
	if (l)
		phnx_link_lost(l);
	else if (c)
		phnx_dial_failed(ph, c);
}

/* Writes; what does not fit stays. -1: the connection is broken. */
static int send_some(struct conn *k, struct iovec *iov, size_t n, size_t *sent)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t got = sendmsg(k->fd, &msg, MSG_NOSIGNAL);

	*sent = got > 0 ? (size_t)got : 0;
	return got >= 0 || errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static int flush_cipher(struct conn *k)
{
	char buf[16384];
	int n;

	while ((n = BIO_read(k->to_net, buf, sizeof buf)) > 0)
		put_bytes(&k->cipher, buf, (size_t)n);
	while (k->cipher_sent < k->cipher.len) {
		struct iovec iov = { k->cipher.data + k->cipher_sent, k->cipher.len - k->cipher_sent };
		size_t sent;
		if (send_some(k, &iov, 1, &sent))
			return -1;
		if (!sent)
			return 0;
		k->cipher_sent += sent;
	}
	k->cipher.len = k->cipher_sent = 0;
	return 0;
}

/* The unsent bytes of the link's queue, as far as they go into iov. */
static size_t gather(struct plink *l, struct iovec *iov, size_t room)
{
	size_t n = 0;

	for (struct outframe *f = l->out; f && n + 2 <= room; f = f->next) {
		if (f->done < f->head_len)
			iov[n++] = (struct iovec){ f->head + f->done, f->head_len - f->done };
		size_t skip = f->done > f->head_len ? f->done - f->head_len : 0;
		if (f->body && f->body->len > skip)
			iov[n++] = (struct iovec){ (void *)(f->body->data + skip), f->body->len - skip };
	}
	return n;
}

static int flush_plain(struct conn *k)
{
	struct iovec iov[64];
	size_t n, sent, want;

	do {
		n = gather(k->l, iov, 64);
		want = 0;
		for (size_t i = 0; i < n; i++)
			want += iov[i].iov_len;
		if (n && send_some(k, iov, n, &sent))
			return -1;
		if (n)
			phnx_link_taken(k->l, sent);
	} while (n && sent == want);
	return 0;
}

static int flush_tls(struct conn *k)
{
	enum { HELD_BACK = 256 << 10 };	/* encrypt no more than this ahead of the socket */
	struct iovec iov[2];

	if (flush_cipher(k))
		return -1;
	while (k->l->out && k->cipher.len - k->cipher_sent < HELD_BACK) {
		gather(k->l, iov, 2);
		int n = SSL_write(k->ssl, iov[0].iov_base, iov[0].iov_len > 65536 ? 65536 : (int)iov[0].iov_len);
		if (n <= 0)
			return -1;
		phnx_link_taken(k->l, (size_t)n);
		if (flush_cipher(k))
			return -1;
	}
	return 0;
}

static void conn_flush(struct conn *k)
{
	k->dirty = false;
	if (k->state != OPEN || !k->l)
		return;
	if (k->ssl ? flush_tls(k) : flush_plain(k)) {
		conn_lost(k);
		return;
	}
	bool blocked = k->l->out || k->cipher.len;
	if (blocked && !k->blocked)
		event_add(k->writable, NULL);
	else if (!blocked && k->blocked)
		event_del(k->writable);
	k->blocked = blocked;
}

/* false: k is gone */
static bool conn_open(struct conn *k)
{
	unsigned char binding[32] = { 0 };

	if (!k->ssl || SSL_export_keying_material(k->ssl, binding, sizeof binding, "EXPORTER-phnx", 13, NULL, 0, 0) == 1) {
		k->state = OPEN;
		k->l = phnx_link_open(k->net->ph, k, k->contact, binding);
	}
	if (k->l)
		return true;
	conn_lost(k);
	return false;
}

/* ---- TLS ---- */

static void tls_key(struct net *net, unsigned char key[32])
{
	unsigned n = 32;

	HMAC(EVP_sha256(), net->ph->secret, SECRET_BYTES, (const unsigned char *)"phnx tls psk", 12, key, &n);
}

static SSL_SESSION *tls_session(SSL *ssl)
{
	static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
	struct net *net = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	SSL_SESSION *s = SSL_SESSION_new();
	unsigned char key[32];

	tls_key(net, key);
	if (s && SSL_SESSION_set1_master_key(s, key, sizeof key) &&
	    SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) &&
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

static int psk_offer(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **session)
{
	(void)md;
	*session = tls_session(ssl);
	*id = (const unsigned char *)"phnx";
	*id_len = 4;
	return *session != NULL;
}

static int psk_find(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	*session = id_len == 4 && !memcmp(id, "phnx", 4) ? tls_session(ssl) : NULL;
	return 1;
}

static int load_certificate(struct net *net, SSL_CTX *ctx, const struct phnx_contact *at)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, at->cert) == 1 &&
	    SSL_CTX_use_PrivateKey_file(ctx, at->key, SSL_FILETYPE_PEM) == 1)
		return 0;
	phnx_report(net->ph, PH_ECONFIG, "cannot use certificate %s with key %s", at->cert, at->key);
	return -1;
}

/* Who is who is proved by the session's secret, bound to this TLS channel (link.c); certificates are not chained to any
 * authority, but carry the key exchange where the files are asked for. */
static SSL_CTX *tls_context(struct net *net, bool server)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	if (!ctx)
		return NULL;
	SSL_CTX_set_app_data(ctx, net);
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	if (server)
		SSL_CTX_set_psk_find_session_callback(ctx, psk_find);
	for (struct contact *c = net->ph->contacts; server && c; c = c->next)
		if (c->at.cert) {
			load_certificate(net, ctx, &c->at);
			break;
		}
	return ctx;
}

static int tls_start(struct conn *k, bool server)
{
	struct net *net = k->net;
	SSL_CTX **ctx = server ? &net->server : &net->client;

	if (!*ctx)
		*ctx = tls_context(net, server);
	k->ssl = *ctx ? SSL_new(*ctx) : NULL;
	k->from_net = BIO_new(BIO_s_mem());
	k->to_net = BIO_new(BIO_s_mem());
	if (!k->ssl || !k->from_net || !k->to_net)
		return -1;
	BIO_set_mem_eof_return(k->from_net, -1);
	SSL_set_bio(k->ssl, k->from_net, k->to_net);
	if (server) {
		SSL_set_accept_state(k->ssl);
	} else {
		SSL_set_connect_state(k->ssl);
		if (!k->contact->at.cert)
			SSL_set_psk_use_session_callback(k->ssl, psk_offer);
		else if (SSL_use_certificate_chain_file(k->ssl, k->contact->at.cert) != 1 ||
			 SSL_use_PrivateKey_file(k->ssl, k->contact->at.key, SSL_FILETYPE_PEM) != 1)
			return -1;
	}
	k->state = SECURING;
	return 0;
}

/* Goes on with the handshake. false: k is gone. */
static bool tls_advance(struct conn *k)
{
	int n = SSL_do_handshake(k->ssl), error = SSL_get_error(k->ssl, n);
	int broken = flush_cipher(k);

	if (!broken && n == 1)
		return conn_open(k);
	if (!broken && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE))
		return true;
	phnx_report(k->net->ph, PH_EREFUSED, "TLS: %s", ERR_reason_error_string(ERR_peek_error())
		    ? ERR_reason_error_string(ERR_peek_error()) : "handshake failed");
	ERR_clear_error();
	conn_lost(k);
	return false;
}

/* ---- receiving ---- */

enum { READ_BUDGET = 1 << 20 };	/* bytes of one connection before others have their turn */

/* 0: nothing more now, -1: k is freed */
static int read_plain(struct conn *k)
{
	for (size_t total = 0; total < READ_BUDGET;) {
		size_t room;
		unsigned char *to = phnx_link_space(k->l, &room);
		ssize_t n = to ? recv(k->fd, to, room, 0) : 0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			conn_lost(k);
			return -1;
		}
		total += (size_t)n;
		if (phnx_link_input(k->l, (size_t)n))
			return -1;	/* op_close() did the rest */
		if ((size_t)n < room)
			return 0;
	}
	return 0;
}

static int decrypt(struct conn *k)
{
	for (;;) {
		size_t room;
		unsigned char *to = phnx_link_space(k->l, &room);
		int n = to ? SSL_read(k->ssl, to, room > 65536 ? 65536 : (int)room) : 0;
		if (n <= 0 && SSL_get_error(k->ssl, n) == SSL_ERROR_WANT_READ)
			return 0;
		if (n <= 0) {
			ERR_clear_error();
			conn_lost(k);
			return -1;
		}
		if (phnx_link_input(k->l, (size_t)n))
			return -1;
	}
}

static void read_tls(struct conn *k)
{
	unsigned char buf[16384];

	for (size_t total = 0; total < READ_BUDGET;) {
		ssize_t n = recv(k->fd, buf, sizeof buf, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			conn_lost(k);
			return;
		}
		total += (size_t)n;
		BIO_write(k->from_net, buf, (int)n);
		if (k->state == SECURING && !tls_advance(k))
			return;
		if (k->state == OPEN && decrypt(k))
			return;
	}
}

static void peek(struct conn *k)
{
	unsigned char first;
	ssize_t n = recv(k->fd, &first, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		conn_lost(k);
	else if (first != 0x16)
		conn_open(k);
	else if (tls_start(k, true))
		conn_lost(k);
}

static void drain(struct conn *k)
{
	char buf[4096];
	ssize_t n = recv(k->fd, buf, sizeof buf, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_free(k);
}

static int watch(struct conn *k)
{
	struct event_base *base = k->net->base;
	int on = 1;

	evutil_make_socket_nonblocking(k->fd);
	setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);	/* not a TCP socket? then never mind */
	k->readable = event_new(base, k->fd, EV_READ | EV_PERSIST, on_event, k);
	k->writable = event_new(base, k->fd, EV_WRITE | EV_PERSIST, on_event, k);
	return k->readable && k->writable ? event_add(k->readable, NULL) : -1;
}

/* ---- dialing ---- */

static void connected(struct conn *k)
{
	int error = 0;
	socklen_t len = sizeof error;

	event_del(k->writable);
	if (getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &error, &len) || error) {
		conn_lost(k);
		return;
	}
	if (k->contact->at.protocol == PHNX_TLS) {
		if (tls_start(k, false))
			conn_lost(k);
		else
			tls_advance(k);
	} else {
		conn_open(k);
	}
}

static void connect_to(struct conn *k, const struct sockaddr *address, socklen_t len)
{
	k->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	k->state = CONNECTING;
	if (k->fd < 0 || watch(k) || (connect(k->fd, address, len) && errno != EINPROGRESS)) {
		conn_lost(k);
		return;
	}
	event_add(k->writable, NULL);
}

static void resolved(struct conn *k)
{
	if (k->lookup_error || !k->found) {
		if (k->contact && k->contact->backoff_us <= RETRY_MIN)
			phnx_report(k->net->ph, PH_EHOST, "unknown host %s", k->contact->at.host);
		conn_lost(k);
	} else {
		connect_to(k, k->found->ai_addr, (socklen_t)k->found->ai_addrlen);
	}
}

static void dial_tcp(struct net *net, struct conn *k, const struct phnx_contact *at)
{
	const char *host = strcmp(at->host, "localhost") ? at->host : "127.0.0.1";
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)at->port) };
	struct evutil_addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	char port[8];

	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		connect_to(k, (struct sockaddr *)&in, sizeof in);
		return;
	}
	if (!net->dns)
		net->dns = evdns_base_new(net->base, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	snprintf(port, sizeof port, "%d", at->port);
	if (!net->dns) {
		conn_lost(k);
		return;
	}
	struct evdns_getaddrinfo_request *lookup = evdns_getaddrinfo(net->dns, host, port, &hints, on_resolved, k);
	pthread_mutex_lock(&net->ready_lock);
	if (!(k->ready & READY_RESOLVED))	/* else it was known at once */
		k->lookup = lookup;
	pthread_mutex_unlock(&net->ready_lock);
}

/* ssh -W carries one TCP connection over its standard input and output. */
static void dial_ssh(struct conn *k, const struct phnx_contact *at)
{
	const char *program = getenv("PHNX_SSH") ? getenv("PHNX_SSH") : "ssh";
	char target[32], login[2 * MAX_HOST];
	posix_spawn_file_actions_t actions;
	int pair[2];

	snprintf(target, sizeof target, "127.0.0.1:%d", at->port);
	snprintf(login, sizeof login, "%s%s%s", at->user ? at->user : "", at->user ? "@" : "", at->host);
	char *argv[] = { (char *)program, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-W", target, "--", login, NULL };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		conn_lost(k);
		return;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
	int error = posix_spawnp(&k->ssh, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	k->fd = pair[0];
	if (error) {
		k->ssh = 0;
		phnx_report(k->net->ph, PH_ESYSTEM, "cannot run %s: %s", program, strerror(error));
	}
	if (error || watch(k))
		conn_lost(k);
	else
		conn_open(k);
}

static void op_dial(void *ctx, struct contact *c)
{
	struct net *net = ctx;
	struct conn *k = conn_new(net, -1, c, RESOLVING);

	if (!k)
		phnx_dial_failed(net->ph, c);
	else if (c->at.protocol == PHNX_SSH)
		dial_ssh(k, &c->at);
	else
		dial_tcp(net, k, &c->at);
}

static void op_undial(void *ctx, struct contact *c)
{
	struct net *net = ctx;

	c->transport = NULL;
	for (struct conn *k = net->conns, *next; k; k = next) {
		next = k->next;
		if (k->contact != c)
			continue;
		k->contact = NULL;
		if (!k->l)
			conn_free(k);
	}
}

/* The node closes a link: what is queued goes out first if the socket takes it at once, then our side is shut. */
static void op_close(void *ctx, struct plink *l)
{
	struct conn *k = l->transport;

	(void)ctx;
	(void)(k->ssl ? flush_tls(k) : flush_plain(k));		/* if it fails, nobody is there to be told */
	k->l = NULL;
	if (k->contact && k->contact->transport == k)
		k->contact->transport = NULL;
	k->contact = NULL;
	k->state = DRAINING;
	k->since_us = op_now(NULL);
	if (k->blocked)
		event_del(k->writable);
	k->blocked = false;
	shutdown(k->fd, SHUT_WR);
}

static const struct phnx_ops ops = { op_now, op_random, op_dial, op_undial, op_kick, op_close, op_report, op_arrived };

/* ---- listening ---- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;	/* it only ends the wait: net_settle() looks at the clock */
}

static void on_knock(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	atomic_store(&((struct net *)arg)->knock, true);
}

static void accept_all(struct net *net)
{
	unsigned strangers = 0;
	int fd;

	for (struct conn *k = net->conns; k; k = k->next)
		strangers += !k->l;
	while (net->listen_fd >= 0 && (fd = accept4(net->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *k = strangers++ < MAX_LINKS / 4 ? conn_new(net, fd, NULL, PEEKING) : NULL;
		if (!k)
			close(fd);
		else if (watch(k))
			conn_free(k);
	}
}

/* The addresses under which others may find this node. */
static void announce(struct net *net, int port, bool anywhere)
{
	struct payload *me = &net->ph->me;
	struct ifaddrs *all = NULL;

	me->n_addrs = 0;
	if (anywhere)
		getifaddrs(&all);
	for (struct ifaddrs *i = all; i && me->n_addrs < MAX_ADDRS; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || i->ifa_flags & IFF_LOOPBACK)
			continue;
		struct address *a = me->addrs + me->n_addrs++;
		inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, a->host, sizeof a->host);
		a->port = port;
	}
	if (all)
		freeifaddrs(all);
	if (me->n_addrs == 0) {
		strcpy(me->addrs[0].host, "127.0.0.1");
		me->addrs[0].port = port;
		me->n_addrs = 1;
	}
	route_self_changed(net->ph);
}

int net_listen(struct net *net, const int *ports, size_t n, bool anywhere)
{
	if (net->listen_fd >= 0)
		return PH_EINVAL;
	for (size_t i = 0; i < n; i++) {
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)ports[i]) };
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

		if (fd < 0)
			return PH_ESYSTEM;
		in.sin_addr.s_addr = htonl(anywhere ? INADDR_ANY : INADDR_LOOPBACK);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (bind(fd, (struct sockaddr *)&in, sizeof in) || listen(fd, 128)) {
			close(fd);
			continue;
		}
		net->listen_fd = fd;
		net->listener = event_new(net->base, fd, EV_READ | EV_PERSIST, on_knock, net);
		if (!net->listener || event_add(net->listener, NULL))
			return PH_ENOMEM;
		announce(net, ports[i], anywhere);
		return 0;
	}
	return PH_EPORT;
}

/* ---- the loop ---- */

static void arm(struct net *net, uint64_t at, uint64_t now)
{
	uint64_t wait = at > now ? at - now : 0;
	struct timeval t = { (time_t)(wait / 1000000), (suseconds_t)(wait % 1000000) };

	net->due = at;
	event_add(net->timer, &t);
}

static void sweep(struct net *net, uint64_t now)
{
	for (struct conn *k = net->conns, *next; k; k = next) {
		next = k->next;
		uint64_t limit = k->state == DRAINING ? RETRY_MAX : HANDSHAKE_TIMEOUT;
		if (k->l || now < k->since_us + limit)
			continue;
		if (k->state == DRAINING)
			conn_free(k);
		else
			conn_lost(k);
		next = net->conns;
	}
}

static void flush_dirty(struct net *net)
{
	for (int rounds = 0; net->dirty && rounds < 8; rounds++) {
		net->dirty = false;
		for (struct conn *k = net->conns, *next; k; k = next) {
			next = k->next;
			if (k->dirty)
				conn_flush(k);
		}
	}
}

static void handle_ready(struct conn *k, unsigned what)
{
	if (what & READY_WRITE && k->state == OPEN)
		k->dirty = k->net->dirty = true;	/* flush_dirty() follows */
	if (what & READY_RESOLVED)
		resolved(k);
	else if (k->state == CONNECTING && what & READY_WRITE)
		connected(k);
	else if (k->state == PEEKING)
		peek(k);
	else if (k->state == DRAINING)
		drain(k);
	else if (what & READY_READ && (k->state == SECURING || (k->state == OPEN && k->ssl)))
		read_tls(k);
	else if (what & READY_READ && k->state == OPEN)
		read_plain(k);
}

void net_settle(struct net *net)
{
	struct conn *k;
	unsigned what;

	if (atomic_exchange(&net->knock, false))
		accept_all(net);
	while ((k = pop_ready(net, &what)))
		handle_ready(k, what);
	uint64_t now = op_now(NULL);
	if (now >= net->due)
		sweep(net, now);
	uint64_t due = phnx_poll(net->ph);
	if (due < net->due || now >= net->due)
		arm(net, due, now);
	flush_dirty(net);
}

void net_loop(struct net *net, uint64_t timeout_us)
{
	struct timeval t = { (time_t)(timeout_us / 1000000), (suseconds_t)(timeout_us % 1000000) };

	if (timeout_us != UINT64_MAX)
		event_add(net->wake, &t);
	event_base_loop(net->base, EVLOOP_ONCE);
}

void net_wake(struct net *net)
{
	event_base_loopbreak(net->base);
}

void net_shutdown(struct net *net)
{
	if (net->listener)
		event_del(net->listener);
	flush_dirty(net);
	while (net->ph->links)
		link_close(net->ph->links, 0, NULL);
}

bool net_closed(struct net *net)
{
	for (struct conn *k = net->conns; k; k = k->next)
		if (k->state == DRAINING)
			return false;
	return true;
}

struct phnx *net_phnx(struct net *net)
{
	return net->ph;
}

struct net *net_new(const struct net_owner *owner, ph_vp_t lower, ph_vp_t upper)
{
	struct net *net = calloc(1, sizeof *net);

	if (!net)
		return NULL;
	evthread_use_pthreads();
	net->owner = owner;
	net->listen_fd = -1;
	net->base = event_base_new();
	net->timer = net->base ? event_new(net->base, -1, 0, on_timer, net) : NULL;
	net->wake = net->base ? event_new(net->base, -1, 0, on_timer, net) : NULL;
	pthread_mutex_init(&net->ready_lock, NULL);
	net->ph = net->timer && net->wake ? phnx_new(&ops, net, lower, upper) : NULL;
	if (!net->ph) {
		net_free(net);
		return NULL;
	}
	return net;
}

void net_free(struct net *net)
{
	if (net->ph)
		phnx_free(net->ph);
	while (net->conns)
		conn_free(net->conns);
	if (net->dns)
		evdns_base_free(net->dns, 0);
	if (net->listener)
		event_free(net->listener);
	if (net->listen_fd >= 0)
		close(net->listen_fd);
	if (net->timer)
		event_free(net->timer);
	if (net->wake)
		event_free(net->wake);
	if (net->base)
		event_base_free(net->base);
	SSL_CTX_free(net->server);
	SSL_CTX_free(net->client);
	free(net);
}
