/* shadow.h - which host mappings stand for the guest's page tables, and when they go: a TLB in software, shared by the
 * engines.  Pure bookkeeping; the engine makes the mappings.
 *
 * A mapping may be as stale as a TLB entry may: until the guest says that it changed something (invlpg, CR3, CR4).
 */
#ifndef VCPU_SHADOW_H
#define VCPU_SHADOW_H

#include "vcpu/vcpu.h"

enum { SHADOW_VALID = 1, SHADOW_WRITE = 2, SHADOW_GLOBAL = 4, SHADOW_EXECUTE = 8 /* of the kernel's half */ };
enum { LINEAR_PAGES = 1 << 20, SHADOW_CHUNK = 1024 };
/* Pages looked at together: with several hosts each that comes along has its price, with one hardly. */
enum { SHADOW_RUN = 16, SHADOW_LONG_RUN = 256 };

/* Both take effect before guest code runs again, in this order. Neither may fail. */
struct shadow_host {
	void (*map)(void *ctx, gva_t gva, uint32_t bytes, gpa_t gpa, uint32_t rights /* SHADOW_WRITE, SHADOW_EXECUTE */);
	void (*unmap)(void *ctx, gva_t gva, uint32_t bytes);
	void *ctx;
};

struct shadow {
	const struct shadow_host *host;
	uint32_t *entry;       /* LINEAR_PAGES of them: frame << 12 | SHADOW_* of the host mapping, 0: none */
	const _Atomic uint8_t *right; /* enum page_right of each frame: PAGE_WRITE to write to it; NULL: others see to that */
	uint32_t ram_pages;
	unsigned run;	       /* SHADOW_RUN or SHADOW_LONG_RUN */
	unsigned first_page;   /* nothing can be mapped below: the host's vm.mmap_min_addr */
	unsigned area_limit;   /* drop all rather than make more host areas than this: vm.max_map_count is never reached */
	unsigned areas;	       /* made since the last full drop */
	unsigned user_pages;   /* entries below VMP_USER_LIMIT */
	unsigned kernel_pages; /* entries above it */
	unsigned kernel_local; /* those of them that a CR3 load must drop */
	uint32_t used[LINEAR_PAGES / SHADOW_CHUNK / 32]; /* chunks of `entry` that are not all 0 */
};

static inline uint32_t shadow_entry(const struct shadow *s, gva_t gva) { return s->entry[gva >> PAGE_BITS]; }

static inline bool shadow_may_write(const struct shadow *s, gfn_t gfn)
{
	return !s->right || gfn >= s->ram_pages || s->right[gfn] == PAGE_WRITE;
}

/* The entry that a walk asks for. */
static inline uint32_t shadow_entry_of(const struct shadow *s, const struct vcpu_walk *w)
{
	return (w->gpa & ~(uint32_t)PAGE_MASK) | SHADOW_VALID | (w->global ? SHADOW_GLOBAL : 0) |
	       (w->writable && shadow_may_write(s, gpa_to_gfn(w->gpa)) ? SHADOW_WRITE : 0);
}

/* The guest touched gva, and its page tables allow it: map it, and the neighbours that it has used already.  Of the kernel's half
 * only what the kernel runs may be executed: user code that strays there stops at once, nearly everywhere.  For a write, the right
 * to the frame is asked for first. */
bool shadow_map(struct shadow *s, struct vcpu *v, gva_t gva, const struct vcpu_walk *walk, enum vcpu_access access);
void shadow_drop_range(struct shadow *s, gva_t first, uint32_t pages);
/* As shadow_drop_range; but what was mapped of the user's half is mapped as v's page tables have it now, if they do. */
void shadow_refresh_range(struct shadow *s, struct vcpu *v, gva_t first, uint32_t pages);
void shadow_drop_all(struct shadow *s);
void shadow_switch_space(struct shadow *s);
/* The guest has dropped the user's half of an address space that goes on: what its page tables still say stays mapped. */
void shadow_refresh_user(struct shadow *s, struct vcpu *v);
void shadow_drop_kernel(struct shadow *s); /* all from VMP_USER_LIMIT on */

#endif
