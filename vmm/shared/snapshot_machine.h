/* snapshot_machine.h - the first record of a snapshot: what the saved machine was.
 *
 * Node 0 fills it in when the machine is cut (vmm/node/cut/freeze.c).  The command line stores it
 * in the snapshot's file, and checks it before it loads the machine (vmm/cli/snapshot/saved.h).
 */
#ifndef VMM_SHARED_SNAPSHOT_MACHINE_H
#define VMM_SHARED_SNAPSHOT_MACHINE_H

#include "base/cpufeatures.h"
#include "base/machine.h"
#include "base/wire.h"

/* SNAPSHOT_MACHINE's payload.  Two strings follow: the guest kernel's command line, and the path of
 * its file. */
struct snapshot_machine {
	char machine[MACHINE_TEXT]; /* machine_print() of what MACHINE_SAVED reads, with the NUL */
	/* of the time-stamp counter that is the guest's clock; 0: the guest does not read it */
	uint32_t tsc_khz;
	uint64_t clock_ns, pause_ns, saved_ns /* since the epoch */, tsc;
	char vendor[16]; /* of the hosts' processors */
	struct cpu_features features; /* the features that the guest has seen */
	uint32_t reserved;
};

#endif
