/* daemon.h - the daemon of a peer, as its files see it.  One thread, one libevent loop. */
#ifndef VPG_DAEMON_H
#define VPG_DAEMON_H

#include <event2/event.h>
#include "phnx/phnx.h"
#include "vpg/peer/network.h"
#include "vpg/wire/message.h"

struct tunnel;
struct shell;
struct enrol;

struct daemon {
	struct event_base *base;
	struct network net;
	SSL_CTX *ctx;			/* for tunnels */
	struct tunnel *tunnels;		/* to other peers, and the two ends of the one to itself */
	struct tunnel *self[2];		/* those ends: a stream's writer has 0, its reader 1 */
	struct shell *shells;
	struct enrol *enrol;
	struct event *bury, *announce;
	char refused[160];		/* why another peer refused this one; "": none did */
	uint32_t speed;			/* of a processor: speed_measure() */
	bool ending, again;		/* again: it starts again as a new process */
	bool unwritten;			/* the file of members lacks a member that was learned */
};

/* Starts the node of the overlay network; it listens, dials and announces itself from then on. */
int meeting_start(struct daemon *d, struct why *why);
void meeting_stop(struct daemon *d);
/* Dials one more contact from now on. */
void meeting_dial(const char *host, unsigned port, bool ssh, const char *user);

/* Serves what another daemon says (hear.c). */
void hear_open(struct tunnel *t);
void hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m);
void hear_closed(struct tunnel *t, const char *why);
/* Asks every peer for its state.  shells_peer_answered() and borrow_peer_answered() follow. */
void hear_ping_all(struct daemon *d);
bool hear_all_answered(const struct daemon *d);
/* Learns a new or revoked member: writes it, tells others, and ends the tunnels of a revoked
 * key. */
void hear_member(struct daemon *d, const struct member *m, const struct tunnel *from);
/* Writes the file of members if it lacks some: a list of hundreds of new members is written
 * once. */
void hear_write_members(struct daemon *d);
/* Sends the list's digest to one peer, each time to another one. */
void hear_compare(struct daemon *d);
/* Tells all connected peers of one member. */
void hear_announce(struct daemon *d, const struct member *m);

/* Shells (shells.c): the daemon's socket. */
int shells_start(struct daemon *d, struct why *why);
void shells_stop(struct daemon *d);
void shells_peer_answered(struct daemon *d);
void shell_say(struct shell *s, enum vpg_type type, const void *fields);
struct daemon *shell_daemon(const struct shell *s);

/* Computers that join (enrol.c): a port that listens while invitations are open. */
int enrol_start(struct daemon *d, struct why *why);
void enrol_stop(struct daemon *d);

#endif
