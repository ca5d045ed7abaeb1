/* vcpu_system.c - instructions on the system's registers and tables (vcpu/system.c, msr.c,
 * emulate.c): success, privilege, faults.
 */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)

static void control_registers(void)
{
	fake_reset();
	V->gpr[EAX] = 0xabcde000;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xd0), VCPU_DONE); /* mov %eax, %cr2 */
	CU_ASSERT_EQUAL(V->cr2, 0xabcde000);
	CU_ASSERT_EQUAL(V->eip, CODE + 3);
	CU_ASSERT_EQUAL(RUN(0x0f, 0x20, 0xd3), VCPU_DONE); /* mov %cr2, %ebx */
	CU_ASSERT_EQUAL(V->gpr[EBX], 0xabcde000);
	V->gpr[EAX] = PAGE_DIR | 0x1f;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xd8), VCPU_DONE); /* cr3 */
	CU_ASSERT_EQUAL(V->cr3, PAGE_DIR | 7); /* the number of the address space */
	CU_ASSERT_EQUAL(fake.switch_space, 1);
	CU_ASSERT_FALSE(fake.kept_space);
	RUN(0x0f, 0x20, 0xd9);
	CU_ASSERT_EQUAL(V->gpr[ECX], V->cr3);
	V->gpr[EAX] = PAGE_DIR | 3 | VMP_CR3_KEEP;
	RUN(0x0f, 0x22, 0xd8);
	CU_ASSERT_EQUAL(V->cr3, PAGE_DIR | 3); /* a request, not a state */
	CU_ASSERT_TRUE(fake.kept_space);
	V->gpr[EAX] = CR4_PSE | CR4_OSFXSR | CR4_OSXSAVE;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xe0), VCPU_DONE); /* cr4 */
	CU_ASSERT_EQUAL(V->cr4, CR4_PSE | CR4_OSFXSR | CR4_OSXSAVE);
	CU_ASSERT_EQUAL(fake.flush_all, 1); /* PGE went */
	RUN(0x0f, 0x20, 0xe6);
	CU_ASSERT_EQUAL(V->gpr[ESI], V->cr4);
	RUN(0x0f, 0x20, 0xc7);
	CU_ASSERT_EQUAL(V->gpr[EDI], V->cr0);
}

static void control_register_cr0(void)
{
	fake_reset();
	V->gpr[EAX] = V->cr0 | CR0_TS | 0x10000000; /* a reserved bit is ignored */
	CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xc0), VCPU_DONE);
	CU_ASSERT_EQUAL(V->cr0, CR0_PG | CR0_WP | CR0_PE | CR0_ET | CR0_TS);
	CU_ASSERT_EQUAL(fake.flush_all, 0);
	CU_ASSERT_EQUAL(RUN(0x0f, 0x06), VCPU_DONE); /* clts */
	CU_ASSERT_FALSE(V->cr0 & CR0_TS);
	V->gpr[EAX] = V->cr0 & ~CR0_WP;
	RUN(0x0f, 0x22, 0xc0);
	CU_ASSERT_EQUAL(fake.flush_all, 1);
	V->gpr[EAX] = V->cr0 & ~CR0_PG;
	RUN(0x0f, 0x22, 0xc0);
	CU_ASSERT_EQUAL(fake.flush_all, 2);
	CU_ASSERT_FALSE(V->cr0 & CR0_PG);
	V->gpr[EAX] = CR0_PG;
	CHECK_FAULT(RUN(0x0f, 0x22, 0xc0), VECTOR_GP, 0); /* paging without protection */
	V->gpr[EAX] = CR0_PE | 1 << 29;
	CHECK_FAULT(RUN(0x0f, 0x22, 0xc0), VECTOR_GP, 0); /* NW without CD */
	V->gpr[EAX] = 0;
	RUN(0x0f, 0x22, 0xc0);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED); /* real mode */
	CU_ASSERT_PTR_NOT_NULL(strstr(V->dead_reason, "real mode"));
}

