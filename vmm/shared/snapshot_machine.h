/* snapshot_machine.h - the first record of a snapshot: what the saved machine was.
 *
 * Node 0 fills it in when the machine is cut (vmm/node/cut/freeze.c); the command line stores it in the
 * snapshot's file and checks it before it loads the machine (vmm/cli/snapshot/saved.h).
 */
#ifndef VMM_SHARED_SNAPSHOT_MACHINE_H
#define VMM_SHARED_SNAPSHOT_MACHINE_H

#include "base/cpufeatures.h"
#include "base/machine.h"
#include "base/wire.h"

/* SNAPSHOT_MACHINE's payload; two strings follow: the guest kernel's command line, and the file that it was loaded from. */
struct snapshot_machine {
	char machine[MACHINE_TEXT]; /* machine_print() of what MACHINE_SAVED reads, with the NUL */
	uint32_t tsc_khz; /* of the time-stamp counter that the guest reads as its clock; 0: it reads none */
	uint64_t clock_ns, pause_ns, saved_ns /* since the epoch */, tsc;
	char vendor[16]; /* of its hosts' processors */
	struct cpu_features features; /* what it has seen of them */
	uint32_t reserved;
};

#endif
