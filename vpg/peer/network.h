/* network.h - what a daemon knows of its network, as files of its folder. */
#ifndef VPG_NETWORK_H
#define VPG_NETWORK_H

#include "vpg/peer/identity.h"
#include "vpg/peer/invitation.h"
#include "vpg/peer/members.h"
#include "vpg/wire/folder.h"

enum {
	SESSION_BYTES = 32, SECRET_TEXT = 65, INVITES_MAX = 64,
	PORT_FIRST = 28400, PORT_END = 28600,	/* ports to try, two at a time */
	INVITE_SECONDS = 3600, INVITE_SECONDS_MAX = 30 * 86400,
};

struct settings {
	char nick[NICK_BYTES];
	char session[SESSION_BYTES];	/* the name of the overlay's session */
	unsigned port;			/* of the overlay; computers join at the next port */
	bool anywhere;			/* listen on all addresses; otherwise on loopback alone */
};

/* A token that was given out. */
struct given {
	unsigned char hash[KEY_BYTES];
	uint64_t expires;
	char used_by[NICK_BYTES];	/* "": nobody yet */
};

struct network {
	char folder[FOLDER_PATH];
	struct settings settings;
	struct identity id;
	struct members members;
	struct given given[INVITES_MAX];
	unsigned n_given;
};

/* Reads the files of the folder.  Returns 0, or -1; -ENOENT if there is no network here yet. */
int network_read(struct network *n, struct why *why);
/* Begins a network with this computer as its only member. */
int network_begin(struct network *n, const char *nick, struct why *why);
/* Becomes part of another network: `secret` and `session` are the inviter's. */
int network_adopt(struct network *n, const char *nick, const char *session, const char *secret,
		  struct why *why);
/* The session's secret, as in its file. */
int network_secret(const struct network *n, char secret[SECRET_TEXT], struct why *why);
int network_write_settings(const struct network *n, struct why *why);
int network_write_members(const struct network *n, struct why *why);
void network_close(struct network *n);

/* Makes an invitation, with a token.  Returns 0 or -1. */
int network_invite(struct network *n, struct invitation *i, uint64_t seconds, uint64_t now,
		   struct why *why);
/* Makes a computer that shows a token a member, or says in `why` why not. */
int network_admit(struct network *n, const unsigned char token[TOKEN_BYTES], const struct member *m,
		  uint64_t now, struct why *why);
bool network_invites(const struct network *n, uint64_t now);	/* whether a computer is expected */

/* Adds a contact, if it is not there: a line "HOST PORT" or "HOST PORT ssh [USER]". */
int network_add_contact(const char *folder, const char *host, unsigned port, const char *ssh_user,
			bool ssh, struct why *why);
typedef void (*network_contact)(void *arg, const char *host, unsigned port, bool ssh,
				const char *user);
void network_each_contact(const char *folder, network_contact each, void *arg);

#endif
