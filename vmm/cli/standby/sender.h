/* sender.h - a machine's owner, and its standby: `vmp standby`, by ssh on one of the machine's hosts (vmm/cli/run/takeover.c).
 *
 * It holds a copy of the last checkpoint.  When the owner's computer is lost, it goes on with the machine from there on the other hosts,
 * as their owner.  That is when this connection ends and no STANDBY_END has come, or nothing comes for STANDBY_SILENCE_S, and the
 * machine's processes on the standby's own computer have ended (presence.h): as long as they live, their owner does.  Or the owner's
 * computer shall go: then the standby gets the last checkpoint of a machine that stands still, and is told to go on.
 *
 * An owner whose connection to its standby breaks does not know what has become of that one, and starts no other before it must have
 * given up.  If it ends the machine, or the machine's processes on that computer to start it again, it tells vmp-host there, which tells
 * whoever stands by (far_tell_over()), unless that one may live and nobody reaches it.  (A connection that breaks between "go on" and
 * "up", while both live, leaves two machines: nobody can know then what the other has done.)
 *
 * Of an owner that is silent nobody knows whether it lives: it goes on, too, if it can, without those whom it does not reach.  So the
 * standby goes on only with at least half of the hosts, and so does an owner that has not heard of its standby for SENDER_DOUBT_S: it
 * says "alive" now and then.  (Of two computers, whose connection is cut, each has a machine then.)
 *
 *   STARTS    ssh begins, or new orders are on their way: "ready", or "refused WHY"
 *   IDLE      its copy is some checkpoint; nothing is under way
 *   COPIES    what it lacks of the one that stands is: "kept", or "refused WHY"
 *   PREPARES  it gets the other hosts ready: "prepared", or "unprepared WHY", and it is IDLE as before
 *   GOES      it starts the machine: "up", or "failed WHY"
 *   OFF       there is none
 *
 * It says "over" when it goes on with the machine without having been told to.
 */
#ifndef VMM_CLI_STANDBY_SENDER_H
#define VMM_CLI_STANDBY_SENDER_H

#include <event2/bufferevent.h>
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/cli/snapshot/kept.h"

enum { STANDBY_SILENCE_S = 15, STANDBY_ALIVE_S = 2, SENDER_DOUBT_S = 6, SENDER_LINE = 400 };

enum sender_state { SENDER_OFF, SENDER_STARTS, SENDER_IDLE, SENDER_COPIES, SENDER_PREPARES, SENDER_GOES };

struct sender {
	/* by the caller */
	struct event_base *base;
	int log_fd; /* what it writes to its standard error */
	void *context;
	/* What was asked of it in this state is done: its state is IDLE now, or OFF when the machine is up there. */
	void (*done)(void *context, enum sender_state before);
	/* It is not, for the reason in `why`: its state is OFF, or IDLE if there is another way. */
	void (*failed)(void *context, enum sender_state before);

	enum sender_state state;
	struct cluster_host host;
	bool prepared; /* the other hosts are ready */
	bool is_over;  /* OFF: it has gone on with the machine on its own */
	bool broke;    /* OFF: its connection has ended without a word of its own: it may be there for STANDBY_SILENCE_S */
	char why[SENDER_LINE];

	/* its own */
	pid_t ssh;
	struct bufferevent *to, *from, *err;
	struct event *alive;
	struct kept *kept;	   /* COPIES */
	struct kept_cursor cursor; /* of it */
	uint64_t cut_ns, heard_ns; /* of what is copied; when it has said anything last */
	unsigned copies;
	char said[SENDER_LINE]; /* last of its standard error */
	bool ending;	   /* STANDBY_END is on its way */
};

/* 0, or -1 with `why`. `hash`: which version's programs (bundle.h). */
int sender_start(struct sender *s, const struct cluster_host *host, const char *hash, const char *orders);
/* IDLE: new orders; what its copy lacks of `kept`, which stays as it is meanwhile; get the other hosts ready, or let go of them. */
void sender_order(struct sender *s, const char *orders);
void sender_copy(struct sender *s, struct kept *kept, uint64_t cut_ns /* CLOCK_MONOTONIC */);
void sender_prepare(struct sender *s);
void sender_release(struct sender *s);
/* IDLE and prepared: go on with the machine. */
void sender_go(struct sender *s);
/* The machine has ended, or another one stands by: OFF, in a moment. */
void sender_end(struct sender *s);
void sender_close(struct sender *s);
/* Nothing has come of it for SENDER_DOUBT_S, now or when its connection ended. */
bool sender_is_silent(const struct sender *s);

#endif
