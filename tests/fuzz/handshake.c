/* handshake.c - fuzzes what strangers and members send to the daemon of `vmp peer` before it knows
 * who they are: the handshakes of tunnels and of those who join, their first frames, and
 * invitations; and what a computer that joins hears from whoever answers there.
 *
 * The first byte chooses enum place, the second whose key the other side has.  The other side makes
 * a real TLS handshake; the operations (enum op) carry its bytes, damage them, cut them, or add
 * others.
 *
 * Whatever comes, a tunnel opens only to a good member, under that member's nickname; a frame is
 * heard only from an open tunnel; whoever joins has shown a key and sent a whole token; and who
 * joins adopts a network from its inviter alone, whose names are words.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "tests/fuzz/fuzz.h"
#include "vpg/peer/enrol.c"
#include "vpg/peer/identity.c"
#include "vpg/peer/tunnel.c"
/* its names that the files above have, too */
#define PATIENCE_S JOINING_PATIENCE_S
#define learn joining_learn
#define secure joining_secure
#include "vpg/peer/joining.c"
#undef learn
#undef secure

enum place { AS_SERVER, AS_CLIENT, ENROL, INVITATION, JOINING, PLACES };
enum who { MEMBER, REVOKED, UNKNOWN, OWN_NICK, WHOS };
enum op { CARRY, DAMAGE, CUT, RAW, FRAME, RAW_FRAME, TIDY, RESET, OPS };
enum { OWN_NAME = 10, ABOVE = 20, BELOW = 5, MANY = 4096 };

static struct daemon d;
static struct identity own, theirs[WHOS];
static struct { const uint8_t *at; size_t left; } w;
static struct {
	enum place place;
	enum who who;
	ph_vp_t instance;
	SSL *ssl;
	BIO *from, *to;
	int fd; /* ENROL */
	unsigned opened, admitted;
} other;
/* JOINING: this side, which joins; `other` is its inviter. */
static struct {
	struct invitation invitation;
	struct network net;
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *from, *to;
} joiner;

static unsigned byte(void)
{
	if (!w.left)
		return 0;
	w.left--;
	return *w.at++;
}

/* The bytes that TLS draws are the same for each input. */
static uint32_t drawn;
static int draw(unsigned char *to, int n)
{
	for (int i = 0; i < n; i++) {
		drawn = drawn * 1664525 + 1013904223;
		to[i] = (unsigned char)(drawn >> 24);
	}
	return 1;
}
static int always(void) { return 1; }
static const RAND_METHOD draws = { NULL, draw, NULL, NULL, draw, always };

/* --- replaces the overlay, hear.c, network.c --- */

ph_vp_t ph_get_resource_name(void) { return OWN_NAME; }

int ph_sendx(ph_vp_t to, const void *data, size_t n, int tag, int flags)
{
	(void)flags;
	FUZZ_CHECK(to == other.instance);
	if (tag == TUNNEL_TAG)
		FUZZ_CHECK(BIO_write(other.from, data, (int)n) == (int)n);
	return 0;
}

int ph_send_sealed(ph_vp_t to, const void *data, size_t n, int tag, void (*release)(void *arg),
		   void *arg)
{
	int error = ph_sendx(to, data, n, tag, 0);

	release(arg);
	return error;
}

void hear_open(struct tunnel *t)
{
	struct vpg_HELLO hello = { VPG_VERSION, d.net.settings.nick };

	other.opened++;
	FUZZ_CHECK(t->open && other.who == MEMBER && !strcmp(t->nick, "friend") &&
		   !memcmp(t->key, theirs[MEMBER].public, KEY_BYTES));
	tunnel_send(t, VPG_HELLO, &hello);
}

void hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m)
{
	FUZZ_CHECK(t->open && !t->dead && other.opened && message_name(type) && m);
	if (type == VPG_END) /* a frame may end its own tunnel */
		tunnel_close(t, "the input says so");
}

void hear_closed(struct tunnel *t, const char *why) { FUZZ_CHECK(t->dead && why); }
void hear_announce(struct daemon *daemon, const struct member *m)
{
	FUZZ_CHECK(daemon == &d && m);
}

bool network_invites(const struct network *n, uint64_t now) { return n && now; }

int network_secret(const struct network *n, char secret[SECRET_TEXT], struct why *why)
{
	(void)n, (void)why;
	snprintf(secret, SECRET_TEXT, "secret");
	return 0;
}

