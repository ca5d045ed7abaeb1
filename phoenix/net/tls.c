/* tls.c - TLS 1.3 over memory BIOs, so that conn_write() alone writes to sockets and no SIGPIPE
 * is raised.
 *
 * A message that its sender has encrypted and signed (ph_send_sealed()) is not encrypted again: its
 * bytes go between two TLS records as they are.  A BARE in the record before, and the frame's own
 * length, say how many.  So whoever can change what goes over the wire can change these bytes,
 * which their receiver notices, and nothing else.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <sys/socket.h>
#include "phoenix/net/net_private.h"

enum {
	RECORD = 16384,			/* most plain bytes of a TLS record */
	RECORD_HEAD = 5,
	RECORD_MOST = RECORD_HEAD + RECORD + 256,	/* with what encryption adds */
};

/* ---- the handshake ---- */

static void tls_key(struct net *net, unsigned char key[32])
{
	unsigned n = 32;

	HMAC(EVP_sha256(), net->ph->secret, SECRET_BYTES, (const unsigned char *)"phnx tls psk", 12,
	     key, &n);
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

static int psk_offer(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
		     SSL_SESSION **session)
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

static int load_files(struct conn *k, const struct phnx_contact *at)
{
	if (SSL_use_certificate_chain_file(k->ssl, at->cert) == 1 &&
	    SSL_use_PrivateKey_file(k->ssl, at->key, SSL_FILETYPE_PEM) == 1)
		return 0;
	ERR_clear_error();
	core_report(k->net->ph, PH_ECONFIG, "cannot use certificate %s with key %s", at->cert,
		    at->key);
	return -1;
}

/* Returns the contact point whose certificate and key this side uses: the one that it dials; for
 * a peer that dials it, any that has files.  NULL: none. */
static const struct phnx_contact *with_files(const struct conn *k)
{
	if (!k->contact)
		return contact_with_files(k->net->ph);
	return contact_at(k->contact)->cert ? contact_at(k->contact) : NULL;
}

/* The session's secret, bound to this TLS channel, proves who the peer is (handshake.c).
 * Certificates are not verified; they only carry the key exchange where the configuration names
 * files. */
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
	return ctx;
}

int tls_start(struct conn *k, bool server)
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
	const struct phnx_contact *files = with_files(k);
	if (files && load_files(k, files) && !server)
		/* a listener also has the secret's key, for peers that ask for that */
		return -1;
	if (server) {
		SSL_set_accept_state(k->ssl);
	} else {
		SSL_set_connect_state(k->ssl);
		if (!files)
			SSL_set_psk_use_session_callback(k->ssl, psk_offer);
	}
	k->state = SECURING;
	return 0;
}

/* Writes what OpenSSL has encrypted as far as the socket takes it; the rest is kept. */
static int flush_cipher(struct conn *k)
{
	char buf[16384];
	int n;

	while ((n = BIO_read(k->to_net, buf, sizeof buf)) > 0)
		put_bytes(&k->cipher, buf, (size_t)n);
	while (k->cipher_sent < k->cipher.len) {
		struct iovec iov = { k->cipher.data + k->cipher_sent,
				     k->cipher.len - k->cipher_sent };
		size_t sent;
		if (conn_write(k, &iov, 1, &sent))
			return -1;
		if (!sent)
			return 0;
		k->cipher_sent += sent;
	}
	k->cipher.len = k->cipher_sent = 0;
	return 0;
}

/* Reports a failed handshake.  If the secrets differ, OpenSSL tells the client only that a
 * parameter was illegal; this says what that means. */
static void report_failure(struct conn *k)
{
	struct phnx *ph = k->net->ph;
	unsigned long error = ERR_peek_error();
	const char *reason = ERR_reason_error_string(error);
	char from[64], where[WHERE_ROOM];
	int number = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;

	conn_origin(k, from, sizeof from);
	contact_where(k->contact, from, where);
	if (number == SSL_R_BINDER_DOES_NOT_VERIFY || number == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER)
		core_report(ph, PH_EREFUSED,
			    "TLS with the peer at %s: the secrets of session '%s' differ", where,
			    ph->session);
	else
		core_report(ph, PH_EREFUSED, "TLS with the peer at %s: %s", where,
			    reason ? reason : "handshake failed");
	ERR_clear_error();
}

bool tls_advance(struct conn *k)
{
	int n = SSL_do_handshake(k->ssl), error = SSL_get_error(k->ssl, n);
	int broken = flush_cipher(k);

	if (!broken && n == 1)
		return conn_open(k);
	if (!broken && (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE))
		return true;
	report_failure(k);
	conn_lost(k);
	return false;
}

/* ---- frames ---- */

/* Returns the next bytes of the queue for one TLS record: small frames copied together, a large
 * one where it is. */
static struct iovec next_record(struct plink *l, unsigned char gathered[RECORD])
{
	struct iovec iov[64];
	size_t n = conn_gather(l, iov, 64), len = 0;

	if (iov[0].iov_len >= RECORD)
		return (struct iovec){ iov[0].iov_base, RECORD };
	for (size_t i = 0; i < n && len < RECORD; i++) {
		size_t part = iov[i].iov_len < RECORD - len ? iov[i].iov_len : RECORD - len;
		memcpy(gathered + len, iov[i].iov_base, part);
		len += part;
	}
	return (struct iovec){ gathered, len };
}

