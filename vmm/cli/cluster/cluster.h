/* cluster.h - the hosts of a machine that are other computers: `vmp run --cluster FILE`, and the
 * other commands that start machines.
 *
 * Host 0 is this computer, the first line of the file.  The others are reached by ssh (far.h).
 * First all hosts are prepared: each gets the programs and sends its facts, and the facts must
 * agree.  Then each is told what to run.  If hosts fail before that, an error line for each says
 * what to do.
 *
 * A machine with checkpoints that loses hosts goes on on the others (run/go_back.c).  Then all ssh
 * processes are ended, and the remaining hosts are prepared anew; nothing is left there of the
 * machine before.
 */
#ifndef VMM_CLI_CLUSTER_CLUSTER_H
#define VMM_CLI_CLUSTER_CLUSTER_H

#include "vmm/cli/cluster/far.h"
#include "vmm/cli/cluster/host_names.h"
#include "vmm/cli/cluster/peers.h"
#include "vmm/shared/presence.h"

struct cluster {
	char path[4096];
	/* The hosts are peers (peers.h): the text of a file, instead of one; NULL: they are not.
	 * held: what reserves them. */
	char *given;
	struct peers_held held;
	struct cluster_file file;
	struct bundle bundle;
	struct far *far[MAX_NODES]; /* by the host's number; NULL: no such host, or this computer */
	struct far far_room[MAX_NODES];
	struct cluster_host host[MAX_NODES]; /* the hosts' lines in the file */
	struct host_names names;
	/* what the guest may use: this computer's processor without what other hosts lack */
	struct hostcpu *cpu;
	bool fixed;		     /* the guest has used `cpu` already, so it cannot change */
	/* mem_mib: the guest's memory. host_mem_mib: how much of it a host may hold if its line
	 * does not say; 0: all. */
	uint32_t mem_mib, host_mem_mib;
	/* of the daemons that run; both are new after a return to a checkpoint */
	char secret[2 * 32 + 1], id[PRESENCE_ID + 1];
	/* The name under which the machine's owners, this one and its standbys, ask for votes
	 * (vmm/shared/vote.h); and this owner's own name. */
	char votes[PRESENCE_ID + 1], owner[PRESENCE_ID + 1];
	bool asks; /* each host that is READY is asked for its vote */
	enum vote vote_here; /* the vote of this computer; `held_here` holds it if it is GIVEN */
	int held_here;
	struct event_base *base;
	struct event *alive;
	/* Called when a host's daemon listens (far->port), a host that was added is READY, or a
	 * host is OVER. */
	void (*changed)(void *context, unsigned host);
	void *context;
	bool preparing; /* changed() is not called yet */
	const char *rundir;
	int log_fd;
};

/* What a machine's hosts say about its owner's votes, this computer's included. */
struct cluster_votes {
	bool wait; /* some host may still give its vote */
	bool held; /* another owner has the vote of some host */
	bool taken; /* and it runs the machine */
};

/* Reads the file.  `cpu` is what the guest may use of this computer's processor; it must stay
 * valid.  `fixed`: the guest has run with it before.  Returns 0, or -1 with the problem. */
int cluster_open(struct cluster *cluster, const char *path, struct hostcpu *cpu, bool fixed,
		 struct problem *p);
/* Returns 0 if the file's first host is this computer, or -1 with the problem. */
int cluster_begins_here(const struct cluster *cluster, struct problem *p);
void cluster_close(struct cluster *cluster);
/* The same, of a text instead of a file: the hosts are peers, and `held` reserves them.  It is the
 * cluster's from then on. */
int cluster_open_peers(struct cluster *cluster, const char *text, int held, struct hostcpu *cpu,
		       bool fixed, struct problem *p);
/* Adds to that text one more host, which `held` reserves, and prepares it as number `host`; as
 * cluster_add(). */
int cluster_add_peer(struct cluster *cluster, unsigned host, const char *name, const char *line,
		     int held, struct problem *p);