static void control_registers_undefined(void)
{
	static const uint8_t numbers[] = { 1, 5, 6, 7 };

	for (unsigned n = 0; n < ARRAY_LEN(numbers); n++) {
		fake_reset();
		CHECK_FAULT(RUN(0x0f, 0x20, (uint8_t)(0xc0 | numbers[n] << 3)), VECTOR_UD, -1);
		fake_reset();
		CHECK_FAULT(RUN(0x0f, 0x22, (uint8_t)(0xc0 | numbers[n] << 3)), VECTOR_UD, -1);
	}
	for (unsigned bit = 0; bit < 32; bit++) {
		bool known = (CR4_TSD | CR4_DE | CR4_PSE | CR4_PGE | CR4_OSFXSR | CR4_OSXMMEXCPT |
			      CR4_OSXSAVE) >>
				     bit &
			     1;

		fake_reset();
		V->gpr[EAX] = 1u << bit;
		CU_ASSERT_EQUAL(RUN(0x0f, 0x22, 0xe0), known ? VCPU_DONE : VCPU_RAISED);
		CU_ASSERT_EQUAL(in_handler(VECTOR_GP), !known);
	}
}

static void machine_status_word(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0x01, 0xe0), VCPU_DONE); /* smsw %eax */
	CU_ASSERT_EQUAL(V->gpr[EAX], V->cr0);
	CU_ASSERT_EQUAL(V->eip, CODE + 5);
	V->gpr[EBX] = 0xffffffff;
	RUN(MARKER, 0x66, 0x0f, 0x01, 0xe3); /* smsw %bx */
	CU_ASSERT_EQUAL(V->gpr[EBX], 0xffff0000 | (V->cr0 & 0xffff));
	set32(DATA, 0xffffffff);
	RUN(MARKER, 0x0f, 0x01, 0x25, 0x00, 0x00, 0x04, 0x00); /* smsw DATA */
	CU_ASSERT_EQUAL(ram32(DATA), 0xffff0000 | (V->cr0 & 0xffff));
	V->gpr[EAX] = CR0_TS | CR0_MP;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0xf0), VCPU_DONE); /* lmsw %ax: cannot clear PE */
	CU_ASSERT_EQUAL(V->cr0 & 0xf, CR0_PE | CR0_TS | CR0_MP);
	set32(DATA, CR0_EM);
	RUN(0x0f, 0x01, 0x35, 0x00, 0x00, 0x04, 0x00); /* lmsw DATA */
	CU_ASSERT_EQUAL(V->cr0 & 0xf, CR0_PE | CR0_EM);
}

static void debug_registers(void)
{
	for (unsigned n = 0; n < 8; n++) {
		uint32_t expect[8] = { 0x123,	   0x123, 0x123,      0x123,
				       0xffff0ff3, 0x523, 0xffff0ff3, 0x523 };

		fake_reset();
		V->gpr[EAX] = 0x123;
		CU_ASSERT_EQUAL(RUN(0x0f, 0x23, (uint8_t)(0xc0 | n << 3)), VCPU_DONE);
		CU_ASSERT_EQUAL(V->dr[n == 4 || n == 5 ? n + 2 : n], expect[n]);
		CU_ASSERT_EQUAL(RUN(0x0f, 0x21, (uint8_t)(0xc3 | n << 3)), VCPU_DONE);
		CU_ASSERT_EQUAL(V->gpr[EBX], expect[n]);
		V->cr4 |= CR4_DE;
		CU_ASSERT_EQUAL(RUN(0x0f, 0x21, (uint8_t)(0xc3 | n << 3)),
				n == 4 || n == 5 ? VCPU_RAISED : VCPU_DONE);
		CU_ASSERT_EQUAL(in_handler(VECTOR_UD), n == 4 || n == 5);
	}
}

