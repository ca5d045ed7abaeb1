/* hostmem.h - how much memory a computer can still give, and whether that is enough for its part of a machine.
 *
 * Every host's memory file has the guest's full size but holds only what the host uses.  Where all hosts are on one computer, the sum
 * of all is the guest's memory, read copies aside; a computer that is one host may come to hold all of it, or as much as it is let.
 */
#ifndef VMM_SHARED_HOSTMEM_H
#define VMM_SHARED_HOSTMEM_H

#include "base/types.h"

struct hostmem {
	uint64_t mib; /* UINT64_MAX: no limit is known */
	bool group;   /* by a control group's limit, not for want of free memory */
};

/* `root` is "" but for tests: reads /proc and /sys below it. */
void hostmem_look(struct hostmem *memory, const char *root);
/* Which limit that is, for people. */
const char *hostmem_name(const struct hostmem *memory);
/* For so much of the guest's memory, with the processes of so many hosts and processors. */
uint64_t hostmem_needed_mib(uint32_t guest_mib, uint32_t hosts, uint32_t cpus);

#endif
