/* reserve.h - the computers of a machine that a standby has taken over are reserved anew.
 *
 * What a machine borrows over the user's network (peers.h) is reserved by its owner's connection
 * to the network's daemon, and free when that owner is gone.  So the new owner asks the daemon of
 * its own computer for each of them, one after the other, for as many processors as the machine's
 * first owner had reserved there.  The machine runs meanwhile.
 *
 * A lender may not have noticed yet that the owner before is gone, or may have lent the computer to
 * another machine in between.  Then it refuses, and is asked again after a while.
 */
#ifndef VMM_CLI_CLUSTER_RESERVE_H
#define VMM_CLI_CLUSTER_RESERVE_H

#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/cli/cluster/peers.h"
#include "vmm/shared/loop.h"

enum { RESERVE_AGAIN_MS = 5000 };

struct reserve {
	/* set by the caller */
	const struct loop *loop;
	struct peers_held *held; /* gets what is reserved */
	void *context;
	/* Returns whether this computer is still a host of the machine. */
	bool (*is_host)(void *context, const char *nick);
	void (*say)(void *context, const char *line); /* for the log */
	uint32_t again_ms; /* so long after some have refused, these are asked again */

	/* private */
	struct { char nick[MAX_HOST_NAME]; uint32_t cpus, mem_mib; bool said; } left[MAX_NODES];
	uint32_t n, at; /* of `left`, those that are not reserved yet; who is asked */
	struct peers_asked asked;
	struct loop_event *on_asked, *again;
};

/* Begins to reserve these hosts, except those of no processors.  guest_mib: how much of the guest's
 * memory each may hold.  Returns 0, or -1 with the problem. */
int reserve_begin(struct reserve *r, const struct cluster_host *hosts, uint32_t n,
		  uint32_t guest_mib, struct problem *p);
/* Stops.  What is reserved stays so. */
void reserve_end(struct reserve *r);

#endif
