/* meeting.c - the daemon as a node of the overlay network, and how peers hear of each other.
 *
 * A node assumes the virtual node of its nickname.  Every second it sends a message to the virtual
 * node of each member to which it has no tunnel, if some node assumes that.  The receiver learns
 * from it which process sent it, and one of the two makes a tunnel.  The message proves nothing,
 * and nothing in it is believed: the tunnel proves who is there.
 */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/quantity.h"
#include "vpg/peer/jobs.h"

enum { HERE_TAG = 1, ANNOUNCE_S = 1, HERE_US = 1500000,
       LOST_MS_MIN = 5000 };
#define VP_END ((ph_vp_t)1 << 62)

/* Returns the virtual node of a nickname: 62 bits of its SHA-256. */
static ph_vp_t vp_of_nick(const char *nick)
{
	unsigned char digest[EVP_MAX_MD_SIZE] = { 0 };
	uint64_t vp = 0;

	EVP_Digest(nick, strlen(nick), digest, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < 8; i++)
		vp = vp << 8 | digest[i];
	return (ph_vp_t)(vp >> 2);
}

static void announce(struct daemon *d)
{
	for (size_t i = 0; i < d->net.members.n; i++) {
		const struct member *m = d->net.members.at + i;

		ph_vp_t vp = vp_of_nick(m->nick);

		if (!m->revoked && !tunnel_to(d, m->nick, true) && ph_is_held(vp))
			ph_timed_send(vp, "", 0, HERE_TAG, HERE_US);
	}
}

static void on_announce(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	tunnels_tidy(arg);
	jobs_tidy();
	hear_write_members(arg);
	hear_compare(arg);
	announce(arg);
}

/* The process with the smaller name dials.  If this process has the larger one, it answers with the
 * same message. */
static void on_here(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)msg;
	if (source == ph_get_resource_name())
		return;
	if (source > ph_get_resource_name())
		tunnel_meet(arg, source);
	else
		ph_timed_send(source, "", 0, HERE_TAG, HERE_US);
}

static void on_tunnel(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	tunnel_arrived(arg, source, msg->body, msg->len);
}

static void on_reset(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)msg;
	tunnel_reset(arg, source);
}

static void on_gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	if (!returned)
		tunnel_gone(arg, name);
}

/* Two nodes have assumed the virtual node of this computer's nickname: says which of two
 * computers has to change something. */
static const char *why_overlap(const struct daemon *d)
{
	const struct members *all = &d->net.members;

	if (members_state(all, d->net.id.public) == MEMBER_NICK_TAKEN)
		return IDENTITY_NICK_TAKEN;
	for (size_t i = 0; i < all->n; i++)
		if (!all->at[i].revoked && !strcmp(all->at[i].nick, d->net.settings.nick) &&
		    memcmp(all->at[i].key, d->net.id.public, KEY_BYTES))
			return "another computer, which joined later, has the nickname of this "
			       "one, and is refused";
	return "another computer uses the nickname of this one with the same key: give each "
	       "computer a folder of its own";
}

static void on_error(void *arg, int error, const char *text)
{
	struct daemon *d = arg;

	if (d->ending)
		return;
	if (error == PH_EOVERLAP)
		log_error("%s", why_overlap(d));
	else
		log_warn("%s: %s", ph_strerror(error), text);
	if (error == PH_EGONE)	/* the others took it for dead: it returns as a new process */
		d->ending = d->again = true, event_base_loopexit(d->base, NULL);
}

void meeting_dial(const char *host, unsigned port, bool ssh, const char *user)
{
	if (ssh)
		ph_add_port_ssh(host, (int)port, user);
	else
		ph_add_port_ssl(host, (int)port);
}

static void dial_contact(void *arg, const char *host, unsigned port, bool ssh, const char *user)
{
	(void)arg;
	meeting_dial(host, port, ssh, user);
}

/* Finds two free ports: the first is the overlay's, the second is for computers that join.  The
 * port that was used last time is tried first, since others have it among their contacts. */
static int listen_somewhere(struct daemon *d, struct why *why)
{
	struct settings *s = &d->net.settings;
	void (*listen_at)(int, int) = s->anywhere ? ph_set_listen_port : ph_set_near_port;

	if (s->port) {
		listen_at((int)s->port, (int)s->port + 1);
		if (ph_get_listen_port() <= 0 || enrol_start(d, why))
			return why_set(why, "port %u or %u is taken: choose others with --port",
				       s->port, s->port + 1);
		return 0;
	}
	for (unsigned port = PORT_FIRST; port < PORT_END && ph_get_listen_port() <= 0; port += 2) {
		s->port = port;
		if (enrol_start(d, why))
			continue;
		listen_at((int)port, (int)port + 1);
		if (ph_get_listen_port() <= 0)
			enrol_stop(d);
	}
	if (ph_get_listen_port() <= 0)
		return why_set(why, "no two ports from %d to %d are free: choose with --port",
			       PORT_FIRST, PORT_END - 1);
	return network_write_settings(&d->net, why);
}

/* Returns how long a computer may be silent before it counts as lost, from the user's
 * environment. */
static long long lost_after_us(void)
{
	const char *own = getenv("VMP_PEER_LOST_AFTER");
	uint32_t ms = 0;

	if (!own || !*own)
		return PH_TIMEOUT_BY_SIZE;
	if (!quantity_parse_ms(own, &ms) && ms >= LOST_MS_MIN)
		return 1000LL * ms;
	log_error("VMP_PEER_LOST_AFTER: not a time of 5 seconds or more: %s", own);
	return PH_TIMEOUT_BY_SIZE;
}

int meeting_start(struct daemon *d, struct why *why)
{
	const struct timeval often = { ANNOUNCE_S, 0 };
	char secret[FOLDER_PATH + 16];

	ph_set_error_callback(on_error, d);
	snprintf(secret, sizeof secret, "%s/secret", d->net.folder);
	if (ph_init_in_loop(0, VP_END, d->net.settings.session, secret, d->base))
		return why_set(why, "the overlay network does not start: see the log");
	ph_prefer_ssl();
	ph_set_failure_timeout(lost_after_us(), PH_GONE_DISCARD, on_gone, d);
	if (ph_set_handler(HERE_TAG, on_here, d) || ph_set_handler(TUNNEL_TAG, on_tunnel, d) ||
	    ph_set_handler(TUNNEL_RESET_TAG, on_reset, d))
		return why_set(why, "out of memory");
	if (listen_somewhere(d, why))
		return -1;
	ph_assume_vp(vp_of_nick(d->net.settings.nick));
	network_each_contact(d->net.folder, dial_contact, NULL);
	d->announce = event_new(d->base, -1, EV_PERSIST, on_announce, d);
	if (!d->announce || event_add(d->announce, &often))
		return why_set(why, "out of memory");
	announce(d);
	return 0;
}

void meeting_stop(struct daemon *d)
{
	if (d->announce)
		event_free(d->announce);
	d->announce = NULL;
	ph_finalize(NULL, 1);
}