static void descriptor_tables(void)
{
	fake_reset();
	set32(DATA, 0x00ff | 0x5678 << 16);
	set32(DATA + 4, 0x1234);
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0x1d, 0x00, 0x00, 0x04, 0x00), VCPU_DONE); /* lidt DATA */
	CU_ASSERT_EQUAL(V->idtr.limit, 0xff);
	CU_ASSERT_EQUAL(V->idtr.base, 0x12345678);
	/* sidt DATA + 16 */
	CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0x01, 0x0d, 0x10, 0x00, 0x04, 0x00), VCPU_DONE);
	CU_ASSERT_EQUAL(memcmp(fake.ram + DATA, fake.ram + DATA + 16, 6), 0);
	RUN(0x66, 0x0f, 0x01, 0x1d, 0x00, 0x00, 0x04, 0x00);
	CU_ASSERT_EQUAL(V->idtr.base, 0x345678); /* 16-bit operand: 24 bits of base */
	set32(DATA, (VMP_GDT_ENTRIES * 8 - 1) | (GDT & 0xffff) << 16);
	set32(DATA + 4, GDT >> 16);
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0x15, 0x00, 0x00, 0x04, 0x00), VCPU_DONE); /* lgdt DATA */
	CU_ASSERT_EQUAL(fake.segments_changed, VMP_GDT_ENTRIES);
	CU_ASSERT_EQUAL(fake.segment[VMP_GDT_PERCPU].base, BASED_AT);
	CU_ASSERT_EQUAL(fake.segment[VMP_GDT_USER_CS].limit, VMP_USER_LIMIT - 1);
	CU_ASSERT_TRUE(fake.segment[VMP_GDT_USER_CS].big && fake.segment[VMP_GDT_USER_CS].granular);
	CU_ASSERT_EQUAL(fake.segment[VMP_GDT_USER_CS].dpl, 3);
	CU_ASSERT_FALSE(fake.segment[GDT_ABSENT].present);
	CU_ASSERT_TRUE(fake.segment[VMP_GDT_TSS].system);
	RUN(MARKER, 0x0f, 0x01, 0x05, 0x10, 0x00, 0x04, 0x00); /* sgdt DATA + 16 */
	CU_ASSERT_EQUAL(memcmp(fake.ram + DATA, fake.ram + DATA + 16, 6), 0);
	set32(DATA, 0x1f | (GDT & 0xffff) << 16);
	fake.segments_changed = 0;
	RUN(0x0f, 0x01, 0x15, 0x00, 0x00, 0x04, 0x00); /* a shorter table: the rest is gone */
	CU_ASSERT_EQUAL(fake.segments_changed, VMP_GDT_ENTRIES);
	CU_ASSERT_TRUE(fake.segment[VMP_GDT_BOOT_DS].present);
	CU_ASSERT_FALSE(fake.segment[VMP_GDT_USER_CS].present);
}

static void descriptor_tables_fault(void)
{
	fake_reset();
	set_pte(DATA, 0);
	CHECK_FAULT(RUN(0x0f, 0x01, 0x15, 0x00, 0x00, 0x04, 0x00), VECTOR_PF, 0);
	CU_ASSERT_EQUAL(V->cr2, DATA);
	CU_ASSERT_EQUAL(V->gdtr.base, GDT);
	fake_reset();
	set_pte(DATA + PAGE_BYTES, 0);
	CHECK_FAULT(RUN(0x0f, 0x01, 0x1d, 0xfe, 0x0f, 0x04, 0x00), VECTOR_PF, 0); /* across pages */
	CU_ASSERT_EQUAL(V->cr2, DATA + PAGE_BYTES);
	CU_ASSERT_EQUAL(V->idtr.base, IDT);
}

