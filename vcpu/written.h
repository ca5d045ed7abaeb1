/* written.h - which instructions read pages that the program then writes to.
 *
 * A page that is read first and written to afterwards costs two requests: the copy, and then the
 * right.  Programs do that in loops, where the same instruction reads page after page of an array.
 * So each instruction that misses pages has a credit: 1 more for each page that is written to after
 * that instruction has read it, and 1 less for each one that is not, until the place where it is
 * remembered is needed for another page.  From WRITTEN_ON on, the pages that the instruction reads
 * are requested to write to at once.  One that leaves unchanged nevertheless costs WRITTEN_VAIN.
 *
 * This is for arrays.  vmm/node/pages/both.h does it for a single page that comes and goes, by that
 * page's history.
 *
 * Pages are linear pages of one address space.  All zero: nothing is known.  Pure.
 */
#ifndef VCPU_WRITTEN_H
#define VCPU_WRITTEN_H

#include "base/types.h"

enum { WRITTEN_INSNS = 64, WRITTEN_PAGES = 1024,
       WRITTEN_ON = 8, WRITTEN_MOST = 16, WRITTEN_LEAST = -64, WRITTEN_VAIN = 8 };

struct written {
	struct { uint32_t eip; int32_t credit; } insn[WRITTEN_INSNS]; /* by eip, hashed */
	struct { uint32_t page_plus_1, eip; } read[WRITTEN_PAGES];    /* by page, modulo */
};

/* The instruction at eip reads a page that is not here, or one that is requested ahead for it.
 * Returns whether to request the page to write to. */
bool written_read(struct written *written, uint32_t eip, uint32_t page);

/* A page of which a copy was here is written to. */
void written_upgraded(struct written *written, uint32_t page);

/* A page that was requested to write to left unchanged. */
void written_vain(struct written *written, uint32_t page);

#endif
