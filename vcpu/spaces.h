/* spaces.h - several host address spaces for one virtual CPU: which of them a CR3 names, and what one that gets the CPU back
 * has to drop.  Pure bookkeeping, as shadow.h; the engine makes the host address spaces and passes the CPU from one to the
 * next.
 *
 * A host address space keeps the user mappings of one CR3 number (VMP_CR3_SPACE), as a TLB keeps those of one PCID, and the
 * kernel's beside them.  What the guest drops of the kernel's half is dropped at once in the space that runs, and in the
 * others before guest code runs there: they read it in the log.
 *
 * Beside them one may be bare: it has the user mappings of one CR3 number that another one has too, and nothing of the kernel's
 * half.  Only user code runs there.
 */
#ifndef VCPU_SPACES_H
#define VCPU_SPACES_H

#include "base/limits.h"
#include "vcpu/shadow.h"

enum { SPACES_LOG = 32 };
_Static_assert(MAX_SPACES == VMP_CR3_SPACE + 1, "one for each number");

/* What all of a CPU's host address spaces share. */
struct spaces {
	uint32_t n;	    /* host address spaces that may be used: number k lives in k % n */
	uint32_t stale;	    /* bit k: what is kept of number k is no longer true */
	uint32_t bare_stale; /* the same for what the bare one keeps */
	uint32_t all_drops; /* counts */
	uint32_t ranges;    /* counts; the last SPACES_LOG of them: */
	struct { gva_t first; uint32_t pages; } range[SPACES_LOG];
};

/* What each has for itself. */
struct space {
	struct shadow shadow;
	bool bare;
	uint32_t number, directory;	 /* whose user mappings it has: CR3's number, and its page directory */
	uint32_t seen_all_drops, seen_ranges; /* of struct spaces */
};

static inline uint32_t spaces_number(uint32_t cr3) { return cr3 & VMP_CR3_SPACE; }
/* The host address space that guest code must run in; user code may in the bare one too. */
static inline unsigned spaces_wanted(const struct spaces *all, uint32_t cr3) { return spaces_number(cr3) % all->n; }

/* For the space that has the CPU; cr3, or v->cr3, as it is now, which may name another already: */

/* CR3 was loaded; without `keep` all but the global translations of its number go. */
void spaces_cr3_loaded(struct spaces *all, uint32_t cr3, bool keep);
void spaces_drop_range(struct spaces *all, struct space *own, struct vcpu *v, gva_t first, uint32_t pages);
void spaces_drop_all(struct spaces *all, struct space *own);

/* What others have dropped of the space that has the CPU, its monitor among them, goes there. */
void spaces_catch_up(const struct spaces *all, struct space *own);

/* Before guest code runs in the space spaces_wanted(), or user code in the bare one, v->cr3 being loaded: drop what is no longer
 * true. */
void spaces_enter(struct spaces *all, struct space *own, struct vcpu *v);

#endif
