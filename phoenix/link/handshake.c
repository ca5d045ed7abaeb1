/* handshake.c - the handshake of a link, before any other frame of the peer is believed.
 *
 * Both sides send HELLO at once.  Each answers the other's HELLO with AUTH: an HMAC under the
 * session's secret over both HELLOs (with their nonces), the role of the sender (so that a proof
 * cannot be reflected) and, under TLS, the exported key of the channel.  Until AUTH is verified
 * only a small HELLO, AUTH or REFUSE is accepted.
 *
 * AUTH also carries what its sender announces, in the form of a FRAME_ROUTE, so that a peer that
 * believes the proof need not wait for another packet.  The sender has not seen the peer's proof at
 * that point, so this part is encrypted: only those who have the secret can read it.  The HMAC
 * covers it and is the initial counter of its encryption (a synthetic one, as in RFC 5297).
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include "phoenix/link/link_private.h"
#include "phoenix/link/link_upcalls.h"

void handshake_begin(struct plink *l)
{
	struct link *k = link_of(l);
	struct phnx *ph = l->ph;
	struct writer *w = &k->my_hello;

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
	put_bytes(w, k->nonce, sizeof k->nonce);
	link_send_buffer(l, FRAME_HELLO, w);
}

static bool proof(struct plink *l, bool mine, const struct writer *said, unsigned char mac[32])
{
	struct link *k = link_of(l);
	const struct writer *a = mine ? &k->my_hello : &k->peer_hello,
			    *b = mine ? &k->peer_hello : &k->my_hello;
	unsigned char all[64 + 3 * MAX_HANDSHAKE_FRAME];
	struct writer w = { .data = all, .room = sizeof all };	/* never grows */
	unsigned n = 32;

	put_bytes(&w, "phnx proof", 10);
	put_le(&w, a->len, 2);
	put_bytes(&w, a->data, a->len);
	put_bytes(&w, b->data, b->len);
	put_bytes(&w, k->binding, sizeof k->binding);
	put_bytes(&w, said->data, said->len);
	return !a->bad && !b->bad &&
	       HMAC(EVP_sha256(), l->ph->secret, SECRET_BYTES, w.data, w.len, mac, &n);
}

/* Encrypts `said`, or decrypts it: the operation is its own inverse.  False: no memory. */
static bool seal(struct phnx *ph, struct writer *said, const unsigned char mac[32])
{
	static const unsigned char purpose[] = "phnx seal";
	unsigned char key[32];
	unsigned n = sizeof key;
	int len = (int)said->len;

	if (!len)
		return true;
	if (!ph->links->seal &&
	    HMAC(EVP_sha256(), ph->secret, SECRET_BYTES, purpose, sizeof purpose - 1, key, &n) &&
	    (ph->links->seal = EVP_CIPHER_CTX_new()) &&
	    !EVP_EncryptInit_ex(ph->links->seal, EVP_aes_256_ctr(), NULL, key, NULL)) {
		EVP_CIPHER_CTX_free(ph->links->seal);
		ph->links->seal = NULL;
	}
	return ph->links->seal && EVP_EncryptInit_ex(ph->links->seal, NULL, NULL, NULL, mac) &&
	       EVP_EncryptUpdate(ph->links->seal, said->data, &len, said->data, len);
}

