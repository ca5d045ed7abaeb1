/* recording.h - what a machine did over time, from samples of its counters: for `vmp report`,
 * --report and `vmp web`.
 *
 * A recording has a bounded size.  When it is full, each two neighbouring samples become one, and
 * the interval at which the caller samples doubles; or, if it slides, the older half is dropped.
 * Pure, but for memory.
 */
#ifndef VMM_CLI_WATCH_RECORDING_H
#define VMM_CLI_WATCH_RECORDING_H

#include <stdio.h>
#include "vmm/cli/query/status.h"

enum {
	RECORDING_SAMPLES = 480,
	RECORDING_BANDS = 128,	 /* the guest's RAM in equal parts */
	RECORDING_MOVES = 2000,	 /* later ones are counted alone */
	RECORDING_FIRST_MS = 500, /* the first interval, but for: */
	RECORDING_DENSE = 20,	  /* so many samples at the beginning, */
	RECORDING_DENSE_MS = 250, /* which are taken at this interval */
};

/* What happened between two looks.  Sums over the time, so that two can be added. */
struct recording_sample {
	uint64_t end_ns, span_ns; /* end: since the recording's begin */
	uint32_t hosts;		  /* bit set */
	struct recording_host {
		uint64_t ram_bytes /* at the end */, fetches, given_up, sent_bytes, received_bytes;
	} host[MAX_NODES];
	struct recording_cpu {
		bool seen;
		uint8_t host; /* at the end */
		uint64_t time_ns[TIME_KIND_COUNT];
	} cpu[MAX_CPUS];
	uint32_t band[RECORDING_BANDS]; /* requests for pages of each part of RAM */
};

/* why: "" for a move that was seen from its CPU's new place alone */
struct recording_move { uint64_t at_ns; uint8_t cpu, from, to; char why[MOVE_WHY]; };

struct recording {
	struct recording_sample *sample; /* owned; RECORDING_SAMPLES */
	unsigned n;
	bool slides;
	uint64_t dropped;     /* number of samples that were before sample[0] */
	uint32_t interval_ms; /* at which the caller is to sample */
	uint64_t begin_ns;    /* of CLOCK_MONOTONIC; 0: no look so far */
	struct recording_move *move; /* owned; RECORDING_MOVES */
	unsigned n_moves, moves_lost;
	uint32_t last_note; /* the number of the newest move that node 0 has noted */
	uint32_t *requests; /* owned; of each page, at the last look that had it */
	uint32_t ram_pages;
	struct status_look last; /* heat belongs to the recording */
};

/* Returns 0 or -ENOMEM. */
int recording_begin(struct recording *r, uint32_t ram_pages);
/* Adds a look.  The first one says where all counters stand. */
void recording_add(struct recording *r, const struct status_look *now);
void recording_free(struct recording *r);

/* What a report says besides the recording. */
struct recording_about {
	const char *name, *kernel /* vmlinux, for symbols, or NULL */, *command /* or NULL */;
	const struct symbols *symbols; /* NULL: kernel's are loaded */
	uint32_t cpus, mem_mib;
	time_t written; /* seconds since 1970 */
};
/* Writes the recording as one JSON object, which begins with RECORDING_HEAD and has no "<".  Lists
 * over time begin with sample number `first`, counted from the recording's begin, or with the
 * first one that is still there. */
#define RECORDING_HEAD "{\"vmp_record\": 1,"
void recording_print(FILE *out, const struct recording *r, const struct recording_about *about,
		     uint64_t first);

#endif