static void task_register(void)
{
	fake_reset();
	V->tr = 0;
	V->gpr[EAX] = SEL_TSS;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x00, 0xd8), VCPU_DONE); /* ltr %ax */
	CU_ASSERT_EQUAL(V->tr, SEL_TSS);
	CU_ASSERT_EQUAL(V->tss_base, TSS);
	CU_ASSERT_EQUAL(V->tss_limit, 0x67);
	CU_ASSERT_EQUAL(ram32(GDT + SEL_TSS + 4) >> 8 & 15, 11); /* busy */
	RUN(MARKER, 0x0f, 0x00, 0xc9); /* str %ecx */
	CU_ASSERT_EQUAL(V->gpr[ECX], SEL_TSS);
	CHECK_FAULT(RUN(0x0f, 0x00, 0xd8), VECTOR_GP, SEL_TSS); /* busy already */
	V->gpr[EAX] = 0;
	CHECK_FAULT(RUN(0x0f, 0x00, 0xd8), VECTOR_GP, 0);
	V->gpr[EAX] = VMP_GDT_ENTRIES * 8;
	CHECK_FAULT(RUN(0x0f, 0x00, 0xd8), VECTOR_GP, VMP_GDT_ENTRIES * 8);
	V->gpr[EAX] = VMP_GDT_USER_DS * 8;
	CHECK_FAULT(RUN(0x0f, 0x00, 0xd8), VECTOR_GP, VMP_GDT_USER_DS * 8);
	V->gpr[EAX] = GDT_ABSENT_TSS * 8;
	CHECK_FAULT(RUN(0x0f, 0x00, 0xd8), VECTOR_NP, GDT_ABSENT_TSS * 8);
}

static void local_table_register(void)
{
	fake_reset();
	V->gpr[EAX] = SEL_LDT;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x00, 0xd0), VCPU_DONE); /* lldt %ax */
	CU_ASSERT_EQUAL(V->ldtr, SEL_LDT);
	RUN(MARKER, 0x0f, 0x00, 0xc2); /* sldt %edx */
	CU_ASSERT_EQUAL(V->gpr[EDX], SEL_LDT);
	V->gpr[EAX] = 0;
	RUN(0x0f, 0x00, 0xd0);
	CU_ASSERT_EQUAL(V->ldtr, 0);
	V->gpr[EAX] = SEL_TSS;
	CHECK_FAULT(RUN(0x0f, 0x00, 0xd0), VECTOR_GP, SEL_TSS);
}

static void page_invalidation(void)
{
	fake_reset();
	V->gpr[EAX] = 0x12345;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0x38), VCPU_DONE); /* invlpg (%eax) */
	CU_ASSERT_EQUAL(fake.flushed, 0x12345);
	CU_ASSERT_EQUAL(RUN(0x64, 0x0f, 0x01, 0x38), VCPU_DONE); /* invlpg %fs:(%eax) */
	CU_ASSERT_EQUAL(fake.flushed, 0x12345 + BASED_AT);
	CU_ASSERT_EQUAL(fake.flush_page, 2);
	CHECK_FAULT(RUN(0x66, 0x0f, 0x38, 0x82, 0x00), VECTOR_UD, -1); /* invpcid is hidden */
	CU_ASSERT_EQUAL(RUN(0x0f, 0x38, 0x00, 0x00), VCPU_NOT_MINE); /* pshufb */
	CU_ASSERT_EQUAL(RUN(0x0f, 0x08), VCPU_DONE);
	CU_ASSERT_EQUAL(RUN(0x0f, 0x09), VCPU_DONE);
}

static enum vcpu_result msr(uint32_t number, bool write, uint64_t value)
{
	V->gpr[ECX] = number;
	V->gpr[EAX] = (uint32_t)value;
	V->gpr[EDX] = (uint32_t)(value >> 32);
	return RUN(0x0f, (uint8_t)(write ? 0x30 : 0x32));
}

static uint64_t edx_eax(void) { return (uint64_t)V->gpr[EDX] << 32 | V->gpr[EAX]; }

