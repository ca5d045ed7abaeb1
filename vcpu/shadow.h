/* shadow.h - a TLB in software, shared by the engines: which host mappings represent the guest's
 * page tables, and when they are removed.  Pure bookkeeping; the engine makes the mappings.
 *
 * A mapping may be stale as a TLB entry may: until the guest invalidates it (invlpg, CR3, CR4).
 */
#ifndef VCPU_SHADOW_H
#define VCPU_SHADOW_H

#include "vcpu/vcpu.h"

/* SHADOW_EXECUTE is used in the kernel's half alone. */
enum { SHADOW_VALID = 1, SHADOW_WRITE = 2, SHADOW_GLOBAL = 4, SHADOW_EXECUTE = 8 };
/* An entry is the frame, from this bit on, and SHADOW_* of the host mapping; 0: none. */
enum { SHADOW_FRAME_BITS = 8, SHADOW_NEXT = 1 << SHADOW_FRAME_BITS };
enum { LINEAR_PAGES = 1 << 20, SHADOW_CHUNK = 1024 };
/* Pages examined together: SHADOW_RUN with several hosts, where each further page costs time;
 * SHADOW_LONG_RUN with one, where a page is nearly free. */
enum { SHADOW_RUN = 16, SHADOW_LONG_RUN = 256 };

/* The engine's operations.  Both take effect before guest code runs again, in call order.
 * Neither may fail. */
struct shadow_host {
	void (*map)(void *ctx, gva_t gva, uint32_t bytes, gpa_t gpa,
		    uint32_t rights /* SHADOW_WRITE, SHADOW_EXECUTE */);
	void (*unmap)(void *ctx, gva_t gva, uint32_t bytes);
	void *ctx;
};

struct shadow {
	const struct shadow_host *host;
	uint32_t *entry; /* LINEAR_PAGES of them */
	const _Atomic uint8_t *right; /* enum page_right of each frame; NULL: not checked here */
	uint32_t ram_pages;
	unsigned run;	       /* SHADOW_RUN or SHADOW_LONG_RUN */
	unsigned first_page;   /* lowest page that can be mapped: the host's vm.mmap_min_addr */
	/* host areas at which all are dropped, so that vm.max_map_count is never reached */
	unsigned area_limit;
	bool users; /* maps what user code may touch alone, and nothing of the kernel's half */
	unsigned areas;	       /* made since the last full drop */
	unsigned user_pages;   /* entries below VMP_USER_LIMIT */
	unsigned kernel_pages; /* entries above it */
	unsigned kernel_local; /* kernel entries that a CR3 load must drop */
	uint32_t used[LINEAR_PAGES / SHADOW_CHUNK / 32]; /* chunks of `entry` that are not all 0 */
};

static inline uint32_t shadow_entry(const struct shadow *s, gva_t gva)
{
	return s->entry[gva >> PAGE_BITS];
}

static inline bool shadow_may_write(const struct shadow *s, gfn_t gfn)
{
	return !s->right || !ram_has(s->ram_pages, gfn) || s->right[gfn] == PAGE_WRITE;
}

static inline gfn_t shadow_frame(uint32_t entry) { return entry >> SHADOW_FRAME_BITS; }

/* Return the entry for the result of a walk.  The frame has at most 24 bits: paging.c. */
static inline uint32_t shadow_entry_of(const struct shadow *s, const struct vcpu_walk *w)
{
	return gpa_to_gfn(w->gpa) << SHADOW_FRAME_BITS | SHADOW_VALID |
	       (w->global ? SHADOW_GLOBAL : 0) |
	       (w->writable && shadow_may_write(s, gpa_to_gfn(w->gpa)) ? SHADOW_WRITE : 0);
}

/* Map gva, which the guest touched and its page tables allow, and the neighbours that it has
 * used already.  In the kernel's half a page is executable only once the kernel has run it, so
 * stray user code stops at once nearly everywhere.  For a write, the right to the frame is
 * requested first.  False: an exception was raised, or the guest was killed. */
bool shadow_map(struct shadow *s, struct vcpu *v, gva_t gva, const struct vcpu_walk *walk,
		enum vcpu_access access);
void shadow_drop_range(struct shadow *s, gva_t first, uint32_t pages);
/* As shadow_drop_range(), but user pages that were mapped are mapped again as v's page tables
 * say now. */
void shadow_refresh_range(struct shadow *s, struct vcpu *v, gva_t first, uint32_t pages);
void shadow_drop_all(struct shadow *s);
void shadow_switch_space(struct shadow *s);
/* Refresh the user's half after the guest flushed it: mappings that its page tables still
 * confirm stay. */
void shadow_refresh_user(struct shadow *s, struct vcpu *v);
void shadow_drop_kernel(struct shadow *s); /* all from VMP_USER_LIMIT on */

#endif