int network_admit(struct network *n, const unsigned char token[TOKEN_BYTES], const struct member *m,
		  uint64_t now, struct why *why)
{
	(void)now;
	FUZZ_CHECK(!memcmp(m->key, theirs[other.who].public, KEY_BYTES) && nick_is_valid(m->nick));
	if (token[0] != 'T')
		return why_set(why, "the invitation is not known here");
	other.admitted++;
	return members_learn(&n->members, m) < 0 ? why_set(why, "too many members") : 0;
}

int network_adopt(struct network *n, const char *nick, const char *session, const char *secret,
		  struct why *why)
{
	(void)why;
	FUZZ_CHECK(n == &joiner.net && !strcmp(nick, "new") && other.who == MEMBER);
	FUZZ_CHECK(*session && strlen(session) < SESSION_BYTES && *secret &&
		   strlen(secret) < SECRET_TEXT);
	for (const char *text = session; *text; text++)
		FUZZ_CHECK(isalnum((unsigned char)*text) || *text == '-');
	for (const char *text = secret; *text; text++)
		FUZZ_CHECK(isxdigit((unsigned char)*text));
	return 0;
}

/* not called: their callers are not */
int network_read(struct network *n, struct why *why) { (void)n, (void)why; return -ENOENT; }
void network_close(struct network *n) { (void)n; }
int network_add_contact(const char *folder, const char *host, unsigned port, const char *user,
			bool ssh, struct why *why)
{
	(void)folder, (void)host, (void)port, (void)user, (void)ssh, (void)why;
	return 0;
}

/* --- both sides --- */

/* The same as serving.c's. */
static int judge(void *arg, const unsigned char key[KEY_BYTES])
{
	(void)arg;
	switch (members_state(&d.net.members, key)) {
	case MEMBER_GOOD: return 0;
	case MEMBER_REVOKED: return X509_V_ERR_CERT_REVOKED;
	case MEMBER_NICK_TAKEN: return X509_V_ERR_CERT_REJECTED;
	default: return X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT;
	}
}

static void make_identity(struct identity *id, unsigned char seed)
{
	unsigned char raw[KEY_BYTES];
	size_t n = KEY_BYTES;

	memset(raw, seed, sizeof raw);
	id->key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw, sizeof raw);
	id->cert = id->key ? make_cert(id->key) : NULL;
	FUZZ_CHECK(id->cert && EVP_PKEY_get_raw_public_key(id->key, id->public, &n) == 1);
}

static void learn(const struct identity *id, const char *nick, uint64_t since, uint64_t revoked)
{
	struct member m = { .since = since, .revoked = revoked };

	memcpy(m.key, id->public, KEY_BYTES);
	snprintf(m.nick, sizeof m.nick, "%s", nick);
	FUZZ_CHECK(members_learn(&d.net.members, &m) == 1);
}

static SSL_CTX *their_ctx[WHOS];

static void prepare(void)
{
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	log_open("fuzz", nowhere, LOG_ERROR);
	FUZZ_CHECK(RAND_set_rand_method(&draws));
	signal(SIGPIPE, SIG_IGN); /* as the daemon */
	make_identity(&own, 1);
	for (unsigned i = 0; i < WHOS; i++) {
		make_identity(&theirs[i], (unsigned char)(i + 2));
		their_ctx[i] = identity_context(&theirs[i], take_any, NULL);
		FUZZ_CHECK(their_ctx[i]);
	}
	snprintf(d.net.settings.nick, NICK_BYTES, "own");
	d.net.id = own;
	d.ctx = identity_context(&own, judge, NULL);
	d.base = event_base_new();
	FUZZ_CHECK(d.ctx && d.base);
}

static void on_bury(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	tunnels_tidy(arg);
}

