/* hostcpu.h - whether this host can run guest code, and which.  Each kernel feature that an engine
 * needs is tried once, in a child process.  Also compares processors. */
#ifndef VMM_SHARED_HOSTCPU_H
#define VMM_SHARED_HOSTCPU_H

#include "base/cpufeatures.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

/* Checks modify_ldt, 32-bit code and calls, and ptrace; for several hosts also userfaultfd as the
 * page protocol needs it.  Returns 0, or -1 with the problem. */
int hostcpu_check(bool several_hosts, struct problem *p);
/* Returns whether CPUID can be made to trap.  If not, guest programs see the host's own. */
bool hostcpu_has_cpuid_faulting(void);

/* What matters of a processor to a machine's guest. */
struct hostcpu {
	char vendor[CPU_VENDOR_TEXT];
	bool hides; /* CPUID can be made to trap, so that programs see the values that we choose */
	struct cpu_features features;
};
void hostcpu_look(struct hostcpu *cpu); /* reads this computer's processor */

/* Checks whether a host with this processor may join a machine whose guest sees, or will see,
 * `guest` (guest->hides: all hosts can hide features).  The guest loses features that the new host
 * lacks, which is allowed only if `shrinks` (no program has run yet) and all hosts can hide them.
 * Features that the guest does not have must be hidden on the new host.  Returns 0; or -1 with a
 * problem that follows "its ".  Pure. */
int hostcpu_agree(struct hostcpu *guest, const struct hostcpu *host, bool shrinks,
		  struct problem *p);

#endif
