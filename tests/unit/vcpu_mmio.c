/* vcpu_mmio.c - instructions on device memory (vcpu/mmio.c): encodings, sizes, flags, the APIC's
 * page. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)
enum {
	GVA = 0x70000,
	CF = EFLAGS_CF,
	ZF = EFLAGS_ZF,
	SF = EFLAGS_SF,
	OF = EFLAGS_OF,
	PF = EFLAGS_PF,
	AF = EFLAGS_AF
};
static const uint32_t arithmetic = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF |
				   EFLAGS_OF;

static enum vcpu_result run_mmio(gpa_t gpa, const uint8_t *code, unsigned bytes)
{
	memcpy(fake.ram + CODE, code, bytes);
	V->eip = CODE;
	return vcpu_emulate_mmio(V, GVA | (gpa & PAGE_MASK), gpa);
}
#define MMIO(gpa, ...) \
	run_mmio(gpa, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

struct access {
	uint8_t code[10];
	unsigned bytes, size, reads, writes;
	uint32_t written, ecx;
};

/* ECX is 0x11223344, the device reads 0x99aabbcc, EBX points at it. */
static void encodings(void)
{
	static const struct access cases[] = {
		{ { 0x89, 0x0b }, 2, 4, 0, 1, 0x11223344, 0x11223344 },
		{ { 0x66, 0x89, 0x0b }, 3, 2, 0, 1, 0x3344, 0x11223344 },
		{ { 0x88, 0x0b }, 2, 1, 0, 1, 0x44, 0x11223344 },
		{ { 0x88, 0x2b }, 2, 1, 0, 1, 0x33, 0x11223344 }, /* %ch */
		{ { 0x8b, 0x0b }, 2, 4, 1, 0, 0, 0x99aabbcc },
		{ { 0x66, 0x8b, 0x0b }, 3, 2, 1, 0, 0, 0x1122bbcc },
		{ { 0x8a, 0x0b }, 2, 1, 1, 0, 0, 0x112233cc },
		{ { 0x8a, 0x2b }, 2, 1, 1, 0, 0, 0x1122cc44 },
		{ { 0xc7, 0x03, 0x78, 0x56, 0x34, 0x12 }, 6, 4, 0, 1, 0x12345678, 0x11223344 },
		{ { 0x66, 0xc7, 0x03, 0x78, 0x56 }, 5, 2, 0, 1, 0x5678, 0x11223344 },
		{ { 0xc6, 0x03, 0x78 }, 3, 1, 0, 1, 0x78, 0x11223344 },
		{ { 0x0f, 0xb6, 0x0b }, 3, 1, 1, 0, 0, 0xcc },
		{ { 0x0f, 0xb7, 0x0b }, 3, 2, 1, 0, 0, 0xbbcc },
		{ { 0x66, 0x0f, 0xb6, 0x0b }, 4, 1, 1, 0, 0, 0x112200cc },
		{ { 0x0f, 0xbe, 0x0b }, 3, 1, 1, 0, 0, 0xffffffcc },
		{ { 0x0f, 0xbf, 0x0b }, 3, 2, 1, 0, 0, 0xffffbbcc },
		{ { 0x66, 0x0f, 0xbe, 0x0b }, 4, 1, 1, 0, 0, 0x1122ffcc },
		{ { 0x87, 0x0b }, 2, 4, 1, 1, 0x11223344, 0x99aabbcc },
		{ { 0x86, 0x0b }, 2, 1, 1, 1, 0x44, 0x112233cc },
		{ { 0xf0, 0x09, 0x0b }, 3, 4, 1, 1, 0x99aabbcc | 0x11223344, 0x11223344 },
		{ { 0x21, 0x0b }, 2, 4, 1, 1, 0x99aabbcc & 0x11223344, 0x11223344 },
		{ { 0x31, 0x0b }, 2, 4, 1, 1, 0x99aabbcc ^ 0x11223344, 0x11223344 },
		{ { 0x01, 0x0b }, 2, 4, 1, 1, 0xaaccef10, 0x11223344 },
		{ { 0x29, 0x0b }, 2, 4, 1, 1, 0x88888888, 0x11223344 },
		{ { 0x39, 0x0b }, 2, 4, 1, 0, 0, 0x11223344 },
		{ { 0x3b, 0x0b }, 2, 4, 1, 0, 0, 0x11223344 },
		{ { 0x23, 0x0b }, 2, 4, 1, 0, 0, 0x99aabbcc & 0x11223344 },
		{ { 0x0b, 0x0b }, 2, 4, 1, 0, 0, 0x99aabbcc | 0x11223344 },
		{ { 0x80, 0x0b, 0x0f }, 3, 1, 1, 1, 0xcf, 0x11223344 },
		{ { 0x81, 0x23, 0xff, 0, 0, 0 }, 6, 4, 1, 1, 0xcc, 0x11223344 },
		{ { 0x83, 0x23, 0xf0 }, 3, 4, 1, 1, 0x99aabbc0, 0x11223344 },
		{ { 0x66, 0x83, 0x0b, 0x80 }, 4, 2, 1, 1, 0xffcc, 0x11223344 },
		{ { 0x83, 0x3b, 0 }, 3, 4, 1, 0, 0, 0x11223344 },
		{ { 0x85, 0x0b }, 2, 4, 1, 0, 0, 0x11223344 },
		{ { 0x84, 0x0b }, 2, 1, 1, 0, 0, 0x11223344 },
		{ { 0xf7, 0x03, 1, 0, 0, 0 }, 6, 4, 1, 0, 0, 0x11223344 },
		{ { 0x66, 0xf7, 0x03, 1, 0 }, 5, 2, 1, 0, 0, 0x11223344 },
		{ { 0xf6, 0x03, 1 }, 3, 1, 1, 0, 0, 0x11223344 },
		{ { 0xf7, 0x13 }, 2, 4, 1, 1, 0x66554433, 0x11223344 },
		{ { 0xf7, 0x1b }, 2, 4, 1, 1, 0x66554434, 0x11223344 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		V->gpr[EBX] = GVA;
		V->gpr[ECX] = 0x11223344;
		fake.mmio_value = 0x99aabbcc;
		CU_ASSERT_EQUAL(run_mmio(DEVICE, cases[n].code, cases[n].bytes), VCPU_DONE);
		CU_ASSERT_EQUAL(V->eip, CODE + cases[n].bytes);
		CU_ASSERT_EQUAL(fake.mmio_reads, cases[n].reads);
		CU_ASSERT_EQUAL(fake.mmio_writes, cases[n].writes);
		CU_ASSERT_EQUAL(fake.size, cases[n].size);
		CU_ASSERT_EQUAL(fake.mmio_gpa, DEVICE);
		if (cases[n].writes)
			CU_ASSERT_EQUAL(fake.mmio_value, cases[n].written);
		CU_ASSERT_EQUAL(V->gpr[ECX], cases[n].ecx);
	}
}

static void moffs(void)
{
	fake_reset();
	fake.mmio_value = 0x99aabbcc;
	CU_ASSERT_EQUAL(MMIO(DEVICE, 0xa1, 0, 0, 7, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[EAX], 0x99aabbcc);
	CU_ASSERT_EQUAL(V->eip, CODE + 5);
	V->gpr[EAX] = 0x01020304;
	MMIO(DEVICE, 0xa3, 0, 0, 7, 0);
	CU_ASSERT_EQUAL(fake.mmio_value, 0x01020304);
	MMIO(DEVICE, 0xa2, 0, 0, 7, 0);
	CU_ASSERT_EQUAL(fake.mmio_value, 4);
	fake.mmio_value = 0xff;
	MMIO(DEVICE, 0xa0, 0, 0, 7, 0);
	CU_ASSERT_EQUAL(V->gpr[EAX], 0x010203ff);
}

/* Flags against the host's own processor (below the red zone). */
static uint32_t native(unsigned op, uint32_t a, uint32_t b, uint32_t flags, uint32_t *result)
{
	uint64_t out;

#define NATIVE(name) \
	__asm__("leaq -128(%%rsp), %%rsp; "                                  \
		"pushfq; andq $~0xcd5, (%%rsp); orq %3, (%%rsp); popfq; "    \
		name " %4, %0; pushfq; popq %1; leaq 128(%%rsp), %%rsp"      \
		: "=&r"(a), "=&r"(out) : "0"(a), "r"((uint64_t)flags), "r"(b) : "cc", "memory")
	switch (op) {
	case 0: NATIVE("addl"); break;
	case 1: NATIVE("orl"); break;
	case 2: NATIVE("adcl"); break;
	case 3: NATIVE("sbbl"); break;
	case 4: NATIVE("andl"); break;
	case 5: NATIVE("subl"); break;
	case 6: NATIVE("xorl"); break;
	default: NATIVE("cmpl"); break;
	}
	*result = a;
	return (uint32_t)out & arithmetic;
}

static void flags_as_the_host(void)
{
	static const uint32_t values[] = { 0,	       1,	   0xf,	       0x10,
					   0x7f,       0x80,	   0xff,       0x7fffffff,
					   0x80000000, 0x80000001, 0xfffffff0, 0xffffffff };

	for (unsigned n = 0; n < 8 * 12 * 12 * 2; n++) {
		unsigned op = n & 7;
		uint32_t a = values[n / 8 % 12], b = values[n / 96 % 12], carry = n / 1152, result;
		/* undefined for logic */
		uint32_t ignored = op == 1 || op == 4 || op == 6 ? EFLAGS_AF : 0;
		uint32_t expect = native(op, a, b, carry, &result);

		fake_reset();
		V->gpr[EBX] = GVA;
		V->gpr[ECX] = b;
		V->eflags = EFLAGS_FIXED | EFLAGS_IF | carry;
		fake.mmio_value = a;
		CU_ASSERT_EQUAL(MMIO(DEVICE, (uint8_t)(op * 8 + 1), 0x0b), VCPU_DONE);
		CU_ASSERT_EQUAL(V->eflags & arithmetic & ~ignored, expect & ~ignored);
		CU_ASSERT_TRUE(V->eflags & EFLAGS_IF);
		CU_ASSERT_EQUAL(fake.mmio_value, result);
	}
}

static void byte_flags(void)
{
	fake_reset();
	V->gpr[EBX] = GVA;
	fake.mmio_value = 0x80;
	MMIO(DEVICE, 0x80, 0x3b, 0x01); /* cmpb $1 */
	CU_ASSERT_EQUAL(V->eflags & arithmetic, EFLAGS_OF | EFLAGS_AF);
	fake.mmio_value = 0xff;
	MMIO(DEVICE, 0x80, 0x03, 0x01); /* addb $1 */
	CU_ASSERT_EQUAL(V->eflags & arithmetic, EFLAGS_ZF | EFLAGS_CF | EFLAGS_AF | EFLAGS_PF);
	CU_ASSERT_EQUAL(fake.mmio_value, 0);
}

static void apic_page(void)
{
	fake_reset();
	V->gpr[EBX] = GVA;
	CU_ASSERT_EQUAL(MMIO(VMP_LAPIC_GPA + 0x30, 0x8b, 0x0b), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[ECX], 0x50014);
	MMIO(VMP_LAPIC_GPA + 0x32, 0x0f, 0xb6, 0x0b); /* a byte of it */
	CU_ASSERT_EQUAL(V->gpr[ECX], 5);
	V->gpr[ECX] = 0x1ff;
	MMIO(VMP_LAPIC_GPA + 0xf0, 0x89, 0x0b);
	CU_ASSERT_EQUAL(V->apic.spiv, 0x1ff);
	V->gpr[ECX] = 0x10;
	/* xchg: the kernel's APIC write on old processors */
	MMIO(VMP_LAPIC_GPA + 0x80, 0x87, 0x0b);
	CU_ASSERT_EQUAL(V->apic.tpr, 0x10);
	CU_ASSERT_EQUAL(V->gpr[ECX], 0);
	MMIO(VMP_LAPIC_GPA + 0x80, 0x88, 0x0b); /* a byte write is ignored */
	CU_ASSERT_EQUAL(V->apic.tpr, 0x10);
	MMIO(VMP_LAPIC_GPA + 0x84, 0x89, 0x0b); /* so is an unaligned one */
	CU_ASSERT_EQUAL(V->apic.tpr, 0x10);
	CU_ASSERT_EQUAL(fake.mmio_reads + fake.mmio_writes, 0);
	V->apic.isr[1] = 1;
	MMIO(VMP_LAPIC_GPA + 0xb0, 0xc7, 0x03, 0, 0, 0, 0); /* movl $0, EOI */
	CU_ASSERT_EQUAL(V->apic.isr[1], 0);
}

static void unknown_kills(void)
{
	static const uint8_t codes[][4] = {
		{ 0xff, 0x03 }, { 0xf3, 0xa5 }, { 0x0f, 0xb1, 0x0b }, { 0xf7, 0x23 },
		{ 0xd9, 0x03 }, { 0x89, 0xc0 }, { 0x0f, 0x10, 0x03 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(codes); n++) {
		fake_reset();
		V->gpr[EBX] = GVA;
		CU_ASSERT_EQUAL(run_mmio(DEVICE, codes[n], 4), VCPU_DONE);
		CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
		CU_ASSERT_PTR_NOT_NULL(strstr(V->dead_reason, "device memory"));
		CU_ASSERT_EQUAL(V->eip, CODE);
		CU_ASSERT_EQUAL(vcpu_emulate_mmio(V, GVA, DEVICE), VCPU_DONE);
	}
}

static void fetch_faults(void)
{
	fake_reset();
	V->gpr[EBX] = GVA;
	set_pte(CODE + PAGE_BYTES, 0);
	memcpy(fake.ram + CODE + PAGE_BYTES - 3, "\xc7\x03\x01", 3);
	V->eip = CODE + PAGE_BYTES - 3;
	CU_ASSERT_EQUAL(vcpu_emulate_mmio(V, GVA, DEVICE), VCPU_RAISED);
	CU_ASSERT_TRUE(faulted(VECTOR_PF, 0, CODE + PAGE_BYTES - 3));
	CU_ASSERT_EQUAL(fake.mmio_writes, 0);
	fake_reset();
	set_pte(CODE + PAGE_BYTES, 0);
	/* group 3 fetches its immediate late */
	memcpy(fake.ram + CODE + PAGE_BYTES - 3, "\xf7\x03\x01", 3);
	V->gpr[EBX] = GVA;
	V->eip = CODE + PAGE_BYTES - 3;
	CU_ASSERT_EQUAL(vcpu_emulate_mmio(V, GVA, DEVICE), VCPU_RAISED);
	CU_ASSERT_EQUAL(fake.mmio_reads, 0);
	CU_ASSERT_EQUAL(V->dead, VCPU_ALIVE);
}

static void shadow_ends(void)
{
	fake_reset();
	V->gpr[EBX] = GVA;
	V->interrupt_shadow = true;
	MMIO(DEVICE, 0x89, 0x0b);
	CU_ASSERT_FALSE(V->interrupt_shadow);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(encodings),
		UNIT_TEST(moffs),
		UNIT_TEST(flags_as_the_host),
		UNIT_TEST(byte_flags),
		UNIT_TEST(apic_page),
		UNIT_TEST(unknown_kills),
		UNIT_TEST(fetch_faults),
		UNIT_TEST(shadow_ends),
		UNIT_END
	};
	return UNIT_RUN("vcpu device memory", tests);
}
