/* spaces.h - several host address spaces for one virtual CPU: which of them a CR3 selects, and
 * what a space must drop when it gets the CPU back.  Pure bookkeeping, as shadow.h.  The engine
 * makes the host address spaces and passes the CPU between them.
 *
 * A host address space keeps the user mappings of one CR3 number (VMP_CR3_SPACE), as a TLB keeps
 * those of one PCID, and the kernel's beside them.  When the guest drops kernel mappings, the
 * running space drops them at once.  The others read the log and drop them before guest code
 * runs there.
 *
 * One further space may be bare: it has user mappings of one CR3 number, which another space has
 * too, and no kernel mappings.  Only user code runs there.
 */
#ifndef VCPU_SPACES_H
#define VCPU_SPACES_H

#include "base/limits.h"
#include "vcpu/shadow.h"

enum { SPACES_LOG = 32 };
_Static_assert(MAX_SPACES == VMP_CR3_SPACE + 1, "one for each number");

/* The state that all host address spaces of a CPU share. */
struct spaces {
	uint32_t n;	    /* host address spaces that may be used: number k lives in k % n */
	uint32_t stale;	    /* bit k: the mappings kept for number k are out of date */
	uint32_t bare_stale; /* the same for the bare space */
	uint32_t all_drops; /* number of full drops so far */
	uint32_t ranges;    /* number of dropped ranges; the last SPACES_LOG ones: */
	struct { gva_t first; uint32_t pages; } range[SPACES_LOG];
};

/* The state of one host address space. */
struct space {
	struct shadow shadow;
	bool bare;
	uint32_t number, directory;	 /* of its user mappings: CR3's number and page directory */
	uint32_t seen_all_drops, seen_ranges; /* of struct spaces */
};

static inline uint32_t spaces_number(uint32_t cr3) { return cr3 & VMP_CR3_SPACE; }
/* The host address space that guest code must run in; user code may in the bare one too. */
static inline unsigned spaces_wanted(const struct spaces *all, uint32_t cr3)
{
	return spaces_number(cr3) % all->n;
}

/* These work for the space that has the CPU.  cr3 (or v->cr3) is the current one, which may
 * already select another space: */

/* Record a CR3 load; without `keep` all but the global translations of its number are dropped. */
void spaces_cr3_loaded(struct spaces *all, uint32_t cr3, bool keep);
void spaces_drop_range(struct spaces *all, struct space *own, struct vcpu *v, gva_t first,
		       uint32_t pages);
/* As spaces_drop_range(), with a bare space beside `own` that has user mappings of the same
 * numbers: it is brought up to date at once if it can be, else when it is entered next. */
void spaces_drop_range_beside(struct spaces *all, struct space *own, struct space *beside,
			      struct vcpu *v, gva_t first, uint32_t pages);
void spaces_drop_all(struct spaces *all, struct space *own);

/* Drop in the space that has the CPU what others, also its monitor, have dropped for it. */
void spaces_catch_up(const struct spaces *all, struct space *own);

/* Drop outdated mappings.  Called with v->cr3 loaded, before guest code runs in the space
 * spaces_wanted(), or user code in the bare one. */
void spaces_enter(struct spaces *all, struct space *own, struct vcpu *v);

#endif
