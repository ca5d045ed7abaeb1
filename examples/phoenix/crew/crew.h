/* crew.h - what the example applications share: processes that start, join and leave, and state
 * that moves with the virtual nodes.
 *
 * An application is a set of functions over its state, each piece of which belongs to a virtual
 * node.  They run one at a time, and never while virtual nodes move.  They must be short
 * (milliseconds), since a node that wants a part of this one's state waits for them.  They do not
 * call the library: crew_post() keeps their messages until they return.  A message for a virtual
 * node that has moved follows it.
 *
 *   PROGRAM [-n N] [-j N [-e MS] [-k MS]] [-J] [-T FILE] [-c CONFIG [-t TAG]] [-s SESSION]
 *   [SIZE...]
 *     -n N  processes that begin (2), each with an equal share of the virtual nodes
 *     -j N  processes that join while the others work, and leave again (0); work begins when the
 *     first has joined
 *     -e MS  one of these joins every MS milliseconds (0: all at once)
 *     -k MS  and each stays for MS milliseconds (default: for 30 steps, at most 1500 ms)
 *     -J  this process joins a run that is under way elsewhere, and stays; needs -c
 *     -T FILE  append who joined and left when, and how many steps were done: lines "MICROSECONDS
 *     PID WHAT [STEPS]"
 *     -c, -t, -s  configuration, its tag, session, as in ph_init(); without -c, ports of this host
 */
#ifndef CREW_H
#define CREW_H

#include <stdbool.h>
#include <stdint.h>
#include "phnx/phnx.h"

/* ---- bytes ---- */

struct bytes {			/* grows; begins as { 0 }; free(data) */
	unsigned char *data;
	size_t len, room;
};
void bytes_put(struct bytes *b, const void *from, size_t n);
void bytes_expect(struct bytes *b, size_t n);	/* announces that n bytes will be put */
struct view {			/* bytes of another buffer, read from the front */
	const unsigned char *p, *end;
};
void view_get(struct view *v, void *to, size_t n);
void *allocate(size_t n);	/* zeroed; ends the process when memory is short */

/* ---- the application ---- */

struct crew_app {
	const char *name;
	ph_vp_t space;			/* virtual nodes [0, space) */
	size_t state_bytes;	/* of all virtual nodes; with -j it must fit into one message */
	/* creates the state of [lo, hi), at the beginning */
	void (*begin)(ph_vp_t lo, ph_vp_t hi);
	/* a message for a virtual node that is here */
	void (*receive)(const struct ph_msg *m);
	bool (*work)(void);	/* does a step; false: there is nothing to do now */
	/* removes the state of [lo, hi), which is here, and writes it */
	void (*pack)(ph_vp_t lo, ph_vp_t hi, struct bytes *out);
	/* adds what pack() wrote elsewhere */
	void (*unpack)(ph_vp_t lo, ph_vp_t hi, struct view *in);
	/* NULL, or: this process will leave; gives away what belongs to no virtual node */
	void (*evacuate)(void);
};
enum { CREW_TAGS = 1000 };		/* tags from here on are used by crew.c */

/* Reads the options; the sizes after them replace the defaults in sizes[]. */
void crew_options(int argc, char **argv, long *sizes, int n_sizes, const char *usage);
/* Runs the application in all processes.  Returns the exit status. */
int crew_run(const struct crew_app *app);

extern struct crew {
	ph_vp_t lo, hi;		/* the virtual nodes that are here */
	bool leaving;		/* evacuate() was called */
} crew;
static inline bool crew_holds(ph_vp_t vp) { return vp >= crew.lo && vp < crew.hi; }
/* Sends a message when the current function has returned.  timeout: in microseconds, 0: none. */
void crew_post(ph_vp_t dest, const void *body, size_t len, int tag, long long timeout);
/* The same without a copy: b is empty afterwards. */
void crew_give(ph_vp_t dest, struct bytes *b, int tag);
/* Stops the clock of crew_finish(): checking the result is not counted. */
void crew_stop_clock(void);
/* Ends all processes: the problem is solved, or the result is wrong.  Prints the text and the
 * time. */
void crew_finish(bool right, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t crew_random(void);
long long crew_now_us(void);

#endif
