/* computing.h - does a program compute?  Then ticks find it running, one after the other, and between them it wants nothing of the
 * guest kernel.  Pure; the direct engine lets such a program run in a host address space of its own (vmproc/direct_bare.c).
 *
 * System calls do not stop a guest elsewhere, so a program that makes many may be believed to compute; it is found out as soon as
 * it is, and the next time it takes twice as long to convince.  What interrupts it is not in a hurry: computing_due_ns().
 */
#ifndef VCPU_COMPUTING_H
#define VCPU_COMPUTING_H

#include "base/types.h"

enum { COMPUTING_TICKS = 2, COMPUTING_MOST_DOUBT = 5 };

struct computing {
	uint32_t cr3;	/* whose code the last tick found running */
	uint32_t ticks; /* that have found it so since it last wanted the guest kernel */
	uint32_t doubt; /* how often in a row it was believed, and did not last for a tick */
};

static inline uint32_t computing_ticks_needed(const struct computing *c) { return COMPUTING_TICKS << c->doubt; }

static inline bool computing_is(const struct computing *c, uint32_t cr3)
{
	return c->cr3 == cr3 && c->ticks >= computing_ticks_needed(c);
}

/* A tick has found the user's code of cr3 running. */
static inline void computing_tick(struct computing *c, uint32_t cr3)
{
	c->ticks = c->cr3 == cr3 ? c->ticks + 1 : 1;
	c->cr3 = cr3;
}

/* When the host's timer is to fire that interrupts a program that computes, by CLOCK_MONOTONIC: with the next of the host's ticks
 * (TRICKS: tick-with-host), which come where that is a multiple of tick_ns; unless it would be late by more than half of what it was set for.
 * tick_ns 0: not known. (TRICKS: tick-with-host) */
static inline uint64_t computing_due_ns(uint64_t due_ns, uint64_t set_for_ns, uint64_t tick_ns)
{
	uint64_t late = tick_ns ? (tick_ns - due_ns % tick_ns) % tick_ns : 0;

	return late <= set_for_ns / 2 ? due_ns + late : due_ns;
}

/* User code, which was believed to compute or not, wants the guest kernel. */
static inline void computing_trap(struct computing *c, bool believed)
{
	if (c->ticks > computing_ticks_needed(c))
		c->doubt = 0;
	else if (believed && c->doubt < COMPUTING_MOST_DOUBT)
		c->doubt++;
	c->ticks = 0;
}

#endif
