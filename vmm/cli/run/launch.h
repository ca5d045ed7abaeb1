/* launch.h - the machine's processes: starts the node daemons, notices their deaths, leaves nothing
 * behind.  Each daemon on another computer (cluster/cluster.h) is started by an ssh, which
 * represents it here.
 *
 * `vmp run` becomes the reaper of its descendants.  So it becomes the parent of a daemon's monitors
 * and VM processes when the daemon dies, and launch_end() can end them too.
 */
#ifndef VMM_CLI_RUN_LAUNCH_H
#define VMM_CLI_RUN_LAUNCH_H

#include <sys/types.h>
#include "base/cpufeatures.h"
#include "base/limits.h"
#include "base/machine.h"
#include "base/types.h"
#include "base/wire.h"
#include "vmm/shared/problem.h"

struct cluster;

struct launch_plan {
	const char *rundir;
	struct machine machine;
	int log_fd;
	const struct cpu_features *features; /* the processors' features that the guest sees */
	/* for node 0; a loaded machine has only the last */
	const char *kernel, *image, *appended, *command_line;
	/* its hosts have been prepared; NULL: all daemons are on this computer */
	struct cluster *cluster;
	uint8_t place[MAX_CPUS]; /* with a cluster: where processors begin */
};

struct launch {
	pid_t node[MAX_NODES]; /* 0: ended and reaped */
	int status[MAX_NODES]; /* of waitpid(), once the daemon has ended */
	uint32_t n_nodes;
	/* bit set of daemons that may end, since they are not part of the machine yet, or not any
	 * more */
	uint32_t loose;
	/* bit set of hosts from which nothing came for a while: their ssh may never end */
	uint32_t silent;
	struct cluster *cluster; /* or NULL */
};

/* Starts all node daemons.  On an error it ends those that were started. */
int launch_start(struct launch *launch, const struct launch_plan *plan, struct problem *p);

/* Starts one more daemon, loose at first, for a machine whose hosts are `hosts` (a bit set).
 * Returns 0, or -1 with the problem. */
int launch_add(struct launch *launch, const struct launch_plan *plan, uint32_t node, uint32_t hosts,
	       struct problem *p);

/* Reaps children.  Returns true if a node daemon that was not loose has ended, now or before. */
bool launch_reap(struct launch *launch);
/* Takes a loose daemon that has ended.  Returns its number, with its end in `p`, and forgets it; -1
 * if there is none. */
int launch_take_loose(struct launch *launch, struct problem *p);
/* From now on this daemon's end does not end the machine.  `kill`: ends it. */
void launch_let_go(struct launch *launch, uint32_t node, bool kill);
/* Describes how daemons have ended.  One that was killed is named first, since others may have
 * ended because of it. */
void launch_describe(const struct launch *launch, struct problem *p);

/* Returns the bit set of hosts that are lost: their daemons were killed, or their computers or
 * connections were lost. */
uint32_t launch_killed(const struct launch *launch);
/* Kills the daemons of these hosts, or the ssh processes that represent them. */
void launch_kill(const struct launch *launch, uint32_t nodes);

/* Waits up to `grace_ms` for the daemons to end by themselves; some seconds more for those on other
 * computers, where nobody else can kill what is left, unless they are silent.  Then kills and reaps
 * everything that is left of the machine.  `but`: children that are not part of it, with a 0 at the
 * end; or NULL. */
void launch_end(struct launch *launch, unsigned grace_ms, const pid_t *but);

#endif
