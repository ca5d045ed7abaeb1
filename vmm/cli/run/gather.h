/* gather.h - when a machine's owner that has lost a host stops waiting for the other ones, which it
 * prepares anew by ssh.  Pure: gather.def is the table.
 *
 * A host may be slow to log in, and is waited for.  But an ssh to a host that is beyond a cut of
 * the network, as the lost one is, hangs for half a minute.  Node 0, which has reported the loss,
 * had heard nothing of such a host for a while, either.
 */
#ifndef VMM_CLI_RUN_GATHER_H
#define VMM_CLI_RUN_GATHER_H

#include <stdbool.h>

/* In the order of the table's columns. */
struct gather_facts {
	bool is_taken; /* a host belongs to another owner, which runs the machine */
	/* A host that answers has not decided about its vote.  It may also belong to another owner,
	 * and come back: a standby that is given too few votes ends. */
	bool is_undecided;
	bool comes;	   /* a host is being prepared that was not silent */
	bool silent_comes; /* a host is being prepared that was silent */
	/* with the votes of the hosts that are ready, the machine can go on, whoever has those of
	 * the others (quorum.def) */
	bool is_enough;
	bool is_late;	   /* an ssh has had time to log in */
};

bool gather_decides(const struct gather_facts *f);

#endif
