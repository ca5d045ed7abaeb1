/* launch.h - the machine's processes: start the node daemons, hear of their deaths, leave nothing behind.  Daemons on other
 * computers (cluster/cluster.h) are started by an ssh each, which stands for them here.
 *
 * `vmp run` becomes the reaper of its descendants, so that a daemon's orphaned monitors and VM processes come to it when
 * the daemon dies, and launch_end() can end them too.
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
	const struct cpu_features *features; /* what the guest sees of processors */
	/* for node 0; of a machine that is loaded, the last alone */
	const char *kernel, *image, *appended, *command_line;
	struct cluster *cluster; /* its hosts are prepared; NULL: all daemons are on this computer */
	uint8_t place[MAX_CPUS]; /* with a cluster: where processors begin */
};

struct launch {
	pid_t node[MAX_NODES]; /* 0: ended, and reaped */
	int status[MAX_NODES]; /* of waitpid(), once it has ended */
	uint32_t n_nodes;
	uint32_t loose;	       /* bit set: no part of the machine, yet or any more: may end */
	struct cluster *cluster; /* or NULL */
};

/* Start all node daemons. On error those already started are ended. */
int launch_start(struct launch *launch, const struct launch_plan *plan, struct problem *p);

/* One more, loose at first, for a machine whose hosts are `hosts` (a bit set). 0, or -1 with the problem. */
int launch_add(struct launch *launch, const struct launch_plan *plan, uint32_t node, uint32_t hosts, struct problem *p);

/* Reap whoever has ended. Returns true if some node daemon has, now or before, that was not loose. */
bool launch_reap(struct launch *launch);
/* A loose daemon that has ended: its number, and how in `p`; it is forgotten. -1: there is none. */
int launch_take_loose(struct launch *launch, struct problem *p);
/* Its end is not the machine's from now on; `kill`: it is ended. */
void launch_let_go(struct launch *launch, uint32_t node, bool kill);
/* How the daemons ended that have: one that was killed is named first, since others may have ended because of it. */
void launch_describe(const struct launch *launch, struct problem *p);

/* Bit set: the hosts whose daemons were killed, or with them their computers or what connects to these. */
uint32_t launch_killed(const struct launch *launch);
/* Kill the daemons of these hosts, or what stands for them here. */
void launch_kill(const struct launch *launch, uint32_t nodes);

/* Wait up to `grace_ms` for the daemons to end by themselves, some seconds more for those on other computers, where nobody else
 * can kill what is left; then kill all that is left of the machine, and reap it. `but`: a child that is no part of it, or 0. */
void launch_end(struct launch *launch, unsigned grace_ms, pid_t but);

#endif