static void begin_enrol(void)
{
	const struct sockaddr_in from = { .sin_family = AF_INET };
	struct enrol *e = calloc(1, sizeof *e);
	int pair[2];

	FUZZ_CHECK(e && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	e->d = &d;
	d.enrol = e;
	e->ctx = identity_context(&d.net.id, take_any, NULL);
	FUZZ_CHECK(e->ctx);
	on_guest(NULL, pair[0], (struct sockaddr *)&from, sizeof from, e);
	other.fd = pair[1];
}

static void begin_joining(void)
{
	memcpy(joiner.invitation.key, theirs[MEMBER].public, KEY_BYTES);
	joiner.ctx = identity_context(&own, is_inviter, &joiner.invitation);
	joiner.ssl = joiner.ctx ? SSL_new(joiner.ctx) : NULL;
	joiner.from = BIO_new(BIO_s_mem());
	joiner.to = BIO_new(BIO_s_mem());
	FUZZ_CHECK(joiner.ssl && joiner.from && joiner.to);
	BIO_set_mem_eof_return(joiner.from, -1);
	SSL_set_bio(joiner.ssl, joiner.from, joiner.to);
	SSL_set_connect_state(joiner.ssl);
}

static void give_joiner(const void *bytes, int n)
{
	static unsigned char answer[MANY];
	int more;

	if (n > 0)
		BIO_write(joiner.from, bytes, n);
	if (SSL_is_init_finished(joiner.ssl))
		return;
	if (SSL_do_handshake(joiner.ssl) == 1)
		FUZZ_CHECK(other.who == MEMBER);
	ERR_clear_error();
	while ((more = BIO_read(joiner.to, answer, sizeof answer)) > 0)
		BIO_write(other.from, answer, more);
}

/* All that the inviter says has arrived. */
static void end_joining(void)
{
	const struct join_order order = { .nick = "new" };
	struct why why = { "" };

	if (SSL_is_init_finished(joiner.ssl) &&
	    converse(joiner.ssl, &order, &joiner.invitation, &joiner.net, &why))
		FUZZ_CHECK(*why.line);
	members_free(&joiner.net.members);
	joiner.net.members = (struct members){ 0 };
	SSL_free(joiner.ssl);
	SSL_CTX_free(joiner.ctx);
}

static void begin(void)
{
	other.place = byte() % PLACES;
	other.who = byte() % WHOS;
	other.instance = other.place == AS_CLIENT ? ABOVE : BELOW;
	other.opened = other.admitted = 0;
	other.fd = -1;
	drawn = 1;
	learn(&own, "own", 1, 0);
	learn(&theirs[MEMBER], "friend", 1, 0);
	learn(&theirs[REVOKED], "former", 1, 2);
	learn(&theirs[OWN_NICK], "own", 2, 0);
	d.bury = event_new(d.base, -1, 0, on_bury, &d);
	other.ssl = SSL_new(their_ctx[other.who]);
	other.from = BIO_new(BIO_s_mem());
	other.to = BIO_new(BIO_s_mem());
	FUZZ_CHECK(d.bury && other.ssl && other.from && other.to);
	BIO_set_mem_eof_return(other.from, -1);
	SSL_set_bio(other.ssl, other.from, other.to);
	if (other.place == AS_CLIENT || other.place == JOINING)
		SSL_set_accept_state(other.ssl);
	else
		SSL_set_connect_state(other.ssl);
	if (other.place == AS_CLIENT)
		tunnel_meet(&d, other.instance);
	if (other.place == ENROL)
		begin_enrol();
	if (other.place == JOINING)
		begin_joining();
}

static void end(void)
{
	FUZZ_CHECK(other.place == ENROL || !other.admitted);
	FUZZ_CHECK(other.place < ENROL || !other.opened);
	if (other.place == JOINING)
		end_joining();
	if (other.fd >= 0)
		close(other.fd);
	event_base_loop(d.base, EVLOOP_NONBLOCK);
	enrol_stop(&d);
	tunnels_free(&d);
	event_free(d.bury);
	members_free(&d.net.members);
	d.net.members = (struct members){ 0 };
	SSL_free(other.ssl);
	ERR_clear_error();
}

/* --- operations --- */

static void give(const void *bytes, int n)
{
	if (other.place == JOINING)
		give_joiner(bytes, n);
	if (n <= 0 || other.place == JOINING)
		return;
	if (other.place == ENROL)
		(void)!send(other.fd, bytes, (size_t)n, MSG_NOSIGNAL);
	else
		tunnel_arrived(&d, other.instance, bytes, (size_t)n);
	event_base_loop(d.base, EVLOOP_NONBLOCK);
}

/* The other side reads what has arrived there, and answers. */
static void advance_other(void)
{
	static unsigned char bytes[MANY];
	ssize_t n;

	while (other.fd >= 0 && (n = recv(other.fd, bytes, sizeof bytes, 0)) > 0)
		BIO_write(other.from, bytes, (int)n);
	ERR_clear_error();
	if (SSL_do_handshake(other.ssl) == 1)
		while (SSL_read(other.ssl, bytes, sizeof bytes) > 0)
			;
	ERR_clear_error();
}

static void carry(enum op how)
{
	static unsigned char bytes[MANY];
	int n;

	advance_other();
	n = BIO_read(other.to, bytes, sizeof bytes);
	if (how == DAMAGE && n > 0) {
		unsigned at = (byte() | byte() << 8) % (unsigned)n;

		bytes[at] ^= (unsigned char)(byte() | 1);
	}
	if (how == CUT && n > 0)
		n = (int)(byte() | byte() << 8) % n;
	give(bytes, n);
	advance_other();
}

/* Bytes of the input. */
static int take(unsigned char *to, unsigned most)
{
	unsigned n = byte() % most;

	for (unsigned i = 0; i < n; i++)
		to[i] = (unsigned char)byte();
	return (int)n;
}

static void raw(void)
{
	unsigned char bytes[128];

	give(bytes, take(bytes, sizeof bytes));
}

/* A frame, or anything, through TLS. */
static void frame(bool whole)
{
	static unsigned char bytes[VPG_FRAME_MAX];
	unsigned char token[TOKEN_BYTES] = "T";
	struct vpg_JOIN join = { { token, sizeof token - byte() % 2 }, byte() % 3 ? "new" : "" };
	size_t n;

	if (!SSL_is_init_finished(other.ssl))
		return;
	n = whole ? message_put(VPG_JOIN, &join, bytes, sizeof bytes)
		  : (size_t)take(bytes, sizeof token * 8);
	if (n)
		SSL_write(other.ssl, bytes, (int)n);
	carry(CARRY);
}

/* A frame as an inviter sends it, through TLS. */
static void answer(void)
{
	static unsigned char bytes[VPG_FRAME_MAX];
	static char text[2][256];
	struct vpg_WELCOME welcome = { text[0], text[1] };
	struct vpg_MEMBER member = { text[0], text[1], byte(), byte() };
	struct vpg_DONE done = { byte() % 2, text[0] };
	size_t n;

	if (!SSL_is_init_finished(other.ssl))
		return;
	for (int i = 0; i < 2; i++)
		text[i][take((unsigned char *)text[i], sizeof text[i] - 1)] = 0;
	switch (byte() % 4) {
	case 0: n = message_put(VPG_WELCOME, &welcome, bytes, sizeof bytes); break;
	case 1: n = message_put(VPG_MEMBER, &member, bytes, sizeof bytes); break;
	case 2: n = message_put(VPG_DONE, &done, bytes, sizeof bytes); break;
	default: n = (size_t)take(bytes, 255);
	}
	if (n)
		SSL_write(other.ssl, bytes, (int)n);
	carry(CARRY);
}

static void invitation(void)
{
	char text[INVITATION_TEXT + 8], again[INVITATION_TEXT];
	struct invitation i;
	size_t n = w.left < sizeof text - 1 ? w.left : sizeof text - 1;

	memcpy(text, w.at, n);
	text[n] = 0;
	w.left = 0;
	if (invitation_read(&i, text))
		return;
	FUZZ_CHECK(i.n_hosts <= INVITATION_ADDRESSES);
	for (unsigned h = 0; h < i.n_hosts; h++)
		FUZZ_CHECK(memchr(i.hosts[h], 0, INVITATION_HOST));
	FUZZ_CHECK(!invitation_print(&i, again));
}

static void operate(void)
{
	unsigned what = byte();

	switch ((enum op)(what % OPS)) {
	case CARRY:
	case DAMAGE:
	case CUT: carry(what % OPS); return;
	case RAW: raw(); return;
	case FRAME:
	case RAW_FRAME:
		if (other.place == JOINING)
			answer();
		else
			frame(what % OPS == FRAME);
		return;
	case TIDY: event_base_loop(d.base, EVLOOP_NONBLOCK); return;
	case RESET:
		if (other.place == JOINING)
			return;
		if (what & 0x80)
			tunnel_gone(&d, other.instance);
		else
			tunnel_reset(&d, other.instance);
		return;
	case OPS: return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!d.base)
		prepare();
	w.at = data;
	w.left = size;
	begin();
	while (w.left)
		if (other.place == INVITATION)
			invitation();
		else
			operate();
	end();
	return 0;
}
