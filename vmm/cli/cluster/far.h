/* far.h - one host that is another computer, as `vmp` sees it: an ssh that runs vmp-host there.
 *
 *   PROBE  ssh asks whether this version's programs are there; if so, it starts them
 *   COPY   they are not: another ssh unpacks the bundle there, then PROBE again
 *   READY  vmp-host has sent the facts of its computer (facts.h), and waits
 *   RUNS   vmp-host has been told what to run, and has started the node daemon
 *   OVER   ssh has ended, or could not start; `why` says why
 *
 * Text goes both ways, a line at a time.
 *
 *   from there: need; refused WHY; here FACTS; vote ANSWER (vote.h); port N (where the daemon
 *               listens); ended HOW; told or alone: the answer to "over" (a standby is there, or
 *               none is)
 *   to there:   vote OWNER NAME (far_ask_vote()); arg TEXT (one for each argument of vmp-node);
 *               secret HEX; present NAME (presence.h); go; over (far_tell_over()); an empty line:
 *               vmp is still alive
 *
 * When its standard input ends, vmp-host ends everything that it has started, and itself.  So
 * nothing stays behind there when vmp or the connection is lost.
 *
 * Tunnels through ssh (vmm/node/wire/links.h) share vmp-host's connection, by OpenSSH's
 * ControlMaster.  This saves a second login; and since sshd runs a command on this connection, it
 * does not delay small messages.
 */
#ifndef VMM_CLI_CLUSTER_FAR_H
#define VMM_CLI_CLUSTER_FAR_H

#include <event2/event.h>
#include <sys/types.h>
#include "vmm/cli/cluster/bundle.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/shared/facts.h"
#include "vmm/shared/vote.h"

enum far_state { FAR_OVER, FAR_PROBE, FAR_COPY, FAR_READY, FAR_RUNS };
enum {
	FAR_LINE = 400,
	FAR_CONTROL =
		92 /* a socket's name has at most 108 characters, and ssh appends 17 for a moment */
};

struct far {
	/* set by the caller before far_start() */
	struct cluster_host host; /* the host's line of the file */
	const struct bundle *bundle;
	struct event_base *base;
	/* the socket by which others may share the connection; "": none */
	char control[FAR_CONTROL];
	int log_fd; /* gets the remote standard error, once the host is READY */
	/* `state`, `port` or, while it is READY, `vote` has changed */
	void (*changed)(void *context, struct far *far);
	void *context;
	bool silent; /* nothing had come from the host before its ssh was started */

	enum far_state state;
	pid_t pid; /* the ssh; 0: none */
	struct host_facts facts; /* from READY on */
	unsigned port;		 /* where the daemon listens; 0: not yet */
	enum vote vote;		 /* what the computer has answered last */
	char why[FAR_LINE];	 /* OVER: the reason */
	bool lost;		 /* OVER: the host died instead of ending in order */
	bool alone;		 /* RUNS: the host has answered that no standby is there */

	/* private */
	int in, out, err;
	struct event *on_out, *on_err, *on_room;
	size_t copied; /* bytes of the bundle that were sent */
	bool needs, was_copied, hung_up;
	/* `line` is being read, `said` is the last line of standard error, `ended` is behind
	 * "ended" */
	char line[FAR_LINE], said[FAR_LINE], ended[FAR_LINE];
	size_t line_bytes;
};

/* Starts the ssh.  Returns 0, or -1 with `why` set and state FAR_OVER. */
int far_start(struct far *far);
/* READY: runs vmp-node with these arguments (NULL-terminated).  `secret` is hexadecimal, `id` is
 * the machine's.  Returns 0, or -1. */
int far_go(struct far *far, char *const *arguments, const char *secret, const char *id);
/* READY: asks for the computer's vote of this name, for this owner (presence.h).  What is to run
 * there is started when the vote is given. */
void far_ask_vote(struct far *far, const char *name, const char *owner);
/* Tells a READY host that vmp is still alive. */
void far_tell_alive(struct far *far);
/* Handles the end of its ssh, process far->pid, which was reaped. */
void far_reaped(struct far *far, int status);
/* RUNS: announces that the machine is about to end, so that a standby there does not take vmp for
 * lost (presence.h). */
void far_tell_over(struct far *far);
/* Ends what runs there: vmp-host notices that its input has ended.  The host is OVER when its ssh
 * was reaped. */
void far_hang_up(struct far *far);
/* Kills the ssh and frees everything. */
void far_close(struct far *far);

/* Writes in a few words what the host does, for a user who waits: "connecting", "copying vmp: 40
 * %". */
const char *far_doing(const struct far *far, char *text, size_t bytes);
/* Writes the destination and ssh's options as one word: ssh://USER@HOST:PORT. */
void far_destination(const struct cluster_host *host, char *text, size_t bytes);
/* Returns whether a host is lost, and has not ended in order: its ssh ended with this status of
 * waitpid(), and vmp-host reported this end of the daemon ("": none).  Pure. */
bool far_is_lost(int status, const char *ended);
/* Writes why an ssh failed, from its exit status and its last line of text, and what to do.
 * Pure. */
void far_explain(const struct cluster_host *host, int status, const char *said, char *why,
		 size_t bytes);

#endif
