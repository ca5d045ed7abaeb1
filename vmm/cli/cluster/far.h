/* far.h - one host that is another computer, as `vmp` sees it: an ssh that runs vmp-host there.
 *
 *   PROBE  ssh asks whether this version's programs are there; if so, they are started
 *   COPY   they are not: another ssh unpacks the bundle there, then PROBE again
 *   READY  vmp-host has said what its computer is (facts.h), and waits
 *   RUNS   it has been told what to run, and has started the node daemon
 *   OVER   ssh has ended, or could not begin; `why` says so
 *
 * Text goes both ways, a line at a time.  From there: need; refused WHY; here FACTS; port N (where the daemon listens); ended HOW.
 * To there: arg TEXT (one for each argument of vmp-node); secret HEX; present NAME (presence.h); go; over (far_tell_over()).  An empty
 * line says that we are still there.  When its standard input ends, vmp-host ends everything that it has started, and itself:
 * whatever becomes of us or of the connection, nothing stays behind.
 *
 * Tunnels through ssh (vmm/node/wire/links.h) share the connection on which vmp-host runs, by OpenSSH's ControlMaster: no second login, and sshd,
 * which runs something on it, does not hold small messages back.
 */
#ifndef VMM_CLI_CLUSTER_FAR_H
#define VMM_CLI_CLUSTER_FAR_H

#include <event2/event.h>
#include <sys/types.h>
#include "vmm/cli/cluster/bundle.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/shared/facts.h"

enum far_state { FAR_OVER, FAR_PROBE, FAR_COPY, FAR_READY, FAR_RUNS };
enum { FAR_LINE = 400, FAR_CONTROL = 92 /* ssh adds 17 characters for a moment: 108 are all that a socket's name may have */ };

struct far {
	/* by the caller, before far_start() */
	struct cluster_host host; /* its line of the file */
	const struct bundle *bundle;
	struct event_base *base;
	char control[FAR_CONTROL]; /* the socket by which others may use the connection; "": none */
	int log_fd; /* what the far side writes to its standard error, once it is ready */
	void (*changed)(void *context, struct far *far); /* its state, or its port */
	void *context;

	enum far_state state;
	pid_t pid; /* of ssh; 0: none */
	struct host_facts facts; /* from READY on */
	unsigned port;		 /* where its daemon listens; 0: not yet */
	char why[FAR_LINE];	 /* OVER */
	bool lost;		 /* OVER, and not in order */

	/* its own */
	int in, out, err;
	struct event *on_out, *on_err, *on_room;
	size_t copied; /* bytes of the bundle */
	bool needs, was_copied, hung_up;
	char line[FAR_LINE], said[FAR_LINE], ended[FAR_LINE]; /* being read; last of its standard error; "ended" */
	size_t line_bytes;
};

/* 0, or -1 with `why` set: then its state is FAR_OVER. */
int far_start(struct far *far);
/* READY: run vmp-node with these arguments (NULL-terminated); `secret` is hexadecimal, `id` the machine's. 0, or -1. */
int far_go(struct far *far, char *const *arguments, const char *secret, const char *id);
/* We are still there. */
void far_tell_alive(struct far *far);
/* Its ssh, process far->pid, was reaped. */
void far_reaped(struct far *far, int status);
/* RUNS: we end what runs there.  Who stands by there need not believe that we are lost (presence.h). */
void far_tell_over(struct far *far);
/* End what it does: vmp-host hears of it. It is over when its ssh was reaped. */
void far_hang_up(struct far *far);
/* Forget all about it. */
void far_close(struct far *far);

/* In a few words, for whoever waits: "connects", "copying vmp: 40 %". */
const char *far_doing(const struct far *far, char *text, size_t bytes);
/* How ssh's options and destination read as one word: ssh://USER@HOST:PORT. */
void far_destination(const struct cluster_host *host, char *text, size_t bytes);
/* An ssh has ended with this status of waitpid(), and vmp-host has said this of its daemon's end ("": nothing): is the host lost, or
 * has it ended in order? Pure. */
bool far_is_lost(int status, const char *ended);
/* Why an ssh failed, from its exit status and the last that it said, and what to do. Pure. */
void far_explain(const struct cluster_host *host, int status, const char *said, char *why, size_t bytes);

#endif
