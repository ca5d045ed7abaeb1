/* network.c - see network.h. */
#include "vpg/peer/network.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMBER_LINE = 160, GIVEN_LINE = 160, CONTACT_LINE = 320, CONTACTS_ROOM = 64 << 10 };

static int failed(const struct network *n, const char *name, int error, struct why *why)
{
	if (error == -EACCES)
		return why_set(why, "%s/%s: must be yours and have mode 0600", n->folder, name);
	return why_set(why, "%s/%s: %s", n->folder, name, strerror(-error));
}

static void hex(const unsigned char *bytes, size_t n, char *text)
{
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- settings ---- */

int network_write_settings(const struct network *n, struct why *why)
{
	char text[256];
	int bytes = snprintf(text, sizeof text, "nick %s\nsession %s\nport %u\nlisten %s\n",
			     n->settings.nick, n->settings.session, n->settings.port,
			     n->settings.anywhere ? "all" : "near");
	int error = folder_write(n->folder, "settings", text, (size_t)bytes);

	return error ? failed(n, "settings", error, why) : 0;
}

static int read_settings(struct network *n, struct why *why)
{
	struct settings *s = &n->settings;
	char text[256], listen[8];
	long bytes = folder_read(n->folder, "settings", text, sizeof text);

	if (bytes < 0)
		return bytes == -ENOENT ? -ENOENT : failed(n, "settings", (int)bytes, why);
	if (sscanf(text, "nick %32s session %31s port %u listen %7s", s->nick, s->session, &s->port,
		   listen) != 4 || !nick_is_valid(s->nick) || s->port > 65534)
		return why_set(why, "%s/settings: damaged; remove the folder, and join again",
			       n->folder);
	s->anywhere = !strcmp(listen, "all");
	return 0;
}

/* ---- members ---- */

int network_write_members(const struct network *n, struct why *why)
{
	char *text = malloc(n->members.n * MEMBER_LINE + 1);
	size_t bytes = 0;

	if (!text)
		return why_set(why, "out of memory");
	for (size_t i = 0; i < n->members.n; i++)
		bytes += (size_t)member_print_line(n->members.at + i, text + bytes, MEMBER_LINE);
	int error = folder_write(n->folder, "members", text, bytes);
	free(text);
	return error ? failed(n, "members", error, why) : 0;
}

static int read_members(struct network *n, struct why *why)
{
	size_t room = MEMBERS_MAX * MEMBER_LINE + 1;
	char *text = malloc(room), *save = NULL;
	long bytes = text ? folder_read(n->folder, "members", text, room) : -ENOMEM;
	int error = bytes < 0 ? failed(n, "members", (int)bytes, why) : 0;
	struct member m;

	for (char *line = error ? NULL : strtok_r(text, "\n", &save); line && !error;
	     line = strtok_r(NULL, "\n", &save))
		if (member_read_line(&m, line) || members_learn(&n->members, &m) < 0)
			error = why_set(why, "%s/members: damaged", n->folder);
	free(text);
	return error;
}

/* ---- invitations ---- */

static int write_given(const struct network *n, struct why *why)
{
	char text[INVITES_MAX * GIVEN_LINE], hash[KEY_TEXT];
	size_t bytes = 0;

	for (unsigned i = 0; i < n->n_given; i++) {
		const struct given *g = n->given + i;

		hex(g->hash, KEY_BYTES, hash);
		bytes += (size_t)snprintf(text + bytes, GIVEN_LINE, "%s x %" PRIu64 " 0 %s\n", hash,
					  g->expires, *g->used_by ? g->used_by : "-");
	}
	int error = folder_write(n->folder, "invitations", text, bytes);
	return error ? failed(n, "invitations", error, why) : 0;
}

static void read_given(struct network *n)
{
	char text[INVITES_MAX * GIVEN_LINE + 1], hash[KEY_TEXT], *save = NULL;
	struct member m;

	if (folder_read(n->folder, "invitations", text, sizeof text) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line && n->n_given < INVITES_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		struct given *g = n->given + n->n_given;
		uint64_t expires;
		char used[NICK_BYTES];

		if (sscanf(line, "%64s x %" SCNu64 " 0 %32s", hash, &expires, used) != 3 ||
		    member_make(&m, hash, "x", 0, 0))
			continue;
		*g = (struct given){ .expires = expires };
		memcpy(g->hash, m.key, KEY_BYTES);
		if (strcmp(used, "-"))
			snprintf(g->used_by, sizeof g->used_by, "%s", used);
		n->n_given++;
	}
}

/* Returns the entry for one more invitation: a free one, or the one that expires first. */
static struct given *room_for_one(struct network *n)
{
	struct given *oldest = n->given;

	if (n->n_given < INVITES_MAX)
		return n->given + n->n_given++;
	for (unsigned i = 1; i < n->n_given; i++)
		if (n->given[i].expires < oldest->expires)
			oldest = n->given + i;
	return oldest;
}

static int hash_token(const unsigned char token[TOKEN_BYTES], unsigned char hash[KEY_BYTES])
{
	return EVP_Digest(token, TOKEN_BYTES, hash, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

int network_invite(struct network *n, struct invitation *i, uint64_t seconds, uint64_t now,
		   struct why *why)
{
	struct given g = { .expires = now + seconds };

	if (RAND_bytes(i->token, TOKEN_BYTES) != 1 || hash_token(i->token, g.hash))
		return why_set(why, "no random numbers");
	memcpy(i->key, n->id.public, KEY_BYTES);
	i->expires = g.expires;
	i->port = n->settings.port + 1;
	*room_for_one(n) = g;
	return write_given(n, why);
}

bool network_invites(const struct network *n, uint64_t now)
{
	for (unsigned i = 0; i < n->n_given; i++)
		if (n->given[i].expires + 86400 > now)	/* for a day a late computer is told so */
			return true;
	return false;
}

int network_admit(struct network *n, const unsigned char token[TOKEN_BYTES],
		  const struct member *m, uint64_t now, struct why *why)
{
	unsigned char hash[KEY_BYTES];
	struct given *g = NULL;

	if (hash_token(token, hash))
		return why_set(why, "out of memory");
	for (unsigned i = 0; i < n->n_given; i++)
		if (!memcmp(n->given[i].hash, hash, KEY_BYTES))
			g = n->given + i;
	if (!g)
		return why_set(why, "%s knows no such invitation: ask for a new one",
			       n->settings.nick);
	if (*g->used_by)
		return why_set(why, "the invitation was used, by %s: ask for a new one",
			       g->used_by);
	if (g->expires <= now)
		return why_set(why, "the invitation has expired: ask for a new one");
	if (members_state(&n->members, m->key) == MEMBER_REVOKED)
		return why_set(why, "the key of this computer was revoked: remove its folder, and "
			       "join with a new one");
	if (members_of_nick(&n->members, m->nick) &&
	    memcmp(members_of_nick(&n->members, m->nick)->key, m->key, KEY_BYTES))
		return why_set(why, "the nickname %s is taken: join with --name", m->nick);
	if (members_learn(&n->members, m) < 0)
		return why_set(why, "the network has %d members already", MEMBERS_MAX);
	snprintf(g->used_by, sizeof g->used_by, "%s", m->nick);
	return write_given(n, why) || network_write_members(n, why) ? -1 : 0;
}

/* ---- a network ---- */

int network_secret(const struct network *n, char secret[SECRET_TEXT], struct why *why)
{
	long bytes = folder_read(n->folder, "secret", secret, SECRET_TEXT);

	if (bytes != SECRET_TEXT - 1)
		return failed(n, "secret", bytes < 0 ? (int)bytes : -EPROTO, why);
	return 0;
}

int network_read(struct network *n, struct why *why)
{
	*n = (struct network){ 0 };
	if (folder_make(n->folder, why))
		return -1;
	int error = read_settings(n, why);
	if (error)
		return error;
	if (identity_open(&n->id, n->folder, why) || read_members(n, why)) {
		network_close(n);
		return -1;
	}
	read_given(n);
	return 0;
}

static int become_member(struct network *n, struct why *why)
{
	struct member me = { .since = (uint64_t)time(NULL) };

	memcpy(me.key, n->id.public, KEY_BYTES);
	snprintf(me.nick, sizeof me.nick, "%s", n->settings.nick);
	if (members_learn(&n->members, &me) < 0)
		return why_set(why, "out of memory");
	return network_write_members(n, why);
}

int network_adopt(struct network *n, const char *nick, const char *session, const char *secret,
		  struct why *why)
{
	int error = folder_write(n->folder, "secret", secret, strlen(secret));

	snprintf(n->settings.nick, sizeof n->settings.nick, "%s", nick);
	snprintf(n->settings.session, sizeof n->settings.session, "%s", session);
	if (error)
		return failed(n, "secret", error, why);
	return network_write_members(n, why) || network_write_settings(n, why) ? -1 : 0;
}

int network_begin(struct network *n, const char *nick, struct why *why)
{
	unsigned char random[32];
	char secret[SECRET_TEXT], session[SESSION_BYTES] = "vpg-";

	*n = (struct network){ 0 };
	if (folder_make(n->folder, why) || identity_open(&n->id, n->folder, why))
		return -1;
	snprintf(n->settings.nick, sizeof n->settings.nick, "%s", nick);
	if (RAND_bytes(random, sizeof random) != 1)
		return why_set(why, "no random numbers");
	hex(random, sizeof random, secret);
	if (RAND_bytes(random, 8) != 1)
		return why_set(why, "no random numbers");
	hex(random, 8, session + 4);
	if (become_member(n, why))
		return -1;
	return network_adopt(n, nick, session, secret, why);
}

void network_close(struct network *n)
{
	identity_close(&n->id);
	members_free(&n->members);
}

/* ---- contacts ---- */

void network_each_contact(const char *folder, network_contact each, void *arg)
{
	char *text = malloc(CONTACTS_ROOM), *save = NULL;
	long bytes = text ? folder_read(folder, "contacts", text, CONTACTS_ROOM) : -1;

	for (char *line = bytes > 0 ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char host[254], ssh[8] = "", user[64] = "";
		unsigned port;
		int n = sscanf(line, "%253s %u %7s %63s", host, &port, ssh, user);

		if (n >= 2 && *host != '#' && port > 0 && port < 65536)
			each(arg, host, port, !strcmp(ssh, "ssh"), *user ? user : NULL);
	}
	free(text);
}

static bool has_line(const char *text, const char *line)
{
	const char *at = text;

	while ((at = strstr(at, line)) && at != text && at[-1] != '\n')
		at++;
	return at;
}

int network_add_contact(const char *folder, const char *host, unsigned port, const char *ssh_user,
			bool ssh, struct why *why)
{
	char *text = calloc(1, CONTACTS_ROOM), line[CONTACT_LINE];
	long bytes = text ? folder_read(folder, "contacts", text, CONTACTS_ROOM) : -ENOMEM;
	int error = bytes < 0 && bytes != -ENOENT ? (int)bytes : 0;

	if (strpbrk(host, " \n\t") || !*host || *host == '#' ||
	    (ssh_user && strpbrk(ssh_user, " \n\t"))) {
		free(text);
		return why_set(why, "%.200s: not a host's name", host);
	}
	snprintf(line, sizeof line, "%.253s %u%s%s%.32s\n", host, port, ssh ? " ssh" : "",
		 ssh_user ? " " : "", ssh_user ? ssh_user : "");
	if (!error && !has_line(text, line)) {
		if (strlen(text) + strlen(line) >= CONTACTS_ROOM) {
			free(text);
			return why_set(why, "%s/contacts is full: remove a line of it", folder);
		}
		strcat(text, line);
		error = folder_write(folder, "contacts", text, strlen(text));
	}
	free(text);
	return error ? why_set(why, "%s/contacts: %s", folder, strerror(-error)) : 0;
}
