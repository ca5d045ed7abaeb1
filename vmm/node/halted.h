/* halted.h - node 0 ends a machine whose CPUs have all halted with interrupts disabled: nothing can
 * wake them.
 *
 * The monitor of such a CPU, or of one that was not started yet, says so every second.  A start or
 * an NMI may be on its way from a CPU that has halted since; so all CPUs must have said so for some
 * seconds, and each of them again after that.
 */
#ifndef VMM_NODE_HALTED_H
#define VMM_NODE_HALTED_H

#include "base/limits.h"
#include "base/wire.h"

struct halted {
	uint64_t heard_ns[MAX_CPUS]; /* when a CPU has said so last; 0: never */
	uint64_t since_ns;	     /* since when all have; 0: they have not */
	uint32_t started;	     /* bit set of the CPUs that had been started */
};

/* Pure: a CPU says so.  Returns true if the machine is to end. */
bool halted_take(struct halted *h, unsigned cpus, const struct msg_cpu_halted *said,
		 uint64_t now_ns);

#endif
