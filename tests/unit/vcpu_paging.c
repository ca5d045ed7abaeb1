/* vcpu_paging.c - page walks and copies (vcpu/paging.c): the whole matrix of rights, bits, sizes
 * and races. */
#include <errno.h>

#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)
enum { GVA = 0x70abc, LARGE = 0x00c00000 /* linear, mapped to 0 by one large entry */ };

static struct vcpu_walk walk;

static void paging_off(void)
{
	fake_reset();
	V->cr0 &= ~CR0_PG;
	CU_ASSERT_EQUAL(vcpu_walk(V, 0xdeadbeef, ACCESS_WRITE, false, &walk), 0);
	CU_ASSERT_EQUAL(walk.gpa, 0xdeadbeef);
	CU_ASSERT_TRUE(walk.writable);
	CU_ASSERT_FALSE(walk.large || walk.global);
	CU_ASSERT_EQUAL(fake.pin_calls, 0);
}

/* What the architecture says (SDM 3, 4.6.1 and 4.7), written down independently of the code. */
static bool allowed(uint32_t pde, uint32_t pte, bool write, bool user, bool wp)
{
	if (user)
		return (pde & U) && (pte & U) && (!write || ((pde & W) && (pte & W)));
	return !write || !wp || ((pde & W) && (pte & W));
}

/* Every combination of P, W, U in both entries, read/write/fetch, user/supervisor, WP. */
static void small_matrix(void)
{
	for (unsigned n = 0; n < 8 * 8 * 3 * 2 * 2; n++) {
		uint32_t pde = n & 7, pte = n >> 3 & 7;
		enum vcpu_access access = (n >> 6) % 3;
		bool user = (n >> 6) / 3 & 1, wp = (n >> 6) / 6 & 1, write = access == ACCESS_WRITE;
		bool present = (pde & P) && (pte & P),
		     ok = present && allowed(pde, pte, write, user, wp);
		int result;

		fake_reset();
		set32(PAGE_DIR, PAGE_TABLE | pde);
		set_pte(GVA, 0x33000 | pte);
		V->cr0 = wp ? V->cr0 | CR0_WP : V->cr0 & ~CR0_WP;
		result = vcpu_walk(V, GVA, access, user, &walk);
		CU_ASSERT_EQUAL(result, ok ? 0 : -EFAULT);
		CU_ASSERT_EQUAL(ram32(PAGE_DIR), PAGE_TABLE | pde | (ok ? A : 0));
		CU_ASSERT_EQUAL(get_pte(GVA), 0x33000 | pte | (ok ? A : 0) | (ok && write ? D : 0));
		if (!ok) {
			CU_ASSERT_EQUAL(walk.error, (present ? PF_PRESENT : 0) |
							    (write ? PF_WRITE : 0) |
							    (user ? PF_USER : 0));
			continue;
		}
		CU_ASSERT_EQUAL(walk.gpa, 0x33abc);
		CU_ASSERT_EQUAL(walk.user, (pde & U) && (pte & U));
		CU_ASSERT_EQUAL(walk.writable, write); /* only then the dirty bit stands */
		CU_ASSERT_FALSE(walk.large);
	}
}

static void large_matrix(void)
{
	for (unsigned n = 0; n < 8 * 2 * 2 * 2; n++) {
		uint32_t pde = n & 7;
		bool write = n >> 3 & 1, user = n >> 4 & 1, wp = n >> 5 & 1;
		bool ok = (pde & P) && allowed(pde, 7, write, user, wp);

		fake_reset();
		set32(PAGE_DIR + 12, 0x00400000 | PS | pde);
		V->cr0 = wp ? V->cr0 | CR0_WP : V->cr0 & ~CR0_WP;
		CU_ASSERT_EQUAL(vcpu_walk(V, LARGE + 0x123456, write, user, &walk),
				ok ? 0 : -EFAULT);
		CU_ASSERT_EQUAL(ram32(PAGE_DIR + 12),
				0x00400000 | PS | pde | (ok ? A : 0) | (ok && write ? D : 0));
		if (ok) {
			CU_ASSERT_EQUAL(walk.gpa, 0x00523456);
			CU_ASSERT_TRUE(walk.large);
			CU_ASSERT_EQUAL(walk.writable, write);
		}
	}
}

