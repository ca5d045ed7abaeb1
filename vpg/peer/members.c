/* members.c - see members.h. */
#include "vpg/peer/members.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int member_make(struct member *m, const char *key, const char *nick, uint64_t since,
		uint64_t revoked)
{
	*m = (struct member){ .since = since, .revoked = revoked };
	if (strlen(key) != 2 * KEY_BYTES || !nick_is_valid(nick))
		return -EPROTO;
	for (size_t i = 0; i < KEY_BYTES; i++) {
		int high = digit(key[2 * i]), low = digit(key[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EPROTO;
		m->key[i] = (unsigned char)(high << 4 | low);
	}
	snprintf(m->nick, sizeof m->nick, "%s", nick);
	return 0;
}

void member_key_text(const struct member *m, char text[KEY_TEXT])
{
	for (size_t i = 0; i < KEY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", m->key[i]);
}

struct member *members_of_key(const struct members *all, const unsigned char key[KEY_BYTES])
{
	for (size_t i = 0; i < all->n; i++)
		if (!memcmp(all->at[i].key, key, KEY_BYTES))
			return all->at + i;
	return NULL;
}

/* Of two members with one nickname, returns whether a has it. */
static bool has_it(const struct member *a, const struct member *b)
{
	return a->since != b->since ? a->since < b->since : memcmp(a->key, b->key, KEY_BYTES) < 0;
}

struct member *members_of_nick(const struct members *all, const char *nick)
{
	struct member *best = NULL;

	for (size_t i = 0; i < all->n; i++) {
		struct member *m = all->at + i;

		if (!m->revoked && !strcmp(m->nick, nick) && (!best || has_it(m, best)))
			best = m;
	}
	return best;
}

enum member_state members_state(const struct members *all, const unsigned char key[KEY_BYTES])
{
	const struct member *m = members_of_key(all, key);

	if (!m)
		return MEMBER_UNKNOWN;
	if (m->revoked)
		return MEMBER_REVOKED;
	return members_of_nick(all, m->nick) == m ? MEMBER_GOOD : MEMBER_NICK_TAKEN;
}

/* ---- the digest ----
 * It is the XOR of a hash of each member.  A member's hash does not depend on when it was revoked:
 * two computers may have revoked it independently.
 */

static uint64_t hash_member(const struct member *m)
{
	unsigned char digest[EVP_MAX_MD_SIZE] = { 0 }, text[KEY_BYTES + NICK_BYTES + 1] = { 0 };
	uint64_t hash = 0;

	memcpy(text, m->key, KEY_BYTES);
	memcpy(text + KEY_BYTES, m->nick, strlen(m->nick));
	text[sizeof text - 1] = m->revoked != 0;
	EVP_Digest(text, sizeof text, digest, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < 8; i++)
		hash = hash << 8 | digest[i];
	return hash;
}

uint64_t members_digest(const struct members *all) { return all->digest; }

/* ---- which peer tells which others of news ---- */

unsigned members_rounds(size_t n)
{
	unsigned rounds = 0;

	while (n > (size_t)1 << rounds)
		rounds++;
	return rounds;
}

size_t members_target(size_t self, size_t n, unsigned i)
{
	return (self + ((size_t)1 << i)) % n;
}

/* ---- the list ---- */

int members_learn(struct members *all, const struct member *m)
{
	struct member *have = members_of_key(all, m->key), *more;

	if (have && (have->revoked || !m->revoked))
		return 0;
	if (have) {
		all->digest ^= hash_member(have);
		have->revoked = m->revoked;
		all->digest ^= hash_member(have);
		return 1;
	}
	if (all->n == MEMBERS_MAX)
		return -ENOSPC;
	more = realloc(all->at, (all->n + 1) * sizeof *more);
	if (!more)
		return -ENOMEM;
	all->at = more;
	all->at[all->n++] = *m;
	all->digest ^= hash_member(m);
	return 1;
}

int member_print_line(const struct member *m, char *line, size_t bytes)
{
	char key[KEY_TEXT];

	member_key_text(m, key);
	return snprintf(line, bytes, "%s %s %" PRIu64 " %" PRIu64 "\n", key, m->nick, m->since,
			m->revoked);
}

int member_read_line(struct member *m, const char *line)
{
	char key[KEY_TEXT], nick[NICK_BYTES];
	uint64_t since, revoked;
	int end = 0;

	if (sscanf(line, "%64s %32s %" SCNu64 " %" SCNu64 "%n", key, nick, &since, &revoked,
		   &end) != 4 || line[end])
		return -EPROTO;
	return member_make(m, key, nick, since, revoked);
}

void members_free(struct members *all)
{
	free(all->at);
	*all = (struct members){ 0 };
}
