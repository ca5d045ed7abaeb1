/* halt_poll.h - how long a halted CPU polls for an interrupt before it sleeps.
 *
 * To wake a process that sleeps takes the host ten times as long as to notice a word that has
 * changed, and more if its processor sleeps as well.  So a CPU that was woken soon the last times
 * polls first.  One that was halted for longer does not: it would use its processor in vain.  KVM
 * does the same (its halt_poll_ns). (TRICKS: poll-before-sleep)
 */
#ifndef ENGINE_HALT_POLL_H
#define ENGINE_HALT_POLL_H

#include <stdint.h>

enum {
	HALT_POLL_FIRST_NS = 10000,
	HALT_POLL_MOST_NS = 100000,
	/* a halt that was not longer would have been shorter if the CPU had polled */
	HALT_POLL_SOON_NS = 200000
};

/* Pure.  Returns how long to poll the next time: the CPU has polled for at most `poll_ns` and was
 * halted for `halted_ns`.  `most_ns`: the longest poll, which is tried once and then begun anew; 0:
 * never poll. */
static inline uint32_t halt_poll_next(uint32_t poll_ns, uint64_t halted_ns, uint32_t most_ns)
{
	uint32_t longer = poll_ns ? poll_ns * 2 : HALT_POLL_FIRST_NS;

	if (halted_ns <= poll_ns)
		return poll_ns;
	if (halted_ns > HALT_POLL_SOON_NS || poll_ns == most_ns)
		return 0;
	return longer < most_ns ? longer : most_ns;
}

#endif