static void model_specific_registers(void)
{
	fake_reset();
	fake.tsc = 0x123456789abcdef0;
	CU_ASSERT_EQUAL(msr(0x10, false, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(edx_eax(), fake.tsc);
	CU_ASSERT_EQUAL(msr(0x10, true, 5), VCPU_DONE);
	CU_ASSERT_EQUAL(msr(0x1b, false, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(edx_eax(), VMP_LAPIC_GPA | 0x800); /* CPU 1 did not boot the machine */
	CU_ASSERT_EQUAL(msr(0x1b, true, VMP_LAPIC_GPA | 0x800), VCPU_DONE);
	CHECK_FAULT(msr(0x1b, true, VMP_LAPIC_GPA | 0xc00), VECTOR_GP, 0); /* x2APIC */
	CHECK_FAULT(msr(0x1b, true, VMP_LAPIC_GPA), VECTOR_GP, 0); /* off */
	CHECK_FAULT(msr(0x1b, true, 0xfed00800), VECTOR_GP, 0);
	CU_ASSERT_EQUAL(msr(0x1a0, true, 0x850089), VCPU_DONE);
	CU_ASSERT_EQUAL(msr(0x1a0, false, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(edx_eax(), 0x850089);
	CU_ASSERT_EQUAL(msr(0x277, true, 0x0706050401000000), VCPU_DONE);
	CU_ASSERT_EQUAL(msr(0x277, false, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(edx_eax(), 0x0706050401000000);
	CHECK_FAULT(msr(0x277, true, 2), VECTOR_GP, 0);
	CHECK_FAULT(msr(0x277, true, 8), VECTOR_GP, 0);
	CU_ASSERT_EQUAL(msr(0x8b, true, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(msr(0x8b, false, 1), VCPU_DONE);
	CU_ASSERT_EQUAL(edx_eax(), 0);
	CU_ASSERT_EQUAL(msr(0x17, false, 1), VCPU_DONE);
	CHECK_FAULT(msr(0x17, true, 0), VECTOR_GP, 0);
	CHECK_FAULT(msr(0xc0000080, false, 0), VECTOR_GP, 0); /* EFER: no long mode */
	CHECK_FAULT(msr(0x174, true, 0), VECTOR_GP, 0);	      /* SYSENTER_CS */
}

static void counters(void)
{
	fake_reset();
	fake.tsc = 0x1122334455667788;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x31), VCPU_DONE);
	CU_ASSERT_EQUAL(edx_eax(), fake.tsc);
	V->gpr[ECX] = 99;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0xf9), VCPU_DONE); /* rdtscp */
	CU_ASSERT_EQUAL(V->gpr[ECX], V->number);
	V->cr4 |= CR4_TSD;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x31), VCPU_DONE);
	CHECK_FAULT(RUN(0x0f, 0x33), VECTOR_GP, 0); /* rdpmc */
	fake_reset();
	fake_user();
	CU_ASSERT_EQUAL(RUN(0x0f, 0x31), VCPU_DONE);
	V->cr4 |= CR4_TSD;
	CHECK_FAULT(RUN(0x0f, 0x31), VECTOR_GP, 0);
	fake_reset();
	fake_user();
	V->cr4 |= CR4_TSD;
	CHECK_FAULT(RUN(0x0f, 0x01, 0xf9), VECTOR_GP, 0);
}

static enum vcpu_result xsetbv(uint64_t value, uint32_t number)
{
	fake_reset();
	V->cr4 |= CR4_OSXSAVE;
	V->gpr[ECX] = number;
	V->gpr[EAX] = (uint32_t)value;
	V->gpr[EDX] = (uint32_t)(value >> 32);
	return RUN(0x0f, 0x01, 0xd1);
}

static void extended_control_register(void)
{
	static const uint64_t good[] = { 1, 3, 7, 0xe7 }, bad[] = {
		0, 2, 5, 0xe3, 0x67, 0x27, 9, 0x201, 0x60001, 1ull << 63 | 1
	};

	for (unsigned n = 0; n < ARRAY_LEN(good); n++) {
		CU_ASSERT_EQUAL(xsetbv(good[n], 0), VCPU_DONE);
		CU_ASSERT_EQUAL(V->xcr0, good[n]);
		V->gpr[ECX] = 0;
		CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0x01, 0xd0), VCPU_DONE);
		CU_ASSERT_EQUAL(edx_eax(), good[n]);
	}
	for (unsigned n = 0; n < ARRAY_LEN(bad); n++)
		CHECK_FAULT(xsetbv(bad[n], 0), VECTOR_GP, 0);
	CHECK_FAULT(xsetbv(7, 1), VECTOR_GP, 0);
	fake_reset();
	fake.xcr0 = 3;
	V->cr4 |= CR4_OSXSAVE;
	V->gpr[EAX] = 7;
	CHECK_FAULT(RUN(0x0f, 0x01, 0xd1), VECTOR_GP, 0); /* more than the host has */
	fake_reset();
	CHECK_FAULT(RUN(0x0f, 0x01, 0xd1), VECTOR_UD, -1); /* without CR4.OSXSAVE */
	fake_reset();
	CHECK_FAULT(RUN(0x0f, 0x01, 0xd0), VECTOR_UD, -1);
	fake_reset();
	V->cr4 |= CR4_OSXSAVE;
	V->gpr[ECX] = 1;
	CHECK_FAULT(RUN(0x0f, 0x01, 0xd0), VECTOR_GP, 0);
	fake_reset();
	fake_user();
	V->cr4 |= CR4_OSXSAVE;
	V->gpr[EAX] = 7;
	CHECK_FAULT(RUN(0x0f, 0x01, 0xd1), VECTOR_GP, 0);
}

static uint32_t zf(void) { return V->eflags & EFLAGS_ZF; }

static void descriptor_questions(void)
{
	fake_reset();
	V->gpr[EAX] = VMP_SEL_USER_DS;
	CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0x02, 0xc8), VCPU_DONE); /* lar %eax, %ecx */
	CU_ASSERT_TRUE(zf());
	/* limit bits are masked out, except 19-16, which lar's mask 0x00f0ff00 keeps */
	CU_ASSERT_EQUAL(V->gpr[ECX], 0x00c0f200);
	RUN(MARKER, 0x0f, 0x03, 0xc8); /* lsl */
	CU_ASSERT_TRUE(zf());
	CU_ASSERT_EQUAL(V->gpr[ECX], VMP_USER_LIMIT - 1);
	V->gpr[EAX] = SEL_TSS;
	RUN(MARKER, 0x0f, 0x03, 0xc8);
	CU_ASSERT_TRUE(zf());
	CU_ASSERT_EQUAL(V->gpr[ECX], 0x67);
	V->gpr[EAX] = GDT_CALL_GATE * 8;
	RUN(MARKER, 0x0f, 0x02, 0xc8);
	CU_ASSERT_TRUE(zf());
	RUN(MARKER, 0x0f, 0x03, 0xc8); /* a gate has no limit */
	CU_ASSERT_FALSE(zf());
	V->gpr[EAX] = 0;
	RUN(MARKER, 0x0f, 0x02, 0xc8);
	CU_ASSERT_FALSE(zf());
	V->gpr[EAX] = VMP_GDT_ENTRIES * 8;
	RUN(MARKER, 0x0f, 0x02, 0xc8);
	CU_ASSERT_FALSE(zf());
	V->gpr[EAX] = VMP_SEL_KERNEL_DS;
	fake_user();
	RUN(0x0f, 0x02, 0xc8);
	CU_ASSERT_FALSE(zf()); /* not for CPL 3 */
	V->gpr[EAX] = GDT_CONFORMING * 8;
	RUN(0x0f, 0x02, 0xc8);
	CU_ASSERT_TRUE(zf());
}

