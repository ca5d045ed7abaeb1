/* hear.c - serves what another daemon says through its tunnel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "vpg/peer/borrow.h"
#include "vpg/peer/jobs.h"
#include "vpg/peer/lender.h"
#include "vpg/peer/pipes.h"

static void tell_member(struct tunnel *t, const struct member *m)
{
	char key[KEY_TEXT];

	member_key_text(m, key);
	struct vpg_MEMBER say = { key, m->nick, m->since, m->revoked };
	tunnel_send(t, VPG_MEMBER, &say);
}

static void tell_digest(struct tunnel *t)
{
	struct vpg_MEMBERS say = { members_digest(&t->d->net.members) };

	tunnel_send(t, VPG_MEMBERS, &say);
}

void hear_open(struct tunnel *t)
{
	struct daemon *d = t->d;
	struct vpg_HELLO hello = { VPG_VERSION, d->net.settings.nick };

	log_info("%s is connected", t->nick);
	tunnel_send(t, VPG_HELLO, &hello);
	tell_digest(t);
}

/* Tells the other side all members, if its list differs: it has other members, or other states of
 * them. */
static void on_members(struct tunnel *t, const struct vpg_MEMBERS *m)
{
	const struct members *all = &t->d->net.members;

	if (m->digest == members_digest(all))
		return;
	for (size_t i = 0; i < all->n && !t->dead; i++)
		tell_member(t, all->at + i);
}

void hear_closed(struct tunnel *t, const char *why)
{
	log_info("%s is not connected any more: %s", t->nick, why);
	jobs_tunnel_closed(t, why);
	lender_tunnel_closed(t);
	borrow_tunnel_closed(t);
}

/* Ends the tunnels of a member that was revoked; NULL: all tunnels. */
static void end_tunnels_of(struct daemon *d, const struct member *m)
{
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->open && !t->mirror && (!m || !memcmp(t->key, m->key, KEY_BYTES)))
			tunnel_close(t, "its key was revoked");
}

/* Ends the tunnels of computers whose nickname another one has that joined before: two members of
 * a network that was in two parts may have admitted them.  It may be this computer's own one. */
static void end_tunnels_of_losers(struct daemon *d)
{
	const struct members *all = &d->net.members;
	bool lost = members_state(all, d->net.id.public) == MEMBER_NICK_TAKEN;

	if (lost)
		snprintf(d->refused, sizeof d->refused, "%s", IDENTITY_NICK_TAKEN);
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->open && !t->mirror &&
		    (lost || members_state(all, t->key) == MEMBER_NICK_TAKEN))
			tunnel_close(t, "another computer has its nickname");
}

/* ---- news of members ----
 * A daemon that admits a member, or learns of a revocation, tells all peers.  A daemon that learns
 * of a new member tells ceil(log2 n) of n peers: if each told each, every new member would cost
 * n * n messages.  The comparison of digests repairs what is missed.
 */

static int by_nick(const void *a, const void *b)
{
	const struct tunnel *const *x = a, *const *y = b;

	return strcmp((*x)->nick, (*y)->nick);
}

static void tell_some(struct daemon *d, const struct member *m, const struct tunnel *from)
{
	static struct tunnel *all[TUNNELS_MAX + 2];
	size_t n = 0, self = 0;

	for (struct tunnel *t = d->tunnels; t && n < TUNNELS_MAX; t = t->next)
		if (t->open && !t->dead && t != d->self[1])
			all[n++] = t;
	qsort(all, n, sizeof *all, by_nick);
	while (self < n && all[self] != d->self[0])
		self++;
	for (unsigned i = 0; i < members_rounds(n); i++) {
		struct tunnel *to = all[members_target(self, n, i)];

		if (to != from && to != d->self[0])
			tell_member(to, m);
	}
}

void hear_compare(struct daemon *d)
{
	static unsigned turn;
	unsigned n = 0, i = 0;

	for (struct tunnel *t = d->tunnels; t; t = t->next)
		n += t->open && !t->mirror;
	for (struct tunnel *t = d->tunnels; t && n; t = t->next)
		if (t->open && !t->mirror && i++ == turn % n) {
			turn++;
			tell_digest(t);
			return;
		}
}

void hear_announce(struct daemon *d, const struct member *m)
{
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->open && !t->mirror)
			tell_member(t, m);
}

void hear_write_members(struct daemon *d)
{
	struct why why;

	if (d->unwritten && network_write_members(&d->net, &why))
		log_error("%s", why.line);
	d->unwritten = false;
}

