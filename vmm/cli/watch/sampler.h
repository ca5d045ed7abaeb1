/* sampler.h - asks a running machine's hosts for their counters, again and again: for `vmp metrics`
 * and for reports.
 *
 * The sampler is one more query client of the machine (client.h), with a connection of its own in
 * the caller's event loop.  It never waits: sampler_ask() sends the requests, and on_sample() comes
 * when every host has answered.  If the connection breaks, on_lost() comes; the caller decides
 * whether to open the sampler again.
 */
#ifndef VMM_CLI_WATCH_SAMPLER_H
#define VMM_CLI_WATCH_SAMPLER_H

#include "vmm/cli/client.h"
#include "vmm/cli/query/status.h"

struct sampler {
	struct client client;
	const char *rundir; /* the machine's run folder */
	bool open;	    /* connected */
	bool wants_pages;   /* ask for the hottest pages, too */
	bool busy;	    /* a sample is on its way, since asked_ns */
	uint64_t asked_ns;
	uint32_t seq;	    /* of the sample that is on its way; answers to others are dropped */
	struct msg_hosts hosts;	     /* present == 0: node 0 has not said them yet */
	struct status_look now;	     /* the sample that is on its way, and then the newest one */
	void *context;
	/* s->now is complete.  It stays until sampler_ask(). */
	void (*on_sample)(void *context);
	/* The connection is closed; `why` is a line if the machine broke the rules, or "". */
	void (*on_lost)(void *context, const char *why);
};

/* Connects.  The fields `rundir`, `wants_pages` and those for calls are the caller's to set.
 * Returns 0 or -errno. */
int sampler_open(struct sampler *s, struct event_base *base);
/* Asks for a sample, unless one is on its way; one that no host completes in two seconds is given
 * up.  A sampler that is not open does nothing. */
void sampler_ask(struct sampler *s);
void sampler_close(struct sampler *s);

#endif
