/* spin.h - whether the CPUs of this host only wait in a loop, while another host waits for a page
 * that they hold.
 *
 * A thread that waits for another one without a system call reads a word again and again, by a
 * plain load, which the page protocol does not see.  So the CPUs are interrupted twice, and the two
 * places where they stood are compared.  A loop that waits contains PAUSE, where a CPU spends
 * nearly all its time, or changes no register; a loop that computes changes some.  (TRICKS:
 * spin-ends-holds)
 */
#ifndef VMM_NODE_PAGES_SPIN_H
#define VMM_NODE_PAGES_SPIN_H

#include "base/types.h"

struct node;
struct spin;

/* Where a CPU stood when it was interrupted last (struct vcpu_slot, base/hostshm.h).  A VM process
 * writes it: it is a hint, which only costs time if it is wrong. */
struct spin_view {
	uint32_t count; /* how many times it has been interrupted */
	uint32_t eip, sum;
	bool pauses;
};

/* Returns whether a CPU that was seen as `before` and then as `now` waits in a loop.  Pure. */
bool spin_sees(const struct spin_view *before, const struct spin_view *now);

/* Returns NULL if there is no memory. */
struct spin *spin_new(void);
void spin_free(struct spin *spin);

/* How often CPUs are looked at, at most: each look interrupts them. */
enum { SPIN_LOOK_US = 200 };

/* Returns whether all CPUs of this host that are not halted wait in loops, as far as is known, and
 * has them interrupted for the next call unless that was done less than SPIN_LOOK_US ago. */
bool spin_look(struct spin *spin, struct node *node, uint64_t now_ns);

#endif
