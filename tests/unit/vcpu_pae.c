/* vcpu_pae.c - page walks with CR4.PAE (vcpu/paging.c) and the loading of the top level's entries
 * (vcpu/system.c): rights, reserved bits, sizes, frames above 4 GiB. */
#include <errno.h>

#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)
#define HIGH 0x200000000ull /* a frame at 8 GiB */
enum { TOP = 0x6000, MIDDLE = 0x7000, LAST = 0x8000 };
/* in the third of the four parts; its places in the tables */
enum { AT_PDE = MIDDLE + 3 * 8, AT_PTE = LAST + 5 * 8 };
static const gva_t at = 2u << 30 | 3 << 21 | 5 << 12 | 0xabc;
static const uint64_t over[] = { 1ull << 36, 1ull << 51, 1ull << 52, 1ull << 63 };

static struct vcpu_walk walk;

static void set64(gpa_t gpa, uint64_t value) { memcpy(fake.ram + gpa, &value, sizeof value); }

static uint64_t get64(gpa_t gpa)
{
	uint64_t value;

	memcpy(&value, fake.ram + gpa, sizeof value);
	return value;
}

/* Loads CR3 by the guest's own instruction, mov %eax to CR3. */
static enum vcpu_result load_cr3(uint32_t value)
{
	V->gpr[EAX] = value;
	return RUN(0x0f, 0x22, 0xd8);
}

/* Identity tables in the first part, so that code runs; `at` by MIDDLE and LAST. */
static void reset(uint64_t pde, uint64_t pte)
{
	fake_reset();
	set64(TOP, 0x9000 | P);
	set64(0x9000, PS | P | W | U | A | D);
	set64(0x9008, 0x200000 | PS | P | W | U | A | D);
	set64(TOP + 16, MIDDLE | P);
	set64(AT_PDE, pde);
	set64(AT_PTE, pte);
	V->cr4 |= CR4_PAE;
	V->pdpte[0] = get64(TOP);
	V->pdpte[2] = get64(TOP + 16);
	V->cr3 = TOP;
}

static bool allowed(uint64_t both, bool write, bool user, bool wp)
{
	return user ? (both & U) && (!write || (both & W)) : !write || !wp || (both & W);
}

/* P, W and U of both entries, each access by user and kernel, with and without CR0.WP. */
static void small_matrix(void)
{
	for (unsigned n = 0; n < 8 * 8 * 3 * 2 * 2; n++) {
		uint64_t pde = n & 7, pte = n >> 3 & 7;
		enum vcpu_access access = (n >> 6) % 3;
		bool user = (n >> 6) / 3 & 1, wp = (n >> 6) / 6 & 1, write = access == ACCESS_WRITE;
		bool present = pde & pte & P, ok = present && allowed(pde & pte, write, user, wp);

		reset(LAST | pde, HIGH | pte);
		V->cr0 = wp ? V->cr0 | CR0_WP : V->cr0 & ~CR0_WP;
		CU_ASSERT_EQUAL(vcpu_walk(V, at, access, user, &walk), ok ? 0 : -EFAULT);
		CU_ASSERT_EQUAL(get64(AT_PDE), LAST | pde | (ok ? A : 0));
		CU_ASSERT_EQUAL(get64(AT_PTE),
				HIGH | pte | (ok ? A : 0) | (ok && write ? D : 0));
		if (!ok) {
			CU_ASSERT_EQUAL(walk.error, (present ? PF_PRESENT : 0) |
							    (write ? PF_WRITE : 0) |
							    (user ? PF_USER : 0));
			continue;
		}
		CU_ASSERT_EQUAL(walk.gpa, HIGH | 0xabc);
		CU_ASSERT_EQUAL(walk.user, !!(pde & pte & U));
		CU_ASSERT_EQUAL(walk.writable, write);
		CU_ASSERT_FALSE(walk.large);
	}
}

/* Pages of 2 MiB, whatever CR4.PSE says. */
static void large_matrix(void)
{
	for (unsigned n = 0; n < 8 * 2 * 2 * 2 * 2; n++) {
		uint64_t pde = n & 7;
		bool write = n >> 3 & 1, user = n >> 4 & 1, wp = n >> 5 & 1;
		bool ok = (pde & P) && allowed(pde, write, user, wp);

		reset(HIGH | PS | pde, 0);
		V->cr0 = wp ? V->cr0 | CR0_WP : V->cr0 & ~CR0_WP;
		V->cr4 = n >> 6 & 1 ? V->cr4 : V->cr4 & ~CR4_PSE;
		CU_ASSERT_EQUAL(vcpu_walk(V, at, write, user, &walk), ok ? 0 : -EFAULT);
		CU_ASSERT_EQUAL(get64(AT_PDE),
				HIGH | PS | pde | (ok ? A : 0) | (ok && write ? D : 0));
		if (ok) {
			CU_ASSERT_EQUAL(walk.gpa, HIGH | (at & 0x1fffff));
			CU_ASSERT_TRUE(walk.large);
		}
	}
}

