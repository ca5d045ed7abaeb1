/* crew.h - what the example applications share: processes that start, join and leave, and state that moves with the
 * virtual nodes.
 *
 * An application is a set of functions over its state, each piece of which belongs to a virtual node.  They run one at a
 * time, never while virtual nodes move, and must be short (milliseconds): a node that wants a part of this one's state
 * waits for them.  They do not call the library: crew_post() keeps their messages until they return.  A message that comes
 * after its virtual node has moved is sent after it.
 *
 *   PROGRAM [-n N] [-j N [-e MS] [-k MS]] [-J] [-T FILE] [-c CONFIG [-t TAG]] [-s SESSION] [SIZE...]
 *     -n N  processes that begin (2), each with an equal share of the virtual nodes
 *     -j N  processes that join while the others work, and leave again (0); work begins when the first has joined
 *     -e MS one of these every so many milliseconds (0: all at once)
 *     -k MS and each stays so long (until it has done 30 steps, at most 1500 ms)
 *     -J    this process joins a run that is under way elsewhere, and stays; needs -c
 *     -T FILE  append to it who joined and left when, and how many steps were done: lines "MICROSECONDS PID WHAT [STEPS]"
 *     -c, -t, -s  configuration, its tag, session, as ph_init() takes them; without -c, ports of this computer
 */
#ifndef CREW_H
#define CREW_H

#include <stdbool.h>
#include <stdint.h>
#include "phnx/phnx.h"

/* ---- bytes ---- */

struct bytes {			/* grows; starts as { 0 }; free(data) */
	unsigned char *data;
	size_t len, room;
};
void bytes_put(struct bytes *b, const void *from, size_t n);
void bytes_expect(struct bytes *b, size_t n);	/* so many will be put */
struct view {			/* of somebody else's bytes, read from the front */
	const unsigned char *p, *end;
};
void view_get(struct view *v, void *to, size_t n);
void *allocate(size_t n);	/* zeroed; ends the process when memory is short */

/* ---- the application ---- */

struct crew_app {
	const char *name;
	ph_vp_t space;			/* virtual nodes [0, space) */
	size_t state_bytes;		/* of all; with -j it must fit into one message */
	void (*begin)(ph_vp_t lo, ph_vp_t hi);		/* make the state of [lo, hi), at the beginning */
	void (*receive)(const struct ph_msg *m);	/* for a virtual node that is here */
	bool (*work)(void);				/* a step; false: there is nothing to do now */
	void (*pack)(ph_vp_t lo, ph_vp_t hi, struct bytes *out);	/* remove the state of [lo, hi), which is here */
	void (*unpack)(ph_vp_t lo, ph_vp_t hi, struct view *in);	/* add what pack() wrote elsewhere */
	void (*evacuate)(void);		/* NULL, or: this process will leave; give away what belongs to no virtual node */
};
enum { CREW_TAGS = 1000 };		/* tags from here on are the crew's own */

/* Reads the options; the sizes that follow them become sizes[], which holds the defaults. */
void crew_options(int argc, char **argv, long *sizes, int n_sizes, const char *usage);
/* Runs the application in all processes; returns the exit status. */
int crew_run(const struct crew_app *app);

extern struct crew {
	ph_vp_t lo, hi;		/* the virtual nodes that are here */
	bool leaving;		/* evacuate() was called */
} crew;
static inline bool crew_holds(ph_vp_t vp) { return vp >= crew.lo && vp < crew.hi; }
/* Sends a message after the function that runs now; with a timeout in microseconds, or 0 for none. */
void crew_post(ph_vp_t dest, const void *body, size_t len, int tag, long long timeout);
/* The same, without a copy: b is empty afterwards. */
void crew_give(ph_vp_t dest, struct bytes *b, int tag);
/* The clock that crew_finish() reads stops here: checking the result is not counted. */
void crew_stop_clock(void);
/* The problem is solved (or wrongly so): all processes end.  Prints the text and the time. */
void crew_finish(bool right, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t crew_random(void);
long long crew_now_us(void);

#endif
