/* standby_step.h - the next step of a machine's owner with the standby that it has.  Pure:
 * standby_step.def is the table.
 *
 * The standby gets its orders, then a copy of each checkpoint.  If host 0 is to leave, it prepares
 * the hosts, gets the last checkpoint too, and takes the machine over.
 */
#ifndef VMM_CLI_RUN_STANDBY_STEP_H
#define VMM_CLI_RUN_STANDBY_STEP_H

#include <stdbool.h>

enum standby_step {
	STEP_NONE,    /* wait: something is under way, or nothing is to be done */
	STEP_END,     /* no standby is wanted there any more */
	STEP_ORDER,   /* send the orders, which have changed */
	STEP_COPY,    /* send the last checkpoint */
	STEP_PREPARE, /* let it prepare the hosts that remain */
	STEP_RELEASE, /* let it leave those hosts: host 0 stays */
	STEP_LAST,    /* stop the machine with its last checkpoint */
	STEP_GO,      /* hand the machine over */
};

/* In the order of the table's columns. */
struct standby_facts {
	bool is_wanted;	 /* the machine wants a standby, and has its host */
	bool is_idle;	 /* the standby has done what it was told */
	bool is_there;	 /* the machine is there: it is not started, loaded or going back */
	bool leaves;	 /* host 0 is to leave */
	bool stands;	 /* and the machine stands still, with its last checkpoint complete */
	bool is_prepared; /* it has prepared the hosts */
	bool has_orders; /* those of now */
	bool has_copy;	 /* of the checkpoint that is kept */
	bool replaces;	 /* the kept checkpoint is being replaced, and cannot be copied */
	bool stops;	 /* the last checkpoint has been asked for */
};

enum standby_step standby_step(const struct standby_facts *f);

#endif
