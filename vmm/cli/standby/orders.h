/* orders.h - what a standby must know about a machine, in addition to its last checkpoint, to take
 * it over.  As text: a `WORD VALUE` a line, then `hosts` and the hosts' lines of a cluster file,
 * the owner's first.  Pure.
 */
#ifndef VMM_CLI_STANDBY_ORDERS_H
#define VMM_CLI_STANDBY_ORDERS_H

#include "base/machine.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/shared/presence.h"

enum { MAX_ORDERS = MAX_CLUSTER_BYTES, MAX_ORDER = 96, MAX_NET_ORDER = 2048 };

struct orders {
	char name[MAX_NAME];	  /* the machine's name */
	char id[PRESENCE_ID + 1]; /* the id of its daemons (presence.h) */
	char votes[PRESENCE_ID + 1]; /* the name of its owners' votes (vote.h) */
	char host[MAX_HOST_NAME]; /* the standby's, among the hosts below */
	/* what the guest has seen of its hosts' processors (cpufeatures_print()) */
	char vendor[MAX_ORDER], features[MAX_ORDER];
	char net[MAX_NET_ORDER]; /* --net; "": none */
	char parts[4];		 /* "yes": its checkpoints are in parts (parts.h) */
	char peers[4];		 /* "yes": the hosts are peers (peers.h), named as there */
	struct machine machine; /* the part that MACHINE_STANDBY reads */
	struct cluster_file hosts; /* all hosts of the machine */
};

/* Writes the text.  Returns its length, as snprintf() does. */
size_t orders_print(const struct orders *orders, char *text, size_t bytes);
/* Parses the text.  Returns 0, or -1 with the problem. */
int orders_parse(struct orders *orders, const char *text, size_t bytes, struct problem *p);

#endif