static void verify(uint16_t selector, bool readable, bool writable)
{
	V->gpr[EAX] = selector;
	CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0x00, 0xe0), VCPU_DONE);
	CU_ASSERT_EQUAL(!!zf(), readable);
	CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0x00, 0xe8), VCPU_DONE);
	CU_ASSERT_EQUAL(!!zf(), writable);
}

static void descriptor_verification(void)
{
	fake_reset();
	verify(VMP_SEL_USER_DS, true, true);
	verify(GDT_READ_ONLY * 8 + 3, true, false);
	verify(VMP_SEL_USER_CS, true, false);
	verify(GDT_CODE_EXECUTE_ONLY * 8 + 3, false, false);
	verify(SEL_TSS, false, false);
	verify(0, false, false);
	fake_reset();
	set_pte(DATA, 0);
	CHECK_FAULT(RUN(0x0f, 0x00, 0x25, 0x00, 0x00, 0x04, 0x00), VECTOR_PF, 0); /* verr DATA */
	fake_reset();
	V->gpr[EAX] = VMP_SEL_USER_DS;
	set_pte(GDT, 0);
	V->idtr.limit = 0; /* and then nothing works */
	RUN(0x0f, 0x00, 0xe0);
	CU_ASSERT_EQUAL(V->dead, VCPU_TRIPLE_FAULT);
}