static void send_proof(struct plink *l)
{
	struct writer *said = &l->ph->links->scratch;
	unsigned char mac[32];

	link_of(l)->owes_proof = false;
	said->len = said->bad = 0;
	tell_greet(l, said);
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

void handshake_forget(struct plink *l)
{
	struct links *all = l->ph->links;

	for (struct link **at = &all->owing; *at; at = &(*at)->next_owing)
		if (*at == link_of(l)) {
			*at = link_of(l)->next_owing;
			if (!*at)
				all->owing_end = at;
			return;
		}
}

/* Called when all greetings that have arrived together are known, so that tell_greet() can name
 * these nodes. */
void link_prove(struct phnx *ph)
{
	for (struct link *k; (k = ph->links->owing);) {
		handshake_forget(&k->pub);
		if (k->owes_proof)
			send_proof(&k->pub);
	}
}

bool link_owes_proof(const struct phnx *ph)
{
	return ph->links->owing != NULL;
}

static void owe_proof(struct plink *l)
{
	struct links *all = l->ph->links;
	struct link *k = link_of(l);

	tell_heard_greeting(l->ph, k->claimed);
	k->owes_proof = true;
	k->next_owing = NULL;
	*all->owing_end = k;
	all->owing_end = &k->next_owing;
}

int handshake_on_hello(struct plink *l, struct reader *r)
{
	struct link *k = link_of(l);
	struct phnx *ph = l->ph;
	unsigned char magic[4], nonce[32];
	char session[MAX_SESSION] = "";

	put_bytes(&k->peer_hello, r->p, (size_t)(r->end - r->p));
	get_bytes(r, magic, 4);
	unsigned version = get8(r);
	if (r->bad || memcmp(magic, "phnx", 4) || version != PHNX_VERSION) {
		link_close(l, PH_EREFUSED, "protocol version %u here, %u there", PHNX_VERSION,
			   version);
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
	k->claimed = (ph_vp_t)get64(r);
	l->port = (int)get_le(r, 2);
	get_bytes(r, nonce, sizeof nonce);
	if (r->bad || r->p != r->end)
		link_close(l, PH_EPEER, "malformed greeting");
	else if (has_session != ph->has_session)
		link_close(l, PH_EREFUSED, "%s a session here, %s there",
			   has_session ? "without" : "with", has_session ? "with" : "without");
	else if (strcmp(session, ph->session))
		link_close(l, PH_EREFUSED, "session '%.64s' here, '%.64s' there", ph->session,
			   session);
	else if (lower != ph->lower || upper != ph->upper)
		link_close(l, PH_EREFUSED, "virtual nodes [%lld, %lld) here, [%lld, %lld) there",
			   ph->lower, ph->upper, lower, upper);
	else if (k->claimed == ph->name) {
		if (l->contact)
			contact_is_self(ph, l->contact);
		link_close(l, 0, "this is myself");
	} else if (k->claimed < ph->upper || k->claimed <= 0)
		link_close(l, PH_EPEER, "its resource name is a virtual node");
	else {
		owe_proof(l);
		l->state = LINK_AUTH;
		ph->links->progress_us = core_now(ph);
		return 0;
	}
	return -1;
}

/* Closes one of two links to the same peer.  The node with the smaller name decides: it keeps
 * the link that it dialed.  It does not close the older link before a ping was answered on the
 * newer one, since the peer may have no other way yet. */
bool handshake_close_double(struct plink *l)
{
	struct link *k = link_of(l);
	struct plink *other = route_link_to(l->ph, k->claimed);

	if (!other || other == l || l->ph->name > k->claimed)
		return false;
	struct plink *worse = other->contact || !l->contact ? l : other;
	if (worse == other && !k->measured)
		return false;
	if (worse->contact)
		contact_doubled(l->ph, worse->contact, k->claimed);
	link_close(worse, 0, "second link between the same nodes");
	return worse == l;
}

static bool is_proof(struct plink *l, struct reader *r, struct writer *said)
{
	unsigned char mac[32], theirs[32];

	get_bytes(r, theirs, sizeof theirs);
	put_bytes(said, r->p, (size_t)(r->end - r->p));
	return !r->bad && seal(l->ph, said, theirs) && proof(l, false, said, mac) &&
	       !CRYPTO_memcmp(mac, theirs, sizeof mac);
}

static void link_up(struct plink *l)
{
	struct link *k = link_of(l);

	l->peer = k->claimed;
	l->state = LINK_UP;
	/* how long the answer to its greeting took */
	l->rtt_us = core_now(l->ph) - k->opened_us + 1;
	l->ph->links->slowest_us =
		l->rtt_us > l->ph->links->slowest_us ? l->rtt_us : l->ph->links->slowest_us;
	l->ph->links->n_proving--;
	free(k->my_hello.data);
	free(k->peer_hello.data);
	k->my_hello = k->peer_hello = (struct writer){ 0 };
	if (l->contact)
		contact_linked(l->ph, l->contact, l->peer);
	l->ph->links->progress_us = core_now(l->ph);
	link_look_by(l->ph, link_ping_at(l, core_now(l->ph)));
	route_link_up(l->ph, l);
}

int handshake_on_auth(struct plink *l, struct reader *r)
{
	unsigned char words[MAX_HANDSHAKE_FRAME];
	struct writer said = { .data = words, .room = sizeof words };	/* never grows */
	bool closed = true, bad = false;

	if (link_of(l)->owes_proof)
		/* the proof goes before anything else that is sent to a peer that has proved
		 * itself */
		send_proof(l);
	if (!is_proof(l, r, &said))
		link_close(l, PH_EREFUSED, "the secrets of session '%.64s' differ", l->ph->session);
	else
		closed = handshake_close_double(l);
	if (!closed) {
		struct reader s = { said.data, said.data + said.len, false };
		link_up(l);
		bad = said.len && (route_on_update(l->ph, l, &s) || s.bad);
	}
	if (bad)
		link_close(l, PH_EPEER, "malformed announcement with a proof");
	return -(closed || bad);
}

int handshake_on_refuse(struct plink *l, struct reader *r)
{
	struct link *k = link_of(l);
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
		link_report_peer(l, PH_EREFUSED, "refused this node: ", text);
	else if (l->contact && contact_is_dialing(l->contact) && k->claimed)
		contact_doubled(l->ph, l->contact, k->claimed);
	link_close(l, 0, NULL);
	return -1;
}

