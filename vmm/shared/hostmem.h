/* hostmem.h - how much memory a computer can still give, and whether that is enough for its part of
 * a machine.
 *
 * Every host's memory file has the guest's full size, but uses only what the host holds.  If all
 * hosts are on one computer, they use together the guest's memory, and some more for read copies.
 * A computer that is one host may come to hold all of the guest's memory, or as much as its limit
 * allows.
 */
#ifndef VMM_SHARED_HOSTMEM_H
#define VMM_SHARED_HOSTMEM_H

#include "base/types.h"

struct hostmem {
	uint64_t mib; /* UINT64_MAX: no limit is known */
	bool group;   /* a control group's limit, not the free memory */
};

/* Reads /proc and /sys, below `root`, which is "" except in tests. */
void hostmem_look(struct hostmem *memory, const char *root);
/* Returns a name of the limit, for people. */
const char *hostmem_name(const struct hostmem *memory);
/* Returns how many MiB so much of the guest's memory needs, with the processes of so many hosts and
 * processors. */
uint64_t hostmem_needed_mib(uint32_t guest_mib, uint32_t hosts, uint32_t cpus);
/* Returns how many MiB of the guest's memory a host may hold whose control group leaves too little
 * for all of it: what the group's limit leaves beside the host's processes, less a sixteenth,
 * because a host may hold a little more for a moment.  0: no group limits it, or the group leaves
 * nothing. */
uint32_t hostmem_share_mib(const struct hostmem *memory, uint32_t guest_mib, uint32_t cpus);

#endif