static void large_only_with_pse(void)
{
	fake_reset();
	V->cr4 &= ~CR4_PSE;
	set32(PAGE_DIR, PAGE_TABLE | P | W | PS);
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_READ, false, &walk), 0);
	CU_ASSERT_EQUAL(walk.gpa, GVA);
	CU_ASSERT_FALSE(walk.large);
}

static void reserved_bits(void)
{
	for (unsigned bit = 12; bit < 22; bit++) {
		fake_reset();
		set32(PAGE_DIR + 12, PS | P | W | U | 1u << bit);
		CU_ASSERT_EQUAL(vcpu_walk(V, LARGE, ACCESS_WRITE, true, &walk), -EFAULT);
		CU_ASSERT_EQUAL(walk.error, PF_PRESENT | PF_RESERVED | PF_WRITE | PF_USER);
		set32(PAGE_DIR + 12, PS | 1u << bit); /* not present comes first */
		CU_ASSERT_EQUAL(vcpu_walk(V, LARGE, ACCESS_READ, false, &walk), -EFAULT);
		CU_ASSERT_EQUAL(walk.error, 0);
	}
	fake_reset();
	set_pte(GVA, 0x33000 | P | PS); /* PAT's bit in a page table */
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_READ, false, &walk), -EFAULT);
	CU_ASSERT_EQUAL(walk.error, PF_PRESENT | PF_RESERVED);
}

static void global_pages(void)
{
	fake_reset();
	set_pte(GVA, 0x33000 | P | G);
	vcpu_walk(V, GVA, ACCESS_READ, false, &walk);
	CU_ASSERT_TRUE(walk.global);
	V->cr4 &= ~CR4_PGE;
	vcpu_walk(V, GVA, ACCESS_READ, false, &walk);
	CU_ASSERT_FALSE(walk.global);
}

/* `writable` says whether a host mapping may be writable without a further walk. */
static void writable_needs_dirty(void)
{
	fake_reset();
	set_pte(GVA, 0x33000 | P | W | U | A | D);
	vcpu_walk(V, GVA, ACCESS_READ, true, &walk);
	CU_ASSERT_TRUE(walk.writable);
	set_pte(GVA, 0x33000 | P | W | U | A);
	vcpu_walk(V, GVA, ACCESS_READ, true, &walk);
	CU_ASSERT_FALSE(walk.writable);
	set_pte(GVA, 0x33000 | P | U | A | D);
	vcpu_walk(V, GVA, ACCESS_READ, true, &walk);
	CU_ASSERT_FALSE(walk.writable);
	V->cr0 &= ~CR0_WP;
	vcpu_walk(V, GVA, ACCESS_READ, false, &walk);
	CU_ASSERT_TRUE(walk.writable);
}

/* Page tables whose bits are set are only read, so that many hosts can share them. */
static void settled_walks_do_not_write(void)
{
	fake_reset();
	vcpu_walk(V, GVA, ACCESS_WRITE, true, &walk);
	CU_ASSERT_EQUAL(fake.write_pins, 0);
	set_pte(GVA, 0x33000 | P | W | U | A);
	vcpu_walk(V, GVA, ACCESS_READ, true, &walk);
	CU_ASSERT_EQUAL(fake.write_pins, 0);
	vcpu_walk(V, GVA, ACCESS_WRITE, true, &walk);
	CU_ASSERT_EQUAL(fake.write_pins, 1);
}

static void races_once(struct fake *f, gpa_t gpa, bool write)
{
	if (!write || gpa_to_gfn(gpa) != gpa_to_gfn(PAGE_TABLE))
		return;
	f->on_pin = NULL;
	set_pte(GVA, 0x44000 | P | W | U); /* another CPU moves the page before the bits are set */
}

static void unmaps_once(struct fake *f, gpa_t gpa, bool write)
{
	if (!write || gpa_to_gfn(gpa) != gpa_to_gfn(PAGE_TABLE))
		return;
	f->on_pin = NULL;
	set_pte(GVA, 0);
}

static void races(void)
{
	fake_reset();
	set_pte(GVA, 0x33000 | P | W | U);
	fake.on_pin = races_once;
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_WRITE, true, &walk), 0);
	CU_ASSERT_EQUAL(walk.gpa, 0x44abc);
	CU_ASSERT_EQUAL(get_pte(GVA), 0x44000 | P | W | U | A | D);
	set_pte(GVA, 0x33000 | P | W | U);
	fake.on_pin = unmaps_once;
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_WRITE, true, &walk), -EFAULT);
	CU_ASSERT_EQUAL(get_pte(GVA), 0); /* no bit is set in an entry that went away */
}