/* Returns the bytes of the next frame that need no encryption, if they are next; none: length 0. */
static struct iovec next_bare(const struct outframe *f)
{
	size_t whole = f->head_len + (f->body ? f->body->len : 0);

	if (!f->bare || f->done < whole - f->bare)
		return (struct iovec){ NULL, 0 };
	return (struct iovec){ (void *)(f->body->data + (f->done - f->head_len)), whole - f->done };
}

int tls_flush(struct conn *k)
{
	enum { HELD_BACK = 256 << 10 };	/* encrypt at most so much ahead of the socket */
	unsigned char gathered[RECORD];
	size_t sent;

	if (flush_cipher(k))
		return -1;
	while (k->l->out && k->cipher.len - k->cipher_sent < HELD_BACK) {
		struct iovec bare = next_bare(k->l->out);
		if (bare.iov_len) {
			if (k->cipher.len)
				return 0;	/* what was encrypted before it goes first */
			if (conn_write(k, &bare, 1, &sent))
				return -1;
			link_taken(k->l, sent);
			if (sent < bare.iov_len)
				return 0;
			continue;
		}
		struct iovec record = next_record(k->l, gathered);
		int n = SSL_write(k->ssl, record.iov_base, (int)record.iov_len);
		if (n <= 0)
			return -1;
		link_taken(k->l, (size_t)n);
		if (flush_cipher(k))
			return -1;
	}
	return 0;
}

/* Returns 0 when everything that arrived is read, -1: k is gone. */
static int decrypt(struct conn *k)
{
	for (;;) {
		size_t room;
		unsigned char *to = link_space(k->l, &room);
		int n = SSL_read(k->ssl, to, room > 65536 ? 65536 : (int)room);
		if (n <= 0 && SSL_get_error(k->ssl, n) == SSL_ERROR_WANT_READ)
			return 0;
		if (n <= 0) {
			ERR_clear_error();
			conn_lost(k);
			return -1;
		}
		if (link_input(k->l, (size_t)n))
			return -1;
	}
}

/* Handles one whole record.  -1: k is gone, or its link. */
static int take_record(struct conn *k, const unsigned char *record, size_t n)
{
	if (BIO_write(k->from_net, record, (int)n) != (int)n) {
		conn_lost(k);
		return -1;
	}
	if (k->state == SECURING && !tls_advance(k))
		return -1;
	return k->state == OPEN ? decrypt(k) : 0;
}

/* Handles what has arrived, as far as it is whole.  Returns how much of it, or -1: k is gone, or
 * its link. */
static ssize_t take_bytes(struct conn *k, const unsigned char *p, size_t n)
{
	size_t at = 0, room;

	for (;;) {
		size_t left = n - at, bare = k->state == OPEN ? link_bare(k->l) : 0, whole;
		if (bare && left) {
			bare = bare < left ? bare : left;
			memcpy(link_space(k->l, &room), p + at, bare);
			at += bare;
			if (link_input(k->l, bare))
				return -1;
			continue;
		}
		if (left < RECORD_HEAD)
			return (ssize_t)at;
		whole = RECORD_HEAD + ((size_t)p[at + 3] << 8 | p[at + 4]);
		if (whole > RECORD_MOST) {
			conn_lost(k);
			return -1;
		}
		if (left < whole)
			return (ssize_t)at;
		at += whole;
		if (take_record(k, p + at - whole, whole))
			return -1;
	}
}

/* Reads into buf, behind the beginning of a record; or, if what comes next is not encrypted, where
 * it belongs.  Returns what recv() does; *room: how much it could have been. */
static ssize_t read_some(struct conn *k, unsigned char *buf, size_t *room, bool *bare)
{
	unsigned char *to = buf + k->record.len;

	*bare = k->state == OPEN && link_bare(k->l);
	*room = 2 * RECORD_MOST - k->record.len;
	if (*bare)
		to = link_space(k->l, room);
	return recv(k->fd, to, *room, 0);
}

/* Returns -1: k is gone, or its link. */
static int take_buffer(struct conn *k, unsigned char *buf, size_t n)
{
	size_t all = k->record.len + n;
	ssize_t used;

	if (k->record.len)
		memcpy(buf, k->record.data, k->record.len);
	k->record.len = 0;
	used = take_bytes(k, buf, all);
	if (used < 0)
		return -1;
	put_bytes(&k->record, buf + used, all - (size_t)used);
	if (!k->record.bad)
		return 0;
	conn_lost(k);
	return -1;
}

void tls_read(struct conn *k)
{
	unsigned char buf[2 * RECORD_MOST];
	bool bare;

	for (size_t total = 0, room; total < READ_BUDGET;) {
		ssize_t n = read_some(k, buf, &room, &bare);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		conn_stirs(k);
		if (n <= 0) {
			conn_lost(k);
			return;
		}
		total += (size_t)n;
		if (bare ? link_input(k->l, (size_t)n) : take_buffer(k, buf, (size_t)n))
			return;
		if (!k->net->lodger && (size_t)n < room)
			return;		/* as in read_plain() */
	}
}
