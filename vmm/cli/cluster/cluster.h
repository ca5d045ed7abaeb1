/* cluster.h - the hosts of a machine that are other computers: `vmp run --cluster FILE`, and all that starts machines.
 *
 * Host 0 is this computer, the first line of the file; the others are reached by ssh (far.h).  First all are prepared: their
 * programs are there, they have said what they are, and go together.  Then they are told what to run.  One that fails before that
 * is named with what to do, as are all others that fail meanwhile.
 *
 * A machine with checkpoints that loses hosts goes on on the others (run/go_back.c): all ssh's are ended, and those hosts are prepared
 * anew, without what is left of the machine before.
 */
#ifndef VMM_CLI_CLUSTER_CLUSTER_H
#define VMM_CLI_CLUSTER_CLUSTER_H

#include "vmm/cli/cluster/far.h"
#include "vmm/cli/cluster/host_names.h"
#include "vmm/shared/presence.h"

struct cluster {
	char path[4096];
	struct cluster_file file;
	struct bundle bundle;
	struct far *far[MAX_NODES];  /* by host; NULL: there is no such host, or it is this computer */
	struct far far_room[MAX_NODES];
	struct cluster_host host[MAX_NODES]; /* their lines */
	struct host_names names;
	struct hostcpu *cpu;	     /* what the guest may use: this computer's processor, less what other hosts lack */
	bool fixed;		     /* it has used it already */
	uint32_t mem_mib, host_mem_mib; /* the guest's memory; how much of it a host may hold whose line does not say, 0: all */
	char secret[2 * 32 + 1], id[PRESENCE_ID + 1]; /* of the daemons that run: both anew when it goes back */
	struct event_base *base;
	struct event *alive;
	/* A host's daemon listens (far->port), a host that was added is READY, or a host is OVER. */
	void (*changed)(void *context, unsigned host);
	void *context;
	bool preparing; /* nobody hears of changes yet */
	const char *rundir;
	int log_fd;
};

/* Read the file. `cpu` is what the guest may use of this computer's processor, `fixed` if it has run before; it stays. 0, or -1 with
 * the problem. */
int cluster_open(struct cluster *cluster, const char *path, struct hostcpu *cpu, bool fixed, struct problem *p);
/* Is its first host this computer? 0, or -1. */
int cluster_begins_here(const struct cluster *cluster, struct problem *p);
void cluster_close(struct cluster *cluster);

/* Begin to prepare the first `hosts` of the file. 0, or -1. */
int cluster_prepare(struct cluster *cluster, uint32_t hosts, struct problem *p);
/* True: nothing is under way any more. */
bool cluster_settled(const struct cluster *cluster);
/* After that: may they be a machine? Then `cpu` is what its guest sees. */
int cluster_agree(struct cluster *cluster, struct problem *p);
/* Which hosts are being waited for, for people; "" if none. */
const char *cluster_doing(const struct cluster *cluster, char *text, size_t bytes);

/* Prepare a host of the file as number `host`, while the machine runs; changed() is called when it is READY or OVER. */
int cluster_add(struct cluster *cluster, unsigned host, const char *name, struct problem *p);
/* READY: may it join the machine that runs? */
int cluster_admit(struct cluster *cluster, unsigned host, struct problem *p);
/* READY: run vmp-node with these arguments, and those that the file adds. The process that stands for it here, or -1. */
pid_t cluster_go(struct cluster *cluster, unsigned host, char *const *arguments, struct problem *p);
/* "ADDRESS PORT DESTINATION" of a host whose daemon listens, but that says itself in the file what it connects to: "". */
const char *cluster_where(const struct cluster *cluster, unsigned host, char *text, size_t bytes);

/* A child was reaped. True: it was one of ours. */
bool cluster_reaped(struct cluster *cluster, pid_t pid, int status);
/* Why a host is over, or NULL; it died, and did not end in order. */
const char *cluster_why(const struct cluster *cluster, unsigned host);
bool cluster_is_lost(const struct cluster *cluster, unsigned host);
/* far_tell_over() to all. */
void cluster_tell_over(struct cluster *cluster);
/* End them: their ssh's end soon. */
void cluster_hang_up(struct cluster *cluster);
bool cluster_is_left(const struct cluster *cluster); /* some ssh has not ended yet */
/* All have been reaped, by whomever. */
void cluster_all_reaped(struct cluster *cluster);
/* It is no host any more. */
void cluster_forget(struct cluster *cluster, unsigned host);

/* All ssh's have ended, and the hosts of this bit set, of which this computer is one, are left: they are numbered anew, in their
 * order, and prepared; changed() is called for each. 0, or -1. */
int cluster_regroup(struct cluster *cluster, uint32_t hosts, struct problem *p);
/* After that: those that are READY stay, and are numbered once more. How many there are; `p`: which others are missing, and why. */
uint32_t cluster_keep_ready(struct cluster *cluster, struct problem *p);

#endif
