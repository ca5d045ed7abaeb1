/* cluster_votes.h - the votes of a machine's hosts (vmm/shared/vote.h), for cluster.c alone; what
 * others call is in cluster.h. */
#ifndef VMM_CLI_CLUSTER_CLUSTER_VOTES_H
#define VMM_CLI_CLUSTER_CLUSTER_VOTES_H

#include "vmm/cli/cluster/cluster.h"

/* Makes a name that nobody else has.  Returns 0, or -1 with the problem. */
int cluster_random_name(char name[PRESENCE_ID + 1], struct problem *p);
/* Asks a host for its vote if it is READY and was not asked yet. */
void cluster_ask_vote(const struct cluster *cluster, struct far *far);
/* The same of this computer, which may be asked again and again. */
void cluster_ask_vote_here(struct cluster *cluster);
void cluster_give_up_vote(struct cluster *cluster); /* this computer's */
/* Returns why a host that is READY cannot be kept, for want of its vote; or NULL.  `may_lack`: one
 * where nobody gets a vote can. */
const char *cluster_lacks_vote(const struct far *far, bool may_lack);

#endif
