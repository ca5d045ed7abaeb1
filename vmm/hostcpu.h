/* hostcpu.h - can this host run guest code?  Each thing that an engine leans on is tried once, in a child. */
#ifndef VMM_HOSTCPU_H
#define VMM_HOSTCPU_H

#include "base/types.h"
#include "vmm/problem.h"

/* modify_ldt, 32-bit code and calls, ptrace; with several hosts userfaultfd as the page protocol needs it. 0, or -1. */
int hostcpu_check(bool several_hosts, struct problem *p);
/* Can CPUID be made to trap? If not, guest programs see the host's own. */
bool hostcpu_has_cpuid_faulting(void);

/* What programs can find out about the processor by CPUID and may then use: words that are compared bit by bit. */
enum { HOSTCPU_FEATURES = 8 };
void hostcpu_features(uint32_t features[HOSTCPU_FEATURES]);
/* Is one of them missing in `here`? Then its name is in `name`. Pure. */
bool hostcpu_lacking(const uint32_t features[HOSTCPU_FEATURES], const uint32_t here[HOSTCPU_FEATURES], char *name, size_t bytes);
/* In this computer's? */
bool hostcpu_lacks(const uint32_t features[HOSTCPU_FEATURES], char *name, size_t bytes);
void hostcpu_vendor(char vendor[13]);

#endif
