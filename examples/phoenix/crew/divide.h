/* divide.h - divide and conquer with lazy task creation (PPoPP 2003, section 4.2), for any number
 * of items.
 *
 * A process works through its range depth-first: it halves it, keeps the upper half on a stack, and
 * continues with the lower one.  That creates no task.  When another process steals the oldest
 * entry, which is the largest, that entry becomes a task, and the place where its result is awaited
 * (a `sync`) gets a name: a virtual node of the victim, and a number.  Results are sent to that
 * name, wherever it is by then.
 */
#ifndef DIVIDE_H
#define DIVIDE_H

#include "examples/phoenix/crew/crew.h"

enum { DIVIDE_SUMS = 3, DIVIDE_TAGS = 100 };	/* the application's own tags are below */
struct divide {
	uint64_t items;
	unsigned leaves_per_step;		/* as many as take about a millisecond */
	/* does an item, and adds to the sums */
	void (*leaf)(uint64_t item, uint64_t sums[DIVIDE_SUMS]);
	void (*done)(const uint64_t sums[DIVIDE_SUMS]);	/* called at the holder of virtual node 0 */
	void (*receive)(const struct ph_msg *m);	/* NULL, or: handles other messages */
	/* NULL, or: writes what the application keeps at virtual node 0 */
	void (*pack)(struct bytes *out);
	void (*unpack)(struct view *in);
};
int divide_run(const char *name, size_t state_bytes, const struct divide *what);

#endif
