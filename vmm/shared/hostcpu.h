/* hostcpu.h - can this host run guest code, and which?  Each thing that an engine leans on is tried once, in a child; processors are
 * compared. */
#ifndef VMM_SHARED_HOSTCPU_H
#define VMM_SHARED_HOSTCPU_H

#include "base/cpufeatures.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

/* modify_ldt, 32-bit code and calls, ptrace; with several hosts userfaultfd as the page protocol needs it. 0, or -1. */
int hostcpu_check(bool several_hosts, struct problem *p);
/* Can CPUID be made to trap? If not, guest programs see the host's own. */
bool hostcpu_has_cpuid_faulting(void);

/* A processor as a machine's guest is concerned with it. */
struct hostcpu {
	char vendor[CPU_VENDOR_TEXT];
	bool hides;	 /* it can make CPUID trap: programs see what we say */
	struct cpu_features features;
};
void hostcpu_look(struct hostcpu *cpu); /* this computer's */

/* May a host with this processor belong to a machine whose guest sees (or may see) `guest`, which hides if all its hosts can?  What
 * the newcomer lacks is lost to the guest, if `shrinks` (no program has run yet) and nobody has shown it; what it has beyond that must
 * be hidden there.  -1 with what is wrong, to follow "its ".  Pure. */
int hostcpu_agree(struct hostcpu *guest, const struct hostcpu *host, bool shrinks, struct problem *p);

#endif