static void tables_outside_ram(void)
{
	fake_reset();
	V->cr3 = 0xf0000000;
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_READ, false, &walk), -EFAULT);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	CU_ASSERT_PTR_NOT_NULL(strstr(V->dead_reason, "outside RAM"));
	fake_reset();
	set32(PAGE_DIR, 0xf0000000 | P | W);
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_READ, false, &walk), -EFAULT);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	fake_reset();
	set32(PAGE_DIR, 0xf0000000 | P | W);
	bool used;
	CU_ASSERT_EQUAL(vcpu_peek(V, GVA, &walk, &used), -EFAULT); /* a look kills nobody */
	CU_ASSERT_EQUAL(V->dead, VCPU_ALIVE);
	fake_reset();
	set_pte(GVA, VMP_LAPIC_GPA | P | W);
	/* device memory is fine */
	CU_ASSERT_EQUAL(vcpu_walk(V, GVA, ACCESS_WRITE, false, &walk), 0);
	CU_ASSERT_EQUAL(walk.gpa, VMP_LAPIC_GPA | 0xabc);
}

static void peek(void)
{
	static const struct { uint32_t pde, pte; bool used; bool found;
	} cases[] = {
		{ P | W | U | A, P | W | U | A | D, true, true },
		{ P | W | U | A, P | W | U | A, false, true },
		{ P | W | U | A, P | U | A, true, true },
		{ P | W | U | A, P | U, false, true },
		{ P | W | U, P | U | A, false, true },
		{ P, 0, false, false },
		{ 0, P, false, false },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		struct vcpu_walk run[3];
		bool used;

		fake_reset();
		set32(PAGE_DIR, PAGE_TABLE | cases[n].pde);
		set_pte(GVA, 0x33000 | cases[n].pte);
		CU_ASSERT_EQUAL(vcpu_peek(V, GVA, &walk, &used), cases[n].found ? 0 : -EFAULT);
		vcpu_peek_run(V, (GVA & ~(uint32_t)PAGE_MASK) - PAGE_BYTES, 3, run);
		CU_ASSERT_EQUAL(!run[1].error, cases[n].found && cases[n].used);
		if (!run[1].error)
			CU_ASSERT(run[1].gpa == 0x33000 && run[1].writable == walk.writable &&
				  run[1].user == walk.user && !run[1].large);
		CU_ASSERT_EQUAL(ram32(PAGE_DIR), PAGE_TABLE | cases[n].pde);
		CU_ASSERT_EQUAL(get_pte(GVA), 0x33000 | cases[n].pte);
		CU_ASSERT_EQUAL(fake.write_pins, 0);
		if (cases[n].found) {
			CU_ASSERT_EQUAL(used, cases[n].used);
			CU_ASSERT_EQUAL(walk.gpa, 0x33abc);
			CU_ASSERT_EQUAL(walk.writable, (cases[n].pte & (W | D)) == (W | D));
		}
	}
}

static void peek_at_no_table(void)
{
	struct vcpu_walk run[2] = { 0 };

	fake_reset();
	set32(PAGE_DIR, 0x33000 | P | W | U | A | 0x80 /* 4 MiB */);
	V->cr4 |= CR4_PSE;
	vcpu_peek_run(V, GVA, 2, run);
	CU_ASSERT(run[0].error && run[1].error);
	fake_reset();
	set32(PAGE_DIR, 0xf0000000 | P | W);
	vcpu_peek_run(V, GVA, 2, run);
	CU_ASSERT(run[0].error && run[1].error && V->dead == VCPU_ALIVE);
	fake_reset();
	V->cr0 &= ~(uint32_t)CR0_PG;
	vcpu_peek_run(V, GVA, 2, run);
	CU_ASSERT(run[0].error && run[1].error);
}

/* ---- copies */

