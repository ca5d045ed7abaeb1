/* replay.h - what the files of bench/replay share.
 *
 *   replay.c         the command line and the tables that it prints
 *   replay_record.c  what was recorded
 *   replay_model.c   hosts, daemons and a network, on which it is replayed
 */
#ifndef BENCH_REPLAY_H
#define BENCH_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/limits.h"

/* ---- replay_record.c ---- */

struct fetch {
	double compute_us; /* since the fetch before it */
	uint32_t page;	   /* index into `pages` */
	uint8_t right;
	bool waits; /* for the loss of the page */
};

struct track { struct fetch *fetch; uint32_t n, room; double last_us, lost_us; };

/* A page of the trace: the host that had it first, and how often each host wanted to write to
 * it. */
struct page { uint32_t number, writes[MAX_NODES]; uint8_t first_owner; bool owned, global; };

extern struct record {
	struct track track[MAX_CPUS]; /* recorded CPUs, in order of their first fetch */
	unsigned tracks;
	struct page *page;
	uint32_t pages;
	double begin_us, end_us;
	/* of each fetch, on average, and besides them */
	double to_daemon_us, to_guest_us, overhead_us;
	uint64_t fetches;
} record;

void record_read(FILE *in);
/* Returns the us that all recorded CPUs computed: what one processor would need. */
double record_computed_us(void);
/* Scales all computing so that it is `one_us` in all. */
void record_scale(double one_us);
/* Reallocates to n objects, or ends the program. */
void *record_grow(void *old, size_t n, size_t bytes);

/* ---- replay_model.c ---- */

extern struct model {
	double one_way_us, us_per_byte, serve_us; /* set them before model_run() */
	uint64_t messages, fetches;		  /* of its last run */
} model;

/* Returns the us until the last CPU is done. */
double model_run(unsigned hosts);

#endif
