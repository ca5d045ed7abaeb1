/* recorder.h - samples a machine into a recording, in the caller's event loop: for --report of a
 * run, and for `vmp report`. */
#ifndef VMM_CLI_WATCH_RECORDER_H
#define VMM_CLI_WATCH_RECORDER_H

#include "vmm/cli/watch/recording.h"
#include "vmm/cli/watch/sampler.h"

struct recorder {
	struct recording recording;
	struct sampler *sampler;
	struct sampler own; /* with recorder_start_own() */
	struct event_base *base;
	struct event *tick; /* NULL: not started, or stopped */
};

/* Starts sampling with a sampler that the caller opens, and whose on_sample() calls
 * recorder_take().  `mem_mib` is the guest's RAM.  Returns 0 or -ENOMEM. */
int recorder_start(struct recorder *r, struct event_base *base, struct sampler *sampler,
		   uint32_t mem_mib);
/* The same for a machine that starts now, so that all its counters are 0.  It has a sampler of its
 * own, which is opened again when its connection is lost. */
int recorder_start_own(struct recorder *r, struct event_base *base, const char *rundir,
		       uint32_t mem_mib);
void recorder_take(struct recorder *r);
/* Ends sampling; the recording stays.  `last` is one more look, or NULL. */
void recorder_stop(struct recorder *r, struct status_look *last);
void recorder_free(struct recorder *r);

#endif