static void copies(void)
{
	uint8_t data[PAGE_BYTES], back[PAGE_BYTES];
	uint32_t error;

	for (unsigned n = 0; n < sizeof data; n++)
		data[n] = (uint8_t)(n * 7);
	for (unsigned bytes = 1; bytes <= PAGE_BYTES; bytes = bytes * 2 + (bytes & 1)) {
		fake_reset();
		CU_ASSERT_EQUAL(vcpu_write(V, 0x70ff1, data, bytes, true, &error), 0);
		CU_ASSERT_EQUAL(memcmp(fake.ram + 0x70ff1, data, bytes), 0);
		CU_ASSERT_EQUAL(fake.ram[0x70ff1 + bytes], 0);
		CU_ASSERT_EQUAL(vcpu_read(V, 0x70ff1, back, bytes, true, &error), 0);
		CU_ASSERT_EQUAL(memcmp(back, data, bytes), 0);
	}
	CU_ASSERT_EQUAL(vcpu_read(V, 0xf0000000, back, 0, true, &error), 0);
}

static void copies_across_unlike_pages(void)
{
	uint32_t error, value = 0x44332211;

	fake_reset();
	set_pte(0x71000, 0x90000 | P | W | U | A | D);
	CU_ASSERT_EQUAL(vcpu_write(V, 0x70ffe, &value, 4, true, &error), 0);
	CU_ASSERT_EQUAL(ram16(0x70ffe), 0x2211);
	CU_ASSERT_EQUAL(ram16(0x90000), 0x4433);
}

static void copy_faults(void)
{
	uint32_t error, value = 0x44332211;

	fake_reset();
	set_pte(0x71000, 0x71000 | P);
	CU_ASSERT_EQUAL(vcpu_write(V, 0x70ffe, &value, 4, true, &error), -EFAULT);
	CU_ASSERT_EQUAL(V->cr2, 0x71000);
	CU_ASSERT_EQUAL(error, PF_PRESENT | PF_WRITE | PF_USER);
	CU_ASSERT_EQUAL(ram16(0x70ffe), 0); /* nothing was written */
	set_pte(0x70000, 0);
	CU_ASSERT_EQUAL(vcpu_read(V, 0x70ffe, &value, 4, false, &error), -EFAULT);
	CU_ASSERT_EQUAL(V->cr2, 0x70ffe);
	CU_ASSERT_EQUAL(error, 0);
	CU_ASSERT_EQUAL(value, 0x44332211);
}

static void copies_wrap_around(void)
{
	uint32_t error, value;

	fake_reset();
	set32(PAGE_DIR + 1023 * 4, PAGE_TABLE | P | W);
	set_pte(0x3ff000, 0x70000 | P);
	set32(0x70ffc, 0x22110000);
	set32(0, 0x4433);
	CU_ASSERT_EQUAL(vcpu_read(V, 0xfffffffe, &value, 4, false, &error), 0);
	CU_ASSERT_EQUAL(value, 0x44332211);
}

static void copies_to_devices(void)
{
	uint32_t error, value = 0x12345678;

	fake_reset();
	set_pte(GVA, DEVICE | P | W);
	CU_ASSERT_EQUAL(vcpu_write(V, GVA & ~0xfff, &value, 4, false, &error), 0);
	CU_ASSERT_EQUAL(fake.mmio_writes, 1);
	CU_ASSERT_EQUAL(fake.mmio_gpa, DEVICE);
	CU_ASSERT_EQUAL(fake.mmio_value, 0x12345678);
	value = 0;
	CU_ASSERT_EQUAL(vcpu_read(V, GVA & ~0xfff, &value, 2, false, &error), 0);
	CU_ASSERT_EQUAL(value, 0x5678);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(paging_off),
		UNIT_TEST(small_matrix),
		UNIT_TEST(large_matrix),
		UNIT_TEST(large_only_with_pse),
		UNIT_TEST(reserved_bits),
		UNIT_TEST(global_pages),
		UNIT_TEST(writable_needs_dirty),
		UNIT_TEST(settled_walks_do_not_write),
		UNIT_TEST(races),
		UNIT_TEST(tables_outside_ram),
		UNIT_TEST(peek),
		UNIT_TEST(peek_at_no_table),
		UNIT_TEST(copies),
		UNIT_TEST(copies_across_unlike_pages),
		UNIT_TEST(copy_faults),
		UNIT_TEST(copies_wrap_around),
		UNIT_TEST(copies_to_devices),
		UNIT_END
	};
	return UNIT_RUN("vcpu paging", tests);
}
