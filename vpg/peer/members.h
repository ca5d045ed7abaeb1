/* members.h - who belongs to a network: a key, a nickname, and whether it was revoked.  Pure.
 *
 * Every peer has the list in its file `members`.  Peers compare the digests of their lists, and
 * send the lists if these differ; so all lists become the same.  A revoked key stays revoked.  If
 * two keys have one nickname, the key that came first has it, and the other key takes no part.
 */
#ifndef VPG_MEMBERS_H
#define VPG_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "vpg/wire/nick.h"

enum { MEMBERS_MAX = 1024, KEY_BYTES = 32, KEY_TEXT = 2 * KEY_BYTES + 1 };

struct member {
	unsigned char key[KEY_BYTES];	/* Ed25519, public */
	char nick[NICK_BYTES];
	uint64_t since, revoked;	/* seconds since 1970; revoked 0: it was not revoked */
};

struct members {
	struct member *at;
	size_t n;
	uint64_t digest;		/* members_digest() */
};

enum member_state { MEMBER_GOOD, MEMBER_UNKNOWN, MEMBER_REVOKED, MEMBER_NICK_TAKEN };

/* Makes a member from texts.  Returns 0 or -EPROTO. */
int member_make(struct member *m, const char *key, const char *nick, uint64_t since,
		uint64_t revoked);
void member_key_text(const struct member *m, char text[KEY_TEXT]);

/* Takes what a peer says of a member.  Returns 1 if that was new, 0 if not, -ENOSPC, -ENOMEM. */
int members_learn(struct members *all, const struct member *m);
/* Returns a number that is the same for two lists of the same members, in any order. */
uint64_t members_digest(const struct members *all);
/* Returns the peer, of n peers in an order that all know, to which the peer at `self` sends news in
 * round i.  Each receiver does the same, so that all have the news after members_rounds() steps. */
size_t members_target(size_t self, size_t n, unsigned i);
unsigned members_rounds(size_t n);
enum member_state members_state(const struct members *all, const unsigned char key[KEY_BYTES]);
struct member *members_of_key(const struct members *all, const unsigned char key[KEY_BYTES]);
/* Returns the member that has the nickname, if it was not revoked; or NULL. */
struct member *members_of_nick(const struct members *all, const char *nick);

/* Writes one line of the file, with its newline, and returns as snprintf() does.
 * member_read_line() takes the line without its newline; it returns 0 or -EPROTO. */
int member_print_line(const struct member *m, char *line, size_t bytes);
int member_read_line(struct member *m, const char *line);
void members_free(struct members *all);

#endif
