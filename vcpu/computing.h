/* computing.h - decides whether a program computes: successive timer ticks find it running, and
 * between them it does not enter the guest kernel.  Pure.  The direct engine runs such a program
 * in a host address space of its own (vmproc/direct_bare.c).
 *
 * In other address spaces a system call does not stop the guest.  Therefore a program with many
 * system calls may be taken for one that computes.  Its first system call in the space of its
 * own shows the mistake, and the number of ticks needed doubles.  A timer that interrupts a
 * computing program may fire late: computing_due_ns().
 */
#ifndef VCPU_COMPUTING_H
#define VCPU_COMPUTING_H

#include "base/types.h"

enum { COMPUTING_TICKS = 2, COMPUTING_MOST_DOUBT = 5 };

struct computing {
	uint32_t cr3;	/* the address space that the last tick found running */
	uint32_t ticks; /* ticks that found it running since it last entered the guest kernel */
	uint32_t doubt; /* times in a row that it was taken to compute and trapped too soon */
};

static inline uint32_t computing_ticks_needed(const struct computing *c)
{
	return COMPUTING_TICKS << c->doubt;
}

static inline bool computing_is(const struct computing *c, uint32_t cr3)
{
	return c->cr3 == cr3 && c->ticks >= computing_ticks_needed(c);
}

/* Record a tick that found the user code of cr3 running. */
static inline void computing_tick(struct computing *c, uint32_t cr3)
{
	c->ticks = c->cr3 == cr3 ? c->ticks + 1 : 1;
	c->cr3 = cr3;
}

/* Return when the host's timer is to interrupt a program that computes, in ns of
 * CLOCK_MONOTONIC.  That is the host's next tick, a multiple of tick_ns, unless the delay
 * exceeds half of the set interval.  tick_ns 0: unknown.  (TRICKS: tick-with-host) */
static inline uint64_t computing_due_ns(uint64_t due_ns, uint64_t set_for_ns, uint64_t tick_ns)
{
	uint64_t late = tick_ns ? (tick_ns - due_ns % tick_ns) % tick_ns : 0;

	return late <= set_for_ns / 2 ? due_ns + late : due_ns;
}

/* Record that user code entered the guest kernel; `believed`: it was taken to compute. */
static inline void computing_trap(struct computing *c, bool believed)
{
	if (c->ticks > computing_ticks_needed(c))
		c->doubt = 0;
	else if (believed && c->doubt < COMPUTING_MOST_DOUBT)
		c->doubt++;
	c->ticks = 0;
}

#endif
