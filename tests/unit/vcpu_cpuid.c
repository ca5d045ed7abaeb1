/* vcpu_cpuid.c - what the guest sees of the processor (vcpu/cpuid.c), bit by bit: on a host that
 * has everything, on one that has nothing, and on one like a real one for the XSAVE areas.
 */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)
#define BIT(n) (1u << (n))

static uint32_t out[4];

static void ask(uint32_t leaf, uint32_t subleaf) { vcpu_cpuid(V, leaf, subleaf, out); }

static void everything(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	(void)subleaf;
	regs[0] = leaf == 0 ? 0x1f : leaf == 0x80000000 ? 0x80000021 : 0xffffffff;
	regs[1] = regs[2] = regs[3] = 0xffffffff;
}

static void nothing(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	(void)subleaf;
	regs[0] = leaf == 0 ? 0xd : leaf == 0x80000000 ? 0x80000008 : 0;
	regs[1] = regs[2] = regs[3] = 0;
}

static void fresh(void (*host)(uint32_t, uint32_t, uint32_t *))
{
	fake_reset();
	fake.host_cpuid = host;
}

static void range(void)
{
	fresh(everything);
	ask(0, 0);
	CU_ASSERT_EQUAL(out[0], 0xd);
	CU_ASSERT_EQUAL(out[1] & out[2] & out[3], 0xffffffff); /* the vendor is the host's */
	ask(0x80000000, 0);
	CU_ASSERT_EQUAL(out[0], 0x80000008);
	for (uint32_t leaf = 0; leaf < 0x30; leaf++) {
		bool shown = leaf <= 2 || leaf == 4 || leaf == 7 || leaf == 0xd;

		ask(leaf, 0);
		CU_ASSERT_EQUAL(!!(out[0] | out[1] | out[2] | out[3]), shown);
	}
	for (uint32_t leaf = 0x80000000; leaf < 0x80000030; leaf++) {
		ask(leaf, 0);
		CU_ASSERT_EQUAL(!!(out[0] | out[1] | out[2] | out[3]),
				leaf <= 0x80000008 && leaf != 0x80000007);
	}
	ask(0x40000000, 0); /* no hypervisor */
	CU_ASSERT_EQUAL(out[0] | out[1] | out[2] | out[3], 0);
}

static void older_host(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	everything(leaf, subleaf, regs);
	if (leaf == 0)
		regs[0] = 5;
	if (leaf == 0x80000000)
		regs[0] = 0; /* no extended leaves at all */
}

static void shorter_range(void)
{
	fresh(older_host);
	ask(0, 0);
	CU_ASSERT_EQUAL(out[0], 5);
	ask(7, 0);
	CU_ASSERT_EQUAL(out[1], 0);
	ask(0x80000001, 0);
	CU_ASSERT_EQUAL(out[3], 0);
}

static void features_shown(void)
{
	fresh(everything);
	ask(1, 0);
	CU_ASSERT_EQUAL(out[1], 0x0101ffff); /* APIC id 1, one logical processor */
	CU_ASSERT_EQUAL(out[2], BIT(0) | BIT(1) | BIT(9) | BIT(12) | BIT(19) | BIT(20) | BIT(22) |
					BIT(23) | BIT(25) | BIT(26) | BIT(28) | BIT(29) | BIT(30));
	CU_ASSERT_EQUAL(out[3], BIT(0) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(8) | BIT(9) |
					BIT(13) | BIT(15) | BIT(19) | BIT(23) | BIT(24) | BIT(25) |
					BIT(26));
	ask(7, 0);
	CU_ASSERT_EQUAL(out[0], 0);
	CU_ASSERT_EQUAL(out[1] & (BIT(0) | BIT(1) | BIT(2) | BIT(4) | BIT(7) | BIT(10) | BIT(11) |
				  BIT(12) | BIT(14) | BIT(15) | BIT(20) | BIT(22) | BIT(25)),
			0);
	CU_ASSERT_EQUAL(out[2] & (BIT(0) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(7) | BIT(13) |
				  BIT(16) | BIT(22) | BIT(24) | BIT(25) | BIT(27) | BIT(28) |
				  BIT(29) | BIT(30) | BIT(31)),
			0);
	CU_ASSERT_EQUAL(out[3] & (BIT(10) | BIT(18) | BIT(20) | BIT(22) | BIT(24) | BIT(25) |
				  0xfc000000),
			0);
	CU_ASSERT_TRUE((out[1] & (BIT(3) | BIT(5) | BIT(16))) == (BIT(3) | BIT(5) | BIT(16)));
	ask(7, 1);
	CU_ASSERT_EQUAL(out[0] | out[1] | out[2] | out[3], 0);
	ask(0x80000001, 0);
	CU_ASSERT_EQUAL(out[2] & BIT(2), 0);					  /* SVM */
	/* SYSCALL NX 1G RDTSCP LM */
	CU_ASSERT_EQUAL(out[3] & (BIT(11) | BIT(20) | BIT(26) | BIT(27) | BIT(29)), 0);
	ask(0x80000008, 0);
	CU_ASSERT_EQUAL(out[0], 0x2020);
	CU_ASSERT_EQUAL(out[1] | out[2] | out[3], 0);
}

