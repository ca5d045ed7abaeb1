/* paging.c - translation of linear addresses by the guest's page tables, and copies by linear
 * address.  The tables have two levels and entries of 32 bits (SDM 3, 4.3); with CR4.PAE three
 * levels and entries of 64 bits (4.4), of which the CPU holds the four of the top level, so that a
 * walk reads two in either case.
 *
 * Accessed and dirty bits are set by a locked compare-exchange on a pinned page, because other
 * processors' walks and the guest's own stores race with this one; a lost race walks again.  A
 * walk that finds the bits set only reads, so that page tables can be shared by many hosts.
 */
#include "vcpu/internal.h"

enum {
	ENTRY_PRESENT = 1 << 0, ENTRY_WRITE = 1 << 1, ENTRY_USER = 1 << 2, ENTRY_ACCESSED = 1 << 5,
	ENTRY_DIRTY = 1 << 6, ENTRY_LARGE = 1 << 7, ENTRY_GLOBAL = 1 << 8,
	PTE_RESERVED = 1 << 7,	     /* would select a PAT entry; PAT is hidden */
	LARGE_RESERVED = 0x003ff000, /* neither PAT nor PSE-36 */
	PAE_LARGE_RESERVED = 0x001ff000,
	PDPTE_RESERVED = 0x1e6,
};

/* Addresses have 36 bits, as CPUID says; there is no NX. */
#define ENTRY_ADDRESS 0x0000000ffffff000ull
#define PAE_RESERVED  0xfffffff000000000ull

enum lookup { LOOKUP_FOUND, LOOKUP_ABSENT, LOOKUP_RESERVED, LOOKUP_NO_TABLE };

/* The page-table entries of one page: the last one, and the one above it. */
struct lookup_entries {
	gpa_t pde_gpa, pte_gpa;
	uint64_t pde, pte;
	bool large; /* then pde is the last entry */
};

static uint64_t entry_at(bool pae, const uint8_t *at)
{
	return pae ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
		   : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
}

static bool entry_read(struct vcpu *v, gpa_t gpa, uint64_t *out)
{
	uint8_t *page = v->env->pin(v->env->ctx, gpa, false);

	if (!page)
		return false;
	*out = entry_at(vcpu_is_pae(v), page + (gpa & PAGE_MASK));
	v->env->unpin(v->env->ctx, gpa);
	return true;
}

/* Set bits in an entry whose value is still `old`; false: it changed, and the caller walks
 * again. */