/* Every reserved bit of each kind of entry, and the bits beside them that are not reserved. */
static void reserved_bits(void)
{
	static const struct { bool large, in_pde; uint64_t from, to; } rows[] = {
		{ true, true, 12, 20 },  { true, true, 36, 63 }, { false, true, 36, 63 },
		{ false, false, 7, 7 },  { false, false, 36, 63 },
	};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++)
		for (uint64_t bit = rows[r].from; bit <= rows[r].to; bit++) {
			uint64_t extra = 1ull << bit, pde = (rows[r].large ? PS : LAST) | P | W | U,
				 pte = HIGH | P | W | U;

			reset(rows[r].in_pde ? pde | extra : pde,
			      rows[r].in_pde ? pte : pte | extra);
			CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_WRITE, true, &walk), -EFAULT);
			CU_ASSERT_EQUAL(walk.error,
					PF_PRESENT | PF_RESERVED | PF_WRITE | PF_USER);
			vcpu_peek_run(V, at, 1, &walk);
			CU_ASSERT(walk.error);
			/* not present comes first */
			set64(rows[r].in_pde ? AT_PDE : AT_PTE, extra);
			CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), -EFAULT);
			CU_ASSERT_EQUAL(walk.error, 0);
		}
	reset(LAST | P, 1ull << 35 | P);
	CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), 0);
	CU_ASSERT_EQUAL(walk.gpa, 1ull << 35 | 0xabc);
}

/* An entry of the top level that is not present; the rest of it is not looked at. */
static void top_level(void)
{
	reset(LAST | P, HIGH | P);
	V->pdpte[2] &= ~(uint64_t)P;
	CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), -EFAULT);
	CU_ASSERT_EQUAL(walk.error, 0);
	vcpu_peek_run(V, at, 1, &walk);
	CU_ASSERT(walk.error);
	/* the tables in memory do not count before CR3 is loaded again */
	reset(LAST | P, HIGH | P);
	set64(TOP + 16, 0);
	CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), 0);
	CU_ASSERT_EQUAL(load_cr3(TOP | 1), VCPU_DONE);
	CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), -EFAULT);
}

/* mov to CR3: #GP for a present entry with a reserved bit, and nothing changes. */
static void loads_of_cr3(void)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		bool reserved = bit == 1 || bit == 2 || (bit >= 5 && bit <= 8) || bit >= 36;
		uint64_t before;

		reset(LAST | P, HIGH | P);
		before = V->pdpte[2];
		set64(TOP + 24, 1ull << bit | P);
		if (reserved) {
			CHECK_FAULT(load_cr3(TOP | 3), VECTOR_GP, 0);
			CU_ASSERT(V->cr3 == TOP && V->pdpte[2] == before && !V->pdpte[3]);
			set64(TOP + 24, 1ull << bit); /* not present */
		}
		CU_ASSERT_EQUAL(load_cr3(TOP | 3), VCPU_DONE);
		CU_ASSERT_EQUAL(V->cr3, TOP | 3);
		CU_ASSERT_EQUAL(V->pdpte[3], get64(TOP + 24));
	}
	reset(LAST | P, HIGH | P);
	load_cr3(RAM_BYTES);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	for (unsigned i = 0; i < ARRAY_LEN(over); i++) { /* the hypercall ends the guest */
		reset(LAST | P, HIGH | P);
		set64(TOP + 24, over[i] | P);
		V->gpr[EAX] = VMP_HC_RELOAD_CR3;
		RUN(0xcd, VMP_INT_HYPERCALL);
		CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	}
}

