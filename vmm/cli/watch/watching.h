/* watching.h - the event loop of a command that samples a running machine until something ends it:
 * `vmp metrics` and `vmp report`.
 *
 * Rules of use: watch_open(), event_base_dispatch(w->base), watch_close().  Between the first two
 * the caller sets the sampler's on_sample().  Its on_lost() is the watch's: it waits for a machine
 * that goes back to a checkpoint, and ends the loop when the machine has ended.
 */
#ifndef VMM_CLI_WATCH_WATCHING_H
#define VMM_CLI_WATCH_WATCHING_H

#include "vmm/cli/options.h"
#include "vmm/cli/rundir.h"
#include "vmm/cli/watch/sampler.h"

struct watch {
	const struct options *o;
	struct event_base *base; /* or NULL */
	struct rundir rundir;
	struct machine_info info;
	struct sampler sampler;
	struct event *signals[4], *retry, *limit;
	unsigned tries; /* to connect again */
	bool done;
	bool machine_ended; /* that ended the loop */
	int status;
	struct problem why;
};

/* Finds the machine and connects.  Returns 0, or -1 with w->why. */
int watch_open(struct watch *w, const struct options *o);
/* The loop ends with an error unless this is called within ten seconds. */
void watch_is_answered(struct watch *w);
/* Ends the loop; the first call counts.  `line` is the error, or "". */
void watch_end(struct watch *w, int status, const char *line);
/* Prints the error, if there is one.  Returns the exit status. */
int watch_close(struct watch *w);

#endif
