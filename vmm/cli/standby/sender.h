/* sender.h - the owner's side of a machine's standby: `vmp standby`, started by ssh on one of the
 * machine's hosts (vmm/cli/run/takeover.c).
 *
 * The standby holds a copy of the last checkpoint.  When the owner's computer is lost, it takes
 * over: it restarts the machine from there on the other hosts, as their owner.  It takes the owner
 * for lost when this connection has ended without a STANDBY_END, or nothing has come for
 * a while, and when the machine's processes on the standby's own computer have ended (presence.h);
 * as long as they live, their owner does.  The standby also takes over when the
 * owner's computer leaves: it gets the last checkpoint of a machine that stands still, and is told
 * to go on.
 *
 * An owner whose connection to its standby breaks does not know whether the standby is alive.  It
 * starts no other standby before the first one must have given up.  If it ends the machine, or ends
 * the machine's processes on that computer to start them again, it tells vmp-host there, which
 * tells the standby (far_tell_over()).  It does neither while the standby may be alive and cannot
 * be reached.
 *
 * A silent owner may be alive, and may go on without the hosts that it does not reach.  Each host
 * gives its vote (vmm/shared/vote.h) to one owner at a time.  A standby takes over only with the
 * votes of more than half of the hosts.  An owner that has not heard from its standby for a while,
 * or whose connection to it has ended, goes on only with those of at least half of them; the
 * standby sends "alive" now and then.
 * (A machine of two computers becomes two machines when the connection between them is cut; also
 * between "go on" and "up".)  vmm/cli/run/quorum.def has the rule, vmm/shared/silence.h all these
 * times.
 *
 * An owner that stood still for longer, with its whole computer, reaches all hosts when it wakes,
 * and so may its standby, which has taken over.  So it counts votes; of two computers, it does not
 * go on before the standby has answered one of its signs of life with "alive" and its number.
 *
 *   STARTS    ssh begins, or new orders are on their way: "ready", or "refused WHY"
 *   IDLE      its copy is some checkpoint; no request is waiting for an answer
 *   COPIES    the records that its copy lacks are on their way: "kept", or "refused WHY"
 *   PREPARES  it prepares the other hosts: "prepared", or "unprepared WHY"; then it is IDLE
 *   GOES      it starts the machine: "up", or "failed WHY"
 *   OFF       there is no standby
 *
 * It says "over" when it takes over the machine without having been told to.
 */
#ifndef VMM_CLI_STANDBY_SENDER_H
#define VMM_CLI_STANDBY_SENDER_H

#include "vmm/cli/cluster/ssh_streams.h"
#include "vmm/cli/parts/parts.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/shared/silence.h"

enum { SENDER_LINE = SSH_LINE };

enum sender_state {
	SENDER_OFF,
	SENDER_STARTS,
	SENDER_IDLE,
	SENDER_COPIES,
	SENDER_PREPARES,
	SENDER_GOES
};

struct sender {
	/* set by the caller */
	struct event_base *base;
	const struct silence *silence;
	int log_fd; /* gets what the standby writes to its standard error */
	void *context;
	/* The request of this state is done.  The state is IDLE now, or OFF when the machine runs
	 * there. */
	void (*done)(void *context, enum sender_state before);
	/* The request failed, for the reason in `why`.  The state is OFF, or IDLE if the standby is
	 * still there. */
	void (*failed)(void *context, enum sender_state before);

	enum sender_state state;
	struct cluster_host host;
	bool prepared; /* the other hosts are ready */
	bool is_over;  /* OFF: it has taken over the machine by itself */
	/* OFF: the connection ended without a word from the standby, which may be alive, and take
	 * over, for a while */
	bool broke;
	char why[SENDER_LINE];

	/* private */
	struct ssh_streams ssh;
	struct event *alive;
	struct kept *kept;	   /* COPIES */
	struct kept_cursor cursor; /* in `kept` */
	/* cut_ns: of the checkpoint that is copied; heard_ns: when the last line came */
	uint64_t cut_ns, heard_ns;
	/* proved_ns: when that sign of life was sent which the standby answered last; unproved_ns:
	 * OFF: how long before the end of the connection that was */
	uint64_t proved_ns, unproved_ns;
	unsigned copies;
	bool ending;	   /* STANDBY_END has been sent */
};

/* Starts the standby.  `hash` is the version of its programs (bundle.h).  Returns 0, or -1 with
 * `why`. */
int sender_start(struct sender *s, const struct cluster_host *host, const char *hash,
		 const char *orders);
/* In state IDLE: sends new orders; sends what the copy lacks of `kept`, which must not change
 * meanwhile; lets the standby prepare the other hosts, or release them. */
void sender_order(struct sender *s, const char *orders);
void sender_copy(struct sender *s, struct kept *kept, uint64_t cut_ns /* CLOCK_MONOTONIC */,
		 const struct parts *parts /* where its pages are, or NULL */);
void sender_prepare(struct sender *s);
void sender_release(struct sender *s);
/* In state IDLE, and prepared: tells the standby to take over the machine. */
void sender_go(struct sender *s);
/* Tells the standby that the machine has ended or has another standby.  The state is OFF soon
 * after. */
void sender_end(struct sender *s);
void sender_close(struct sender *s);
/* Returns whether nothing has come from the standby for `ms`, until now or until the connection
 * ended. */
bool sender_is_silent(const struct sender *s, uint32_t ms);
/* Returns for how long nothing proves that the standby follows this owner, until now or until the
 * connection ended.  Its lines prove nothing here: while this computer stood still they may have
 * waited for long.  (TRICKS: proof-by-echo) */
uint64_t sender_unproved_ns(const struct sender *s);
/* Returns whether the standby may have taken over the machine meanwhile: this process, its computer
 * or both stood still for so long. */
bool sender_may_have_gone_on(const struct sender *s);

#endif