/* Paging and PAE may be turned on in any order; the top level is loaded when both are on. */
static void control_registers(void)
{
	for (unsigned bad = 0; bad < 2; bad++) {
		reset(LAST | P, HIGH | P);
		memset(V->pdpte, 0, sizeof V->pdpte);
		V->cr0 &= ~CR0_PG;
		if (bad)
			set64(TOP + 8, 2 | P);
		V->gpr[EAX] = V->cr0 | CR0_PG;
		if (bad) { /* the fault finds no handler in this page table */
			RUN(0x0f, 0x22, 0xc0);
			CU_ASSERT(!(V->cr0 & CR0_PG) && !V->pdpte[2]);
			continue;
		}
		CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xc0), VCPU_DONE);
		CU_ASSERT_EQUAL(V->pdpte[2], (uint64_t)(MIDDLE | P));
		V->pdpte[2] = 0;
		V->gpr[EAX] = V->cr4 & ~CR4_PGE;
		CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xe0), VCPU_DONE);
		CU_ASSERT_EQUAL(V->pdpte[2], (uint64_t)(MIDDLE | P));
	}
}

/* A run of pages is looked up in one table of 512 entries. */
static void runs(void)
{
	struct vcpu_walk run[3];

	reset(LAST | P | W | U | A, HIGH | P | W | U | A | D);
	set64(AT_PTE + 8, (HIGH + 0x5000) | P | U | A);
	vcpu_peek_run(V, at & ~0xfffu, 3, run);
	CU_ASSERT(!run[0].error && run[0].gpa == HIGH && run[0].writable);
	CU_ASSERT(!run[1].error && run[1].gpa == HIGH + 0x5000 && !run[1].writable);
	CU_ASSERT(run[2].error);
}

static void tables_outside_ram(void)
{
	reset(HIGH | P, 0);
	CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), -EFAULT);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	reset(LAST | P, HIGH | P);
	V->pdpte[2] = HIGH | P;
	CU_ASSERT_EQUAL(vcpu_walk(V, at, ACCESS_READ, false, &walk), -EFAULT);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
}

static void host_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
	(void)subleaf;
	out[0] = leaf & 1u << 31 ? 0x80000008 : 0xd;
	out[1] = out[2] = out[3] = ~0u;
}

static void cpuid(void)
{
	static const struct { uint32_t pages; bool pae; } rows[] = {
		{ 256 << 8, false }, { 3072 << 8, false }, { (3072 << 8) + 1, true },
		{ 6400 << 8, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t out[4];

		fake_reset();
		fake.host_cpuid = host_cpuid;
		V->ram_pages = rows[i].pages;
		vcpu_cpuid(V, 1, 0, out);
		CU_ASSERT_EQUAL(out[3] >> 6 & 1, rows[i].pae);
		vcpu_cpuid(V, 0x80000001, 0, out);
		CU_ASSERT_EQUAL(out[3] >> 6 & 1, rows[i].pae);
		vcpu_cpuid(V, 0x80000008, 0, out);
		CU_ASSERT_EQUAL(out[0], (rows[i].pae ? 36 : 32) | 32 << 8);
	}
}

/* RAM and its hole (base/layout.h). */
static void layout(void)
{
	static const struct { uint32_t mib, pages; } rows[] = {
		{ 256, 256 << 8 }, { 3072, 3072 << 8 }, { 3840, 3840 << 8 },
		{ 3841, (4096 + 1) << 8 }, { 6144, (6144 + 256) << 8 },
		{ 16384, (16384 + 256) << 8 },
	};
	static const struct { gfn_t gfn; bool is; } frames[] = {
		{ 0, true }, { RAM_HOLE_GFN - 1, true }, { RAM_HOLE_GFN, false },
		{ VMP_IOAPIC_GPA >> 12, false }, { VMP_LAPIC_GPA >> 12, false },
		{ RAM_HOLE_END_GFN - 1, false }, { RAM_HOLE_END_GFN, true },
		{ ((6144 + 256) << 8) - 1, true }, { (6144 + 256) << 8, false },
		{ UINT32_MAX, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CU_ASSERT_EQUAL(ram_pages_of(rows[i].mib), rows[i].pages);
	for (unsigned i = 0; i < ARRAY_LEN(frames); i++)
		CU_ASSERT_EQUAL(ram_has(ram_pages_of(6144), frames[i].gfn), frames[i].is);
	CU_ASSERT_EQUAL(kernel_base(ram_pages_of(3072)), VMP_USER_LIMIT);
	CU_ASSERT_EQUAL(kernel_base(ram_pages_of(3073)), 0xc0000000);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(small_matrix),
		UNIT_TEST(large_matrix),
		UNIT_TEST(reserved_bits),
		UNIT_TEST(top_level),
		UNIT_TEST(loads_of_cr3),
		UNIT_TEST(control_registers),
		UNIT_TEST(runs),
		UNIT_TEST(tables_outside_ram),
		UNIT_TEST(cpuid),
		UNIT_TEST(layout),
		UNIT_END
	};
	return UNIT_RUN("vcpu pae", tests);
}
