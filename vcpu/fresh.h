/* fresh.h - how many pages get memory of the host together, when the guest touches one that has
 * none yet.  Pure.
 *
 * Fresh memory is used in order, most of all by the guest's kernel, which clears it.  A touch of a
 * page without memory is a signal, and each page that gets memory beforehand saves one.  What is
 * never used costs memory, so one page gets it at first, and twice as many each time that the next
 * touch is just behind them.
 */
#ifndef VCPU_FRESH_H
#define VCPU_FRESH_H

#include "base/types.h"

/* All zero: nothing is known. */
struct fresh {
	gfn_t next; /* the frame behind those that got memory last */
	unsigned run; /* how many those were */
};

/* Frame gfn, which has no memory, is touched; return how many frames from it on get it now: 1 to
 * `most`, which is at least 1. */
static inline unsigned fresh_run(struct fresh *fresh, gfn_t gfn, unsigned most)
{
	unsigned run = fresh->run && gfn == fresh->next ? 2 * fresh->run : 1;

	fresh->run = run < most ? run : most;
	fresh->next = gfn + fresh->run;
	return fresh->run;
}

#endif
