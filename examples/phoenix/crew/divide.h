/* divide.h - divide and conquer with lazy task creation (PPoPP 2003, section 4.2), for any number of items.
 *
 * A process works through its range depth-first: it halves it, keeps the upper half on a stack, goes on with the lower.
 * Nothing is created for that.  Only when another process steals the oldest entry, the largest, does that become a task,
 * and the place where its result is awaited (a `sync`) gets a name: a virtual node of the victim, and a number.  Results
 * are sent to that name, wherever it is by then.
 */
#ifndef DIVIDE_H
#define DIVIDE_H

#include "examples/phoenix/crew/crew.h"

enum { DIVIDE_SUMS = 3, DIVIDE_TAGS = 100 };	/* the application's own tags are below */
struct divide {
	uint64_t items;
	unsigned leaves_per_step;		/* as many as take a millisecond or so */
	void (*leaf)(uint64_t item, uint64_t sums[DIVIDE_SUMS]);	/* does the item, adds to the sums */
	void (*done)(const uint64_t sums[DIVIDE_SUMS]);	/* at the holder of virtual node 0 */
	void (*receive)(const struct ph_msg *m);	/* NULL, or: other messages */
	void (*pack)(struct bytes *out);		/* NULL, or: what the application keeps at virtual node 0 */
	void (*unpack)(struct view *in);
};
int divide_run(const char *name, size_t state_bytes, const struct divide *what);

#endif