/* Begins to prepare the first `hosts` hosts of the file.  Returns 0, or -1 with the problem. */
int cluster_prepare(struct cluster *cluster, uint32_t hosts, struct problem *p);
/* Returns true when no host is being prepared any more. */
bool cluster_settled(const struct cluster *cluster);
/* Checks, after that, whether the hosts can form a machine; then `cpu` is what its guest sees.
 * Returns 0, or -1 with the problem. */
int cluster_agree(struct cluster *cluster, struct problem *p);
/* Writes which hosts are being waited for, for people; "" if none. */
const char *cluster_doing(const struct cluster *cluster, char *text, size_t bytes);

/* Prepares a host of the file as number `host` while the machine runs. changed() is called when it
 * is READY or OVER. */
int cluster_add(struct cluster *cluster, unsigned host, const char *name, struct problem *p);
/* READY: checks whether the host can join the machine that runs.  Returns 0, or -1 with the
 * problem. */
int cluster_admit(struct cluster *cluster, unsigned host, struct problem *p);
/* READY: runs vmp-node there with these arguments and those of the file.  Returns the local process
 * that represents it, or -1 with the problem. */
pid_t cluster_go(struct cluster *cluster, unsigned host, char *const *arguments, struct problem *p);
/* Writes "ADDRESS PORT DESTINATION" of a host whose daemon listens.  Writes "" for a host whose
 * line in the file says what it connects to. */
const char *cluster_where(const struct cluster *cluster, unsigned host, char *text, size_t bytes);

/* Handles a child that was reaped.  Returns true if it was an ssh of the cluster. */
bool cluster_reaped(struct cluster *cluster, pid_t pid, int status);
/* cluster_why() returns why a host is OVER, or NULL. cluster_is_lost() returns whether it died
 * instead of ending in order. */
const char *cluster_why(const struct cluster *cluster, unsigned host);
bool cluster_is_lost(const struct cluster *cluster, unsigned host);
/* Calls far_tell_over() for all hosts. */
void cluster_tell_over(struct cluster *cluster);
/* Ends all hosts; their ssh processes end soon. */
void cluster_hang_up(struct cluster *cluster);
/* Returns whether some ssh has not ended yet; those to the hosts in the bit set `but` do not
 * count. */
bool cluster_is_left(const struct cluster *cluster, uint32_t but);
/* Notes that all ssh processes have been reaped, by whatever code. */
void cluster_all_reaped(struct cluster *cluster);
/* Removes a host from the machine. */
void cluster_forget(struct cluster *cluster, unsigned host);

/* Keeps the hosts in the bit set `hosts`, which contains this computer, after all ssh processes
 * have ended.  Numbers them anew in their order and prepares them; changed() is called for each.
 * `silent`: bit set of those that were silent.  Returns 0, or -1 with the problem. */
int cluster_regroup(struct cluster *cluster, uint32_t hosts, uint32_t silent, struct problem *p);
/* Returns whether some host is being prepared that was silent, or one that was not. */
bool cluster_waits_for(const struct cluster *cluster, bool silent);
/* Asks all hosts for their votes: those that are READY at once, this computer included, and the
 * others as soon as they are.  An owner does so from the first host on. */
void cluster_ask_votes(struct cluster *cluster);
struct cluster_votes cluster_count_votes(struct cluster *cluster);
/* The hosts that have given their votes are enough: this owner is about to run the machine. */
void cluster_runs(const struct cluster *cluster);
/* Keeps, after that, the hosts that are READY and, if they were asked, have given their votes; and
 * numbers them once more.  `may_lack`: as well those where nobody gets a vote (VOTE_NONE).  Returns
 * how many there are; `p` says which others are missing, and why. */
uint32_t cluster_keep_ready(struct cluster *cluster, bool may_lack, struct problem *p);
/* Returns how many that are now, and writes their lines. */
uint32_t cluster_count_ready(struct cluster *cluster, bool may_lack,
			     struct cluster_host lines[MAX_NODES]);

#endif