/* Privileged instructions at CPL 3: #GP(0), pointing at them, nothing changed. */
static void privilege(void)
{
	static const uint8_t codes[][5] = {
		{ 0xf4 },
		{ 0xfa },
		{ 0xfb },
		{ 0xe4, 0x80 },
		{ 0xe5, 0x80 },
		{ 0xec },
		{ 0xed },
		{ 0xe6, 0x80 },
		{ 0xe7, 0x80 },
		{ 0xee },
		{ 0xef },
		{ 0x6c },
		{ 0x6d },
		{ 0x6e },
		{ 0x6f },
		{ 0xf3, 0x6c },
		{ 0x0f, 0x06 },
		{ 0x0f, 0x08 },
		{ 0x0f, 0x09 },
		{ 0x0f, 0x20, 0xc0 },
		{ 0x0f, 0x22, 0xc0 },
		{ 0x0f, 0x20, 0xd8 },
		{ 0x0f, 0x22, 0xd8 },
		{ 0x0f, 0x21, 0xc0 },
		{ 0x0f, 0x23, 0xf8 },
		{ 0x0f, 0x30 },
		{ 0x0f, 0x32 },
		{ 0x0f, 0x33 },
		{ 0x0f, 0x00, 0xd0 },
		{ 0x0f, 0x00, 0xd8 },
		{ 0x0f, 0x01, 0x10 },
		{ 0x0f, 0x01, 0x18 },
		{ 0x0f, 0x01, 0x38 },
		{ 0x0f, 0x01, 0xf0 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(codes); n++) {
		fake_reset();
		fake_user();
		CHECK_FAULT(fake_run_at(CODE, codes[n], sizeof codes[n]), VECTOR_GP, 0);
		CU_ASSERT_EQUAL(frame(2), VMP_SEL_USER_CS);
		CU_ASSERT_EQUAL(fake.port_ins + fake.port_outs + fake.string_ins +
					fake.string_outs + fake.flush_page,
				0);
	}
}

/* Hidden by CPUID: #UD at both levels. A lock prefix before ours: #UD too. */
static void undefined(void)
{
	static const uint8_t codes[][5] = {
		{ 0x0f, 0x01, 0xc8 }, { 0x0f, 0x01, 0xc9 },
		{ 0x0f, 0x01, 0xca }, { 0x0f, 0x01, 0xcb },
		{ 0x0f, 0x01, 0xf8 }, { 0x0f, 0x05 },
		{ 0x0f, 0x07 },	      { 0x0f, 0x34 },
		{ 0x0f, 0x35 },	      { 0x0f, 0xc7, 0x18 },
		{ 0x0f, 0xc7, 0x28 }, { 0xf0, 0xf4 },
		{ 0xf0, 0xfa },	      { 0xf0, 0x0f, 0x20, 0xc0 },
		{ 0xf0, 0xff, 0x18 }, { 0xf0, 0x0f, 0xc7, 0x18 },
	};

	for (unsigned n = 0; n < 2 * ARRAY_LEN(codes); n++) {
		fake_reset();
		if (n & 1)
			fake_user();
		CHECK_FAULT(fake_run_at(CODE, codes[n / 2], sizeof codes[0]), VECTOR_UD, -1);
	}
}

static void not_mine(void)
{
	static const uint8_t codes[][5] = {
		{ 0x90 },
		{ 0x89, 0xc0 },
		{ 0x9c },
		{ 0x9d },
		{ 0x06 },
		{ 0x0e },
		{ 0x8c, 0xc8 },
		{ 0xff, 0xd0 },
		{ 0xff, 0x30 },
		{ 0xff, 0xe8 },
		{ 0xc5, 0xf8, 0x77 },
		{ 0xc4, 0xe2, 0x78, 0xf2 },
		{ 0x0f, 0x01, 0xc1 },
		{ 0x0f, 0x01, 0xd5 },
		{ 0x0f, 0x01, 0xee },
		{ 0x0f, 0xc7, 0xf0 },
		{ 0x0f, 0xc7, 0x08 },
		{ 0x0f, 0x0b },
		{ 0x0f, 0xae, 0x00 },
		{ 0xf3, 0x90 },
		/* lock incl and cmpxchg8b, of the same groups as some of ours */
		{ 0xf0, 0xff, 0x00 },
		{ 0xf0, 0x0f, 0xc7, 0x08 },
	};

	for (unsigned n = 0; n < 2 * ARRAY_LEN(codes); n++) {
		struct vcpu before;

		fake_reset();
		if (n & 1)
			fake_user();
		V->eip = CODE;
		V->interrupt_shadow = true;
		before = *V;
		CU_ASSERT_EQUAL(fake_run_at(CODE, codes[n / 2], sizeof codes[0]), VCPU_NOT_MINE);
		CU_ASSERT_EQUAL(memcmp(&before, V, sizeof before), 0);
	}
	fake_reset();
	RUN(MARKER, 0x89, 0xc0);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED); /* the rewriter and we disagree */
	CU_ASSERT_EQUAL(vcpu_emulate(V), VCPU_DONE);
}