static void os_xsave_follows_cr4(void)
{
	fresh(everything);
	V->cr4 |= CR4_OSXSAVE;
	ask(1, 0);
	CU_ASSERT_TRUE(out[2] & BIT(27));
	fresh(nothing);
	V->cr4 |= CR4_OSXSAVE;
	ask(1, 0);
	CU_ASSERT_FALSE(out[2] & BIT(27));
}

/* Some bits are set by us, whatever the host has. */
static void features_forced(void)
{
	fresh(nothing);
	ask(1, 0);
	CU_ASSERT_EQUAL(out[2], 0);
	CU_ASSERT_EQUAL(out[3],
			BIT(0) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(8) | BIT(9) | BIT(13));
	ask(7, 0);
	CU_ASSERT_EQUAL(out[0] | out[1] | out[2] | out[3], 0);
}

static void topology(void)
{
	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++) {
		fresh(everything);
		V->number = cpu;
		ask(1, 0);
		CU_ASSERT_EQUAL(out[1] >> 24, cpu);
		CU_ASSERT_EQUAL(out[1] >> 16 & 0xff, 1);
	}
	ask(4, 1);
	CU_ASSERT_EQUAL(out[0] >> 10, 0); /* shared by one, one core */
	ask(0xb, 0);
	CU_ASSERT_EQUAL(out[0] | out[1] | out[2] | out[3], 0);
}

/* A host with AVX, AVX-512, PKRU and AMX. */
static void xsave_host(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	static const struct { uint32_t size, offset, flags;
	} parts[20] = {
		[2] = { 256, 576, 0 }, [3] = { 64, 960, 0 },   [4] = { 64, 1024, 0 },
		[5] = { 64, 1088, 0 }, [6] = { 512, 1152, 2 }, [7] = { 1024, 1664, 2 },
		[9] = { 8, 2688, 0 },  [17] = { 64, 2752, 2 }, [18] = { 8192, 2816, 6 },
	};

	nothing(leaf, subleaf, regs);
	if (leaf != 0xd)
		return;
	if (subleaf == 0) {
		regs[0] = 0x602e7;
		regs[1] = regs[2] = 11008;
	} else if (subleaf == 1) {
		regs[0] = 0x1f;
		regs[1] = 11008;
		regs[2] = 0x1900;
	} else if (subleaf < ARRAY_LEN(parts)) {
		regs[0] = parts[subleaf].size;
		regs[1] = parts[subleaf].offset;
		regs[2] = parts[subleaf].flags;
	}
}

static void xsave_areas(void)
{
	static const struct { uint64_t xcr0; uint32_t standard, compacted;
	} cases[] = {
		{ 1, 576, 576 },
		{ 3, 576, 576 },
		{ 7, 832, 832 },
		{ 0xe7, 2688, 832 + 64 + 512 + 1024 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fresh(xsave_host);
		fake.xcr0 = 0x602e7;
		V->xcr0 = cases[n].xcr0;
		ask(0xd, 0);
		CU_ASSERT_EQUAL(out[0], 0xe7); /* no PKRU, no AMX */
		CU_ASSERT_EQUAL(out[1], cases[n].standard);
		CU_ASSERT_EQUAL(out[2], 2688);
		CU_ASSERT_EQUAL(out[3], 0);
		ask(0xd, 1);
		CU_ASSERT_EQUAL(out[0], 7); /* XSAVEOPT, XSAVEC, XGETBV; no XSAVES, no XFD */
		CU_ASSERT_EQUAL(out[1], cases[n].compacted);
		CU_ASSERT_EQUAL(out[2] | out[3], 0);
	}
	for (uint32_t part = 2; part < 70; part++) {
		bool shown = part == 2 || (part >= 5 && part <= 7);

		ask(0xd, part);
		CU_ASSERT_EQUAL(!!out[0], shown);
		CU_ASSERT_EQUAL(!!(out[0] | out[1] | out[2] | out[3]), shown);
	}
}

static void xsave_alignment(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	xsave_host(leaf, subleaf, regs);
	if (leaf == 0xd && subleaf == 5)
		regs[0] = 40; /* so that part 6 must be moved up */
}

static void xsave_compaction(void)
{
	fresh(xsave_alignment);
	fake.xcr0 = 0xe7;
	V->xcr0 = 0xe7;
	ask(0xd, 1);
	CU_ASSERT_EQUAL(out[1], 896 + 512 + 1024); /* 832 + 40, rounded up to 896 */
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(range),	       UNIT_TEST(shorter_range),
		UNIT_TEST(features_shown),  UNIT_TEST(os_xsave_follows_cr4),
		UNIT_TEST(features_forced), UNIT_TEST(topology),
		UNIT_TEST(xsave_areas),     UNIT_TEST(xsave_compaction),
		UNIT_END
	};
	return UNIT_RUN("vcpu CPUID", tests);
}