void hear_member(struct daemon *d, const struct member *m, const struct tunnel *from)
{
	if (members_learn(&d->net.members, m) <= 0)
		return;
	log_info("%s %s", m->nick, m->revoked ? "was revoked" : "is a member");
	d->unwritten = true;
	if (!m->revoked) {
		tell_some(d, m, from);
		end_tunnels_of_losers(d);
		return;
	}
	hear_write_members(d);
	hear_announce(d, m);
	if (!memcmp(m->key, d->net.id.public, KEY_BYTES)) {
		snprintf(d->refused, sizeof d->refused, "the key of this computer was revoked");
		end_tunnels_of(d, NULL);
	} else {
		end_tunnels_of(d, m);
	}
}

static void on_member(struct tunnel *t, const struct vpg_MEMBER *say)
{
	struct member m;

	if (member_make(&m, say->key, say->nick, say->since, say->revoked))
		tunnel_close(t, "it sends what no version sends");
	else
		hear_member(t->d, &m, t);
}

/* Returns the number in the line `name` of /proc/meminfo, in KiB. */
static uint64_t meminfo(const char *name)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), " %llu", &kib);
	if (f)
		fclose(f);
	return kib;
}

static void on_ping(struct tunnel *t, const struct vpg_PING *ping)
{
	struct vpg_PONG pong = { .stamp = ping->stamp, .memory_kib = meminfo("MemTotal:"),
				 .free_kib = meminfo("MemAvailable:") };
	double load = 0;

	pong.speed = t->d->speed;
	pong.processors = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (getloadavg(&load, 1) == 1)
		pong.load_percent = (uint64_t)(load * 100);
	lender_describe(t, &pong);
	tunnel_send(t, VPG_PONG, &pong);
}

void hear_ping_all(struct daemon *d)
{
	for (struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->open && !t->dead && t != d->self[1]) {
			t->asked_us = tunnel_now_us();
			struct vpg_PING ping = { (uint64_t)t->asked_us };
			tunnel_send(t, VPG_PING, &ping);
		}
}

bool hear_all_answered(const struct daemon *d)
{
	for (const struct tunnel *t = d->tunnels; t; t = t->next)
		if (t->open && !t->dead && t->asked_us)
			return false;
	return true;
}

static void on_pong(struct tunnel *t, const struct vpg_PONG *m)
{
	if (!t->asked_us || m->stamp != (uint64_t)t->asked_us)
		return;
	t->facts = (struct peer_facts){
		.processors = m->processors, .memory_kib = m->memory_kib,
		.free_kib = m->free_kib, .load_percent = m->load_percent,
		.rtt_us = (uint64_t)(tunnel_now_us() - t->asked_us), .lends = m->lends,
		.lent = m->lent, .lends_mib = m->lends_mib, .lent_mib = m->lent_mib,
		.machines_most = m->machines_most, .machines = m->machines, .offers = m->offers,
		.spare = m->spare, .speed = m->speed,
	};
	t->asked_us = 0;
	shells_peer_answered(t->d);
	borrow_peer_answered(t->d);
}

static void on_hello(struct tunnel *t, const struct vpg_HELLO *m)
{
	if (m->version == VPG_VERSION) {
		*t->d->refused = 0;
		return;
	}
	log_error("%s has another version of vmp: install one version everywhere", t->nick);
	tunnel_close(t, "it has another version of vmp");
}

void hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m)
{
	if (pipe_is_frame(type)) {
		pipe_hear(t, type, m);
		return;
	}
	switch (type) {
	case VPG_HELLO: on_hello(t, &m->HELLO); break;
	case VPG_MEMBER: on_member(t, &m->MEMBER); break;
	case VPG_MEMBERS: on_members(t, &m->MEMBERS); break;
	case VPG_PING: on_ping(t, &m->PING); break;
	case VPG_PONG: on_pong(t, &m->PONG); break;
	case VPG_SPAWN:
	case VPG_SIGNAL:
	case VPG_END:
	case VPG_EXIT:
	case VPG_RESIZE:
	case VPG_STOPPED: jobs_hear(t, type, m); break;
	case VPG_RESERVE:
	case VPG_KEEP:
	case VPG_RETURN: lender_hear(t, type, m); break;
	case VPG_LENT: borrow_hear(t, &m->LENT); break;
	default:
		log_warn("%s sends %s: ignored", t->nick, message_name(type));
	}
}
