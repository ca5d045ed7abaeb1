/* ahead.h - prefetch: which pages a CPU will want next, found from runs of misses.
 *
 * The decisions are pure.  They use the linear addresses that a CPU misses in one address space,
 * since a program's arrays are contiguous there and not in RAM.  Places and steps are in bytes.
 * Read misses and write misses are kept apart (a struct ahead each).  Misses of three adjacent
 * pages, upwards or downwards, make a run, and so do four misses at equal distances, as in a column
 * of an array, with other misses between them.  The pages that follow are then requested together:
 * AHEAD_FIRST pages at first.  The number doubles each time the run has used half of them, up to
 * MAX_AHEAD.  Other misses come between, so several runs are kept; the least recently used one is
 * replaced.
 *
 * A run is remembered by its first page.  A later miss of that page requests the whole run at
 * once: programs go through the same arrays again and again.  So does a miss beside the first page
 * of a column: it begins the next one.  If that page is where the columns before it ended, twice
 * as many are requested (AHEAD_WIDE_MOST): adjacent pages are taken, sent and mapped together.  A
 * page that was fetched and not used (ahead_vain()) makes the remembered run shorter or narrower.
 *
 * Instructions are read in no order that makes runs, and nobody writes to them: who misses a page
 * of them gets its aligned block of AHEAD_TEXT pages.
 *
 * written.h says which pages are requested to write to although they are read first.
 */
#ifndef VCPU_AHEAD_H
#define VCPU_AHEAD_H

#include "base/limits.h"
#include "base/mechanisms.h"
#include "base/types.h"
#include "vcpu/written.h"

struct shadow;
struct vcpu;

enum {
	AHEAD_RUNS = 8,
	AHEAD_MISSES = 3, /* make a run */
	AHEAD_FIRST = 4,
	AHEAD_WINDOW = 128, /* places of a run that are requested together */
	AHEAD_KNOWN = 1024,
	AHEAD_ASKED = 8192,
	AHEAD_VAIN_MISSES = 4,
	AHEAD_ON_ITS_WAY = 16, /* for so many misses a page may be on its way */
	AHEAD_NAMED_MOST = MAX_AHEAD + 1,
	AHEAD_STRIDE_MISSES = 4, /* make a run at a stride */
	AHEAD_STRIDE_MOST = 32 << 20,
	AHEAD_RECENT = 16,
	AHEAD_BESIDE = 4, /* pages from a column to the next one, at most */
	AHEAD_WIDE_MOST = 8, /* columns that are requested together; */
	AHEAD_ROW_PARTS = 4, /* at most that part of a row: other hosts may have the rest */
	AHEAD_TEXT = 16,     /* a block of pages of instructions; a power of two */
};

/* All zero: no runs. */
struct ahead {
	struct ahead_run {
		int64_t first;	 /* the place that was missed first */
		int64_t last;	 /* the place that was missed last */
		/* the first place beyond those requested; it may be beyond all, or below 0 */
		int64_t end;
		int64_t step;	 /* from one place to the next; 0 as long as the run has one */
		uint32_t wide;	 /* adjacent pages at each place: columns */
		uint32_t window; /* pages requested together; 0 at first */
		uint32_t length; /* misses in it */
		uint32_t used;	 /* value of `misses` at the last use; 0: the slot is free */
	} run[AHEAD_RUNS];
	struct ahead_known {
		int64_t first;
		int32_t step;
		uint16_t pages; /* including the first; 0: none */
		uint8_t wide;
	} known[AHEAD_KNOWN]; /* by the first page, hashed */
	struct ahead_asked {
		uint32_t frame_plus_1, page;
		uint32_t at_miss; /* value of `misses` when it was requested */
		uint8_t misses_due; /* it is requested ahead again after so many misses of it */
		bool used;
	} asked[AHEAD_ASKED]; /* by the frame, modulo */
	int64_t recent_plus_1[AHEAD_RECENT]; /* misses that belong to no run; 0: none */
	uint32_t n_recent; /* all so far; the last one is the one before n_recent % AHEAD_RECENT */
	uint32_t misses;
	uint32_t without; /* mechanisms that are off: MECHANISM_RUNS, _STRIDES, _RECALL */
};

/* The pages to request: `wide` adjacent ones from each of the places first, first + step, ...,
 * `count` of them, on.  At most MAX_AHEAD in all. */
struct ahead_pages {
	int64_t first, step;
	uint32_t count, wide; /* count 0: none */
};

/* Record a miss of the place `at`; return the pages to request, which are below `limit`.  A page
 * that was requested ahead and has not arrived yet counts as a miss too. */
struct ahead_pages ahead_on_miss(struct ahead *ahead, int64_t at, int64_t limit);

/* If gva is the instruction at eip, or the part of it that is on the next page, return the pages
 * around it. */
struct ahead_pages ahead_text(gva_t gva, gva_t eip, uint32_t without);

/* What an engine remembers of the misses in one address space. */
struct miss_history {
	struct ahead by_right[PAGE_WRITE + 1];
	struct written written;
};

/* Record a miss of address gva by v's instruction, which wants its frame with *right; store the
 * frames to request with it and return their number.  *right becomes the right to request for all.
 * The shadow, or v's page tables, translate pages to frames.  `rights` has the enum page_right of
 * each frame; frames whose right suffices are left out. */
unsigned ahead_frames(struct miss_history *history, const struct shadow *shadow, struct vcpu *v,
		      gva_t gva, enum page_right *right, const _Atomic uint8_t *rights,
		      gfn_t frames[MAX_AHEAD]);

/* The CPU uses a frame that is here: it was not requested ahead in vain.  A page that was is not
 * requested ahead again before it has been missed AHEAD_VAIN_MISSES times: two hosts may be using
 * it in turns. */
void ahead_used(struct miss_history *history, gfn_t frame);

/* A frame that was requested to write to, before the CPU wrote to it, left unchanged. */
void ahead_vain_frame(struct miss_history *history, gfn_t frame);

/* `count` frames from `first` on will be used next, without an address, to read or to write.  Store
 * those that are not here with that right, at most MAX_AHEAD; return how many.  If it is one alone,
 * the frames of the run that it continues follow.  `ahead` is of runs of frames; `rights` has the
 * enum page_right of each of the `ram_pages` frames. */
unsigned ahead_named(struct ahead *ahead, gfn_t first, unsigned count, bool write,
		     const _Atomic uint8_t *rights, uint32_t ram_pages,
		     gfn_t frames[AHEAD_NAMED_MOST]);

/* Record that a page was requested ahead and lost again unused. */
void ahead_vain(struct ahead *ahead, uint32_t page);

/* ---- for ahead_frames(), and the unit tests ---- */

/* The frame at this page is missed. */
void ahead_missed(struct ahead *ahead, gfn_t frame, uint32_t page);

/* Return whether to request the frame at this page ahead; then it is noted as requested. */
bool ahead_asks(struct ahead *ahead, gfn_t frame, uint32_t page);

#endif