static void cpuid_instruction(void)
{
	fake_reset();
	V->gpr[EAX] = 0x80000008;
	CU_ASSERT_EQUAL(RUN(MARKER, 0x0f, 0xa2), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[EAX], 0x2020);
	CU_ASSERT_EQUAL(V->eip, CODE + 4);
	fake_user();
	V->gpr[EAX] = 0x80000008;
	CU_ASSERT_EQUAL(RUN(0x0f, 0xa2), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[EAX], 0x2020);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(control_registers),
		UNIT_TEST(control_register_cr0),
		UNIT_TEST(control_registers_undefined),
		UNIT_TEST(machine_status_word),
		UNIT_TEST(debug_registers),
		UNIT_TEST(descriptor_tables),
		UNIT_TEST(descriptor_tables_fault),
		UNIT_TEST(task_register),
		UNIT_TEST(local_table_register),
		UNIT_TEST(page_invalidation),
		UNIT_TEST(model_specific_registers),
		UNIT_TEST(counters),
		UNIT_TEST(extended_control_register),
		UNIT_TEST(descriptor_questions),
		UNIT_TEST(descriptor_verification),
		UNIT_TEST(privilege),
		UNIT_TEST(undefined),
		UNIT_TEST(not_mine),
		UNIT_TEST(cpuid_instruction),
		UNIT_END
	};
	return UNIT_RUN("vcpu system instructions", tests);
}