static bool entry_set(struct vcpu *v, gpa_t gpa, uint64_t old, uint32_t bits)
{
	uint32_t old_low = (uint32_t)old;
	uint8_t *page, *at;
	bool same;

	if ((old & bits) == bits)
		return true;
	page = v->env->pin(v->env->ctx, gpa, true);
	if (!page)
		return false;
	at = page + (gpa & PAGE_MASK);
	if (vcpu_is_pae(v))
		same = __atomic_compare_exchange_n((uint64_t *)at, &old, old | bits, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else
		same = __atomic_compare_exchange_n((uint32_t *)at, &old_low, old_low | bits, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	v->env->unpin(v->env->ctx, gpa);
	return same;
}

/* Where the entry of the second-last level is; false: the entry above is not present. */
static bool pde_place(const struct vcpu *v, gva_t gva, gpa_t *gpa)
{
	uint64_t above;

	if (!vcpu_is_pae(v)) {
		*gpa = (v->cr3 & ~(uint32_t)PAGE_MASK) + (gva >> 22) * 4;
		return true;
	}
	above = v->pdpte[gva >> 30];
	*gpa = (above & ENTRY_ADDRESS) + (gva >> 21 & 0x1ff) * 8;
	return above & ENTRY_PRESENT;
}

static unsigned pte_index(const struct vcpu *v, gva_t gva)
{
	return gva >> PAGE_BITS & (vcpu_large_pages(v) - 1);
}

static bool pte_reserved(const struct vcpu *v, uint64_t pte)
{
	return pte & (vcpu_is_pae(v) ? PTE_RESERVED | PAE_RESERVED : PTE_RESERVED);
}

static bool large_reserved(const struct vcpu *v, uint64_t pde)
{
	return pde & (vcpu_is_pae(v) ? PAE_LARGE_RESERVED | PAE_RESERVED : LARGE_RESERVED);
}

static enum lookup tables_read(struct vcpu *v, gva_t gva, struct lookup_entries *e)
{
	const bool pae = vcpu_is_pae(v);

	e->pde = 0;
	if (!pde_place(v, gva, &e->pde_gpa))
		return LOOKUP_ABSENT;
	if (!entry_read(v, e->pde_gpa, &e->pde))
		return LOOKUP_NO_TABLE;
	if (!(e->pde & ENTRY_PRESENT))
		return LOOKUP_ABSENT;
	e->large = (e->pde & ENTRY_LARGE) && (pae || (v->cr4 & CR4_PSE));
	if (e->large)
		return large_reserved(v, e->pde) ? LOOKUP_RESERVED : LOOKUP_FOUND;
	if (pae && (e->pde & PAE_RESERVED))
		return LOOKUP_RESERVED;
	e->pte_gpa = (e->pde & ENTRY_ADDRESS) + pte_index(v, gva) * (pae ? 8 : 4);
	if (!entry_read(v, e->pte_gpa, &e->pte))
		return LOOKUP_NO_TABLE;
	if (!(e->pte & ENTRY_PRESENT))
		return LOOKUP_ABSENT;
	return pte_reserved(v, e->pte) ? LOOKUP_RESERVED : LOOKUP_FOUND;
}

enum pdptes paging_load_pdptes(struct vcpu *v, uint32_t cr3, uint64_t pdpte[4])
{
	gpa_t gpa = cr3 & ~(uint32_t)PAGE_MASK;
	uint8_t *page = v->env->pin(v->env->ctx, gpa, false);

	if (!page)
		return PDPTES_NO_RAM;
	for (unsigned i = 0; i < 4; i++)
		pdpte[i] = entry_at(true, page + i * 8);
	v->env->unpin(v->env->ctx, gpa);
	for (unsigned i = 0; i < 4; i++)
		if ((pdpte[i] & ENTRY_PRESENT) && (pdpte[i] & (PDPTE_RESERVED | PAE_RESERVED)))
			return PDPTES_RESERVED;
	return PDPTES_LOADED;
}

/* Both levels must allow: user or not, writable or not (SDM 3, 4.6.1). */
static bool write_allowed(const struct vcpu *v, uint64_t both, bool user)
{
	return (both & ENTRY_WRITE) || (!user && !(v->cr0 & CR0_WP));
}

static void entries_describe(const struct vcpu *v, gva_t gva, const struct lookup_entries *e,
			     bool user, struct vcpu_walk *out)
{
	uint64_t last = e->large ? e->pde : e->pte;
	uint64_t both = e->large ? e->pde : e->pde & e->pte;
	gpa_t offset = e->large ? vcpu_large_pages(v) * PAGE_BYTES - 1 : PAGE_MASK;

	out->gpa = (last & ENTRY_ADDRESS & ~offset) | (gva & offset);
	out->user = both & ENTRY_USER;
	out->global = (last & ENTRY_GLOBAL) && (v->cr4 & CR4_PGE);
	out->large = e->large;
	out->writable = (last & ENTRY_DIRTY) && write_allowed(v, both, user);
	out->error = 0;
}

static void identity_describe(gva_t gva, struct vcpu_walk *out)
{
	*out = (struct vcpu_walk){ .gpa = gva, .writable = true, .user = true };
}

static int walk_fails(struct vcpu_walk *out, uint32_t error)
{
	*out = (struct vcpu_walk){ .error = error };
	return ERR_FAULT;
}

static bool bits_set(struct vcpu *v, struct lookup_entries *e, bool dirty)
{
	uint32_t bits = ENTRY_ACCESSED | (dirty ? ENTRY_DIRTY : 0);

	if (e->large) {
		if (!entry_set(v, e->pde_gpa, e->pde, bits))
			return false;
		e->pde |= bits;
		return true;
	}
	if (!entry_set(v, e->pde_gpa, e->pde, ENTRY_ACCESSED) ||
	    !entry_set(v, e->pte_gpa, e->pte, bits))
		return false;
	e->pde |= ENTRY_ACCESSED;
	e->pte |= bits;
	return true;
}

int vcpu_walk(struct vcpu *v, gva_t gva, enum vcpu_access access, bool user, struct vcpu_walk *out)
{
	uint32_t error = (access == ACCESS_WRITE ? PF_WRITE : 0) | (user ? PF_USER : 0);
	struct lookup_entries e;
	uint64_t both;

	if (!(v->cr0 & CR0_PG)) {
		identity_describe(gva, out);
		return 0;
	}
	do {
		switch (tables_read(v, gva, &e)) {
		case LOOKUP_NO_TABLE:
			vcpu_kill(v, "page tables of address %x are outside RAM (cr3 %x, entry %x)",
				  gva, v->cr3, (uint32_t)e.pde);
			return walk_fails(out, error);
		case LOOKUP_ABSENT:
			return walk_fails(out, error);
		case LOOKUP_RESERVED:
			return walk_fails(out, error | PF_PRESENT | PF_RESERVED);
		case LOOKUP_FOUND:
			break;
		}
		both = e.large ? e.pde : e.pde & e.pte;
		if ((user && !(both & ENTRY_USER)) ||
		    (access == ACCESS_WRITE && !write_allowed(v, both, user)))
			return walk_fails(out, error | PF_PRESENT);
	} while (!bits_set(v, &e, access == ACCESS_WRITE));
	entries_describe(v, gva, &e, user, out);
	return 0;
}

/* True if the page is marked accessed, and dirty if it is writable. */
static bool is_used(const struct vcpu *v, uint64_t both, uint64_t last)
{
	return (both & ENTRY_ACCESSED) &&
	       ((last & ENTRY_DIRTY) || !write_allowed(v, both, v->cpl == 3));
}

int vcpu_peek(struct vcpu *v, gva_t gva, struct vcpu_walk *out, bool *accessed_dirty)
{
	struct lookup_entries e;
	uint64_t both, last;

	if (!(v->cr0 & CR0_PG)) {
		identity_describe(gva, out);
		*accessed_dirty = true;
		return 0;
	}
	if (tables_read(v, gva, &e) != LOOKUP_FOUND)
		return walk_fails(out, 0);
	both = e.large ? e.pde : e.pde & e.pte;
	last = e.large ? e.pde : e.pte;
	entries_describe(v, gva, &e, v->cpl == 3, out);
	*accessed_dirty = is_used(v, both, last);
	return 0;
}

/* Pin and return the page table with gva's entry; NULL: none exists, or none is needed.  `pde`
 * is the entry above. */
static const uint8_t *pin_page_table(struct vcpu *v, gva_t gva, uint64_t *pde)
{
	const bool pae = vcpu_is_pae(v);
	gpa_t gpa;

	if (!pde_place(v, gva, &gpa) || !entry_read(v, gpa, pde) || !(*pde & ENTRY_PRESENT) ||
	    ((*pde & ENTRY_LARGE) && (pae || (v->cr4 & CR4_PSE))) || (pae && (*pde & PAE_RESERVED)))
		return NULL;
	return v->env->pin(v->env->ctx, *pde & ENTRY_ADDRESS, false);
}

void vcpu_peek_run(struct vcpu *v, gva_t first, unsigned count, struct vcpu_walk *out)
{
	struct lookup_entries e = { 0 };
	const uint8_t *table = v->cr0 & CR0_PG ? pin_page_table(v, first, &e.pde) : NULL;
	const bool pae = vcpu_is_pae(v);

	for (unsigned i = 0; i < count; i++, first += PAGE_BYTES) {
		out[i].error = PF_PRESENT;
		if (!table)
			continue;
		e.pte = entry_at(pae, table + pte_index(v, first) * (pae ? 8 : 4));
		if ((e.pte & ENTRY_PRESENT) && !pte_reserved(v, e.pte) &&
		    is_used(v, e.pde & e.pte, e.pte))
			entries_describe(v, first, &e, v->cpl == 3, &out[i]);
	}
	if (table)
		v->env->unpin(v->env->ctx, e.pde & ENTRY_ADDRESS);
}

/* Copy from or to device memory, in one access of 1, 2 or 4 bytes, otherwise byte by byte. */
static void copy_device(struct vcpu *v, gpa_t gpa, uint8_t *data, unsigned bytes, bool write)
{
	unsigned step = bytes == 2 || bytes == 4 ? bytes : 1;

	for (unsigned at = 0; at < bytes; at += step) {
		uint32_t value = 0;

		if (write) {
			__builtin_memcpy(&value, data + at, step);
			mmio_device_write(v, gpa + at, step, value);
		} else {
			value = mmio_device_read(v, gpa + at, step);
			__builtin_memcpy(data + at, &value, step);
		}
	}
}

void paging_copy_physical(struct vcpu *v, gpa_t gpa, void *data, unsigned bytes, bool write)
{
	uint8_t *page = v->env->pin(v->env->ctx, gpa, write);

	if (!page) {
		copy_device(v, gpa, data, bytes, write);
		return;
	}
	page += gpa & PAGE_MASK;
	if (write)
		copy_bytes(page, data, bytes);
	else
		copy_bytes(data, page, bytes);
	v->env->unpin(v->env->ctx, gpa);
}

/* Copy at most a page's length.  Both pages are walked before either is accessed, so the copy is
 * complete or has no effect. */
static int copy_linear(struct vcpu *v, gva_t gva, uint8_t *data, unsigned bytes, bool user,
		       bool write, uint32_t *error)
{
	enum vcpu_access access = write ? ACCESS_WRITE : ACCESS_READ;
	unsigned left = PAGE_BYTES - (gva & PAGE_MASK);
	unsigned first = bytes < left ? bytes : left;
	gva_t faulting = gva;
	struct vcpu_walk walk[2];

	if (bytes == 0)
		return 0;
	if (vcpu_walk(v, gva, access, user, &walk[0]))
		goto fault;
	if (bytes > first && vcpu_walk(v, faulting = gva + first, access, user, &walk[1])) {
		walk[0] = walk[1];
		goto fault;
	}
	paging_copy_physical(v, walk[0].gpa, data, first, write);
	if (bytes > first)
		paging_copy_physical(v, walk[1].gpa, data + first, bytes - first, write);
	return 0;
fault:
	v->cr2 = faulting;
	*error = walk[0].error;
	return ERR_FAULT;
}

int vcpu_read(struct vcpu *v, gva_t gva, void *to, unsigned bytes, bool user, uint32_t *error)
{
	return copy_linear(v, gva, to, bytes, user, false, error);
}

int vcpu_write(struct vcpu *v, gva_t gva, const void *from, unsigned bytes, bool user,
	       uint32_t *error)
{
	return copy_linear(v, gva, (uint8_t *)(uintptr_t)from, bytes, user, true, error);
}
