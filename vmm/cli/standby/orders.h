/* orders.h - what a standby must know of a machine, beside its last checkpoint, to go on with it: as text, one `WORD VALUE` a line, then
 * `hosts` and the hosts' lines of a cluster file, the owner's first.  Pure.
 */
#ifndef VMM_CLI_STANDBY_ORDERS_H
#define VMM_CLI_STANDBY_ORDERS_H

#include "base/machine.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/shared/presence.h"

enum { MAX_ORDERS = MAX_CLUSTER_BYTES, MAX_ORDER = 96 };

struct orders {
	char name[MAX_NAME];	  /* the machine's */
	char id[PRESENCE_ID + 1]; /* of its daemons (presence.h) */
	char host[MAX_HOST_NAME]; /* the standby's, of the hosts below */
	char vendor[MAX_ORDER], features[MAX_ORDER]; /* what the guest has seen of its hosts' processors (cpufeatures_print()) */
	struct machine machine; /* what MACHINE_STANDBY reads */
	struct cluster_file hosts; /* that there are */
};

/* Bytes as snprintf() counts them. */
size_t orders_print(const struct orders *orders, char *text, size_t bytes);
/* 0, or -1 with what is wrong. */
int orders_parse(struct orders *orders, const char *text, size_t bytes, struct problem *p);

#endif
