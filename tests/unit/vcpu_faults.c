/* vcpu_faults.c - faults at every byte and every access: an instruction that cannot be fetched, or
 * cannot reach its operand, its stack or its descriptor, raises #PF with the right CR2, and leaves
 * every register as it was.
 */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)

struct code { uint8_t bytes[10]; unsigned length; };

/* With DATA mapped read-only or not at all, its second page too; the stack stays mapped. */
static const struct code readers[] = {
	{ { 0x0f, 0x00, 0x15, 0, 0, 4, 0 }, 7 }, /* lldt DATA */
	{ { 0x0f, 0x00, 0x1d, 0, 0, 4, 0 }, 7 }, /* ltr */
	{ { 0x0f, 0x00, 0x25, 0, 0, 4, 0 }, 7 }, /* verr */
	{ { 0x0f, 0x00, 0x2d, 0, 0, 4, 0 }, 7 }, /* verw */
	{ { 0x0f, 0x01, 0x15, 0, 0, 4, 0 }, 7 }, /* lgdt */
	{ { 0x0f, 0x01, 0x1d, 0, 0, 4, 0 }, 7 }, /* lidt */
	{ { 0x0f, 0x01, 0x35, 0, 0, 4, 0 }, 7 }, /* lmsw */
	{ { 0x0f, 0x02, 0x0d, 0, 0, 4, 0 }, 7 }, /* lar */
	{ { 0x0f, 0x03, 0x0d, 0, 0, 4, 0 }, 7 }, /* lsl */
	{ { 0x8e, 0x1d, 0, 0, 4, 0 }, 6 },	 /* mov DATA, %ds */
	{ { 0xc4, 0x0d, 0, 0, 4, 0 }, 6 },	 /* les */
	{ { 0x0f, 0xb4, 0x0d, 0, 0, 4, 0 }, 7 }, /* lfs */
	{ { 0xff, 0x2d, 0, 0, 4, 0 }, 6 },	 /* ljmp *DATA */
	{ { 0xff, 0x1d, 0, 0, 4, 0 }, 6 },	 /* lcall *DATA */
	/* the same with prefixes that change nothing */
	{ { 0x3e, 0xf2, 0xff, 0x1d, 0, 0, 4, 0 }, 8 },
};
static const struct code writers[] = {
	{ { MARKER, 0x0f, 0x00, 0x05, 0, 0, 4, 0 }, 9 }, /* sldt DATA */
	{ { MARKER, 0x0f, 0x00, 0x0d, 0, 0, 4, 0 }, 9 }, /* str */
	{ { MARKER, 0x0f, 0x01, 0x05, 0, 0, 4, 0 }, 9 }, /* sgdt */
	{ { MARKER, 0x0f, 0x01, 0x0d, 0, 0, 4, 0 }, 9 }, /* sidt */
	{ { MARKER, 0x0f, 0x01, 0x25, 0, 0, 4, 0 }, 9 }, /* smsw */
	{ { MARKER, 0x8c, 0x1d, 0, 0, 4, 0 }, 8 },	 /* mov %ds, DATA */
};

/* Compares all state that the instruction may not have changed, without what the delivery itself
 * changes. */
static void check_untouched(const struct vcpu *before)
{
	for (unsigned r = 0; r < 8; r++)
		if (r != ESP)
			CU_ASSERT_EQUAL(V->gpr[r], before->gpr[r]);
	for (unsigned s = 0; s < SEG_COUNT; s++)
		if (s != SEG_CS && s != SEG_SS)
			CU_ASSERT_EQUAL(V->seg[s], before->seg[s]);
	CU_ASSERT_EQUAL(V->gdtr.base, before->gdtr.base);
	CU_ASSERT_EQUAL(V->idtr.base, before->idtr.base);
	CU_ASSERT_EQUAL(V->cr0, before->cr0);
	CU_ASSERT_EQUAL(V->tr, before->tr);
	CU_ASSERT_EQUAL(V->ldtr, before->ldtr);
}

static void run_faulting(const struct code *c, uint32_t eip, uint32_t error, gva_t cr2)
{
	struct vcpu before = *V;

	CU_ASSERT_EQUAL(fake_run_at(eip, c->bytes, c->length), VCPU_RAISED);
	CU_ASSERT_TRUE(faulted(VECTOR_PF, error, eip));
	CU_ASSERT_EQUAL(V->cr2, cr2);
	CU_ASSERT_EQUAL(V->gpr[ESP], before.gpr[ESP] - 16);
	check_untouched(&before);
}

static void operands_absent(void)
{
	for (unsigned n = 0; n < ARRAY_LEN(readers); n++) {
		fake_reset();
		set_pte(DATA, 0);
		run_faulting(&readers[n], CODE, 0, DATA);
	}
	for (unsigned n = 0; n < ARRAY_LEN(writers); n++) {
		fake_reset();
		set_pte(DATA, 0);
		run_faulting(&writers[n], CODE, PF_WRITE, DATA);
		fake_reset();
		set_pte(DATA, DATA | P);
		run_faulting(&writers[n], CODE, PF_WRITE | PF_PRESENT, DATA);
	}
}

/* The operand's first byte is the last of its page, and the next page is away. */
static void operands_across_pages(void)
{
	for (unsigned n = 0; n < ARRAY_LEN(readers) + ARRAY_LEN(writers); n++) {
		bool write = n >= ARRAY_LEN(readers);
		struct code c = write ? writers[n - ARRAY_LEN(readers)] : readers[n];

		c.bytes[c.length - 4] = 0xff; /* DATA + 0xfff */
		c.bytes[c.length - 3] = 0x0f;
		fake_reset();
		set_pte(DATA + PAGE_BYTES, 0);
		run_faulting(&c, CODE, write ? PF_WRITE : 0, DATA + PAGE_BYTES);
		CU_ASSERT_EQUAL(fake.ram[DATA + PAGE_BYTES - 1], 0);
	}
}

/* Cut each instruction after each of its bytes. */
static void fetches(void)
{
	static const struct code more[] = {
		{ { 0xcd, 0x80 }, 2 },
		{ { 0xe4, 0x60 }, 2 },
		{ { 0xea, 0, 0, 0, 0, 0x84, 0 }, 7 },
		{ { 0x9a, 0, 0, 0, 0, 0x84, 0 }, 7 },
		{ { 0xca, 4, 0 }, 3 },
		{ { 0xf3, 0x66, 0x6d }, 3 },
		{ { 0x0f, 0x22, 0xc0 }, 3 },
		{ { MARKER, 0x9c }, 3 },
		{ { MARKER, 0x0f, 0xa2 }, 4 },
		{ { 0x0f, 0x01, 0x4c, 0x73, 1 }, 5 },
		{ { 0x66, 0x0f, 0x38, 0x82, 0 }, 4 },
		{ { 0x67, 0x0f, 0x01, 0x0e, 0, 0x10 }, 6 },
		{ { 0x0f, 0x01, 0x0c, 0xf5, 0, 0, 4, 0 }, 8 },
	};
	const uint32_t end = CODE + PAGE_BYTES;

	for (unsigned n = 0; n < ARRAY_LEN(more) + ARRAY_LEN(readers) + ARRAY_LEN(writers); n++) {
		const struct code *c = n < ARRAY_LEN(more) ? &more[n]
				       : n < ARRAY_LEN(more) + ARRAY_LEN(readers)
					       ? &readers[n - ARRAY_LEN(more)]
					       : &writers[n - ARRAY_LEN(more) - ARRAY_LEN(readers)];

		for (unsigned there = 1; there < c->length; there++) {
			fake_reset();
			set_pte(end, 0);
			run_faulting(c, end - there, 0, end);
		}
	}
}

static void stacks(void)
{
	static const struct { struct code code; unsigned pops;
	} cases[] = {
		{ { { 0xcf }, 1 }, 3 },
		{ { { 0xcb }, 1 }, 2 },
		{ { { 0x1f }, 1 }, 1 },
		{ { { MARKER, 0x9d }, 3 }, 1 },
	};

	/* Each word that is popped lies on a page that is away; the fault's own frame is pushed
	 * below it. */
	for (unsigned n = 0; n < ARRAY_LEN(cases); n++)
		for (unsigned word = 0; word < cases[n].pops; word++) {
			fake_reset();
			V->gpr[ESP] = KERNEL_STACK - word * 4;
			set32(V->gpr[ESP] + 4, VMP_SEL_KERNEL_CS);
			set_pte(KERNEL_STACK, 0);
			run_faulting(&cases[n].code, CODE, 0, KERNEL_STACK);
		}
	/* the outer ESP and SS of a return to user mode */
	for (unsigned word = 3; word < 5; word++) {
		fake_reset();
		V->gpr[ESP] = KERNEL_STACK - word * 4;
		set32(V->gpr[ESP] + 4, VMP_SEL_USER_CS);
		set_pte(KERNEL_STACK, 0);
		run_faulting(&cases[0].code, CODE, 0, KERNEL_STACK);
	}
}

/* The descriptor of the operand's segment, or of lldt's or ltr's selector, is on a page that is
 * away. */
static void descriptors(void)
{
	static const struct code lldt = { { 0x0f, 0x00, 0xd0 }, 3 },
				 ltr = { { 0x0f, 0x00, 0xd8 }, 3 },
				 sidt = { { 0x0f, 0x01, 0x0d, 0, 0, 4, 0 }, 7 },
				 ds = { { 0x8e, 0xd8 }, 2 };
	static const struct code *const cases[] = { &lldt, &ltr, &ds, &sidt };

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		/* entries 24 and up */
		V->gdtr = (struct vcpu_table){ 0x81000 - 24 * 8, VMP_GDT_ENTRIES * 8 - 1 };
		memcpy(fake.ram + V->gdtr.base, fake.ram + GDT, VMP_GDT_ENTRIES * 8);
		set_pte(0x81000, 0);
		V->gpr[EAX] = 25 * 8 + 3;
		V->seg[SEG_DS] = cases[n] == &sidt ? 25 * 8 + 3 : 0;
		run_faulting(cases[n], CODE, 0, 0x81000 + 8);
	}
	/* ltr marks the descriptor busy: a table that cannot be written */
	fake_reset();
	V->gpr[EAX] = SEL_TSS;
	V->tr = 0;
	set_pte(GDT, GDT | P);
	run_faulting(&ltr, CODE, PF_WRITE | PF_PRESENT, GDT + SEL_TSS + 4);
}

static void interrupt_table_absent(void)
{
	fake_reset();
	V->idtr.base = 0x81000 - 16 * 8; /* vectors from 16 up are away */
	memcpy(fake.ram + V->idtr.base, fake.ram + IDT, 16 * 8);
	set_pte(0x81000, 0);
	vcpu_exception(V, VECTOR_XM, -1);
	CU_ASSERT_TRUE(faulted(VECTOR_PF, 0, CODE));
	CU_ASSERT_EQUAL(V->cr2, 0x81000 + 3 * 8);
}

static void stack_descriptor_absent(void)
{
	fake_reset();
	fake_user();
	V->gdtr = (struct vcpu_table){ 0x81000 - 24 * 8, VMP_GDT_ENTRIES * 8 - 1 };
	memcpy(fake.ram + V->gdtr.base, fake.ram + GDT, VMP_GDT_ENTRIES * 8);
	set_pte(0x81000, 0);
	set32(TSS + 8, 27 * 8);
	set_gate(VECTOR_PF, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT); /* needs no other stack */
	vcpu_exception(V, VECTOR_UD, -1);
	CU_ASSERT_EQUAL(V->eip, 0x1000);
	CU_ASSERT_EQUAL(V->cr2, 0x81000 + 3 * 8);
}

static void code_outside_ram(void)
{
	fake_reset();
	set_pte(0x70000, VMP_LAPIC_GPA | P | A);
	V->eip = 0x70000;
	CU_ASSERT_EQUAL(vcpu_emulate(V), VCPU_DONE);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	CU_ASSERT_PTR_NOT_NULL(strstr(V->dead_reason, "code outside RAM"));
	CU_ASSERT_EQUAL(V->eip, 0x70000);
}

/* A user's code segment that is not flat 32-bit is refused to the user; it does not end the
 * machine. */
static void odd_user_segment(void)
{
	fake_reset();
	fake_user();
	set_descriptor(GDT_FREE, 0x5000, 0xfffff, 0xfa, 0xc);
	CHECK_FAULT(RUN(0xea, 0, 0, 0, 0, GDT_FREE * 8 + 3, 0), VECTOR_GP, GDT_FREE * 8);
	CU_ASSERT_EQUAL(V->dead, VCPU_ALIVE);
}

/* Segment registers may still hold selectors of a longer, earlier table: those segments were
 * flat. */
static void stale_selectors(void)
{
	fake_reset();
	V->gdtr.limit = VMP_GDT_KERNEL_CS * 8 + 7;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0x0d, 0, 0, 4, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(ram16(DATA), 0x7ff);
	fake_reset();
	V->gdtr = (struct vcpu_table){ 0, 0 }; /* none yet: the boot protocol's */
	V->seg[SEG_DS] = VMP_SEL_BOOT_DS;
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0x0d, 0, 0, 4, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(RUN(0xea, 0, 0, 1, 0, VMP_SEL_BOOT_CS, 0), VCPU_DONE);
	V->gpr[EAX] = VMP_SEL_USER_DS;
	RUN(0x0f, 0x02, 0xc8); /* lar: there is nothing else */
	CU_ASSERT_FALSE(V->eflags & EFLAGS_ZF);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(operands_absent),
		UNIT_TEST(operands_across_pages),
		UNIT_TEST(fetches),
		UNIT_TEST(stacks),
		UNIT_TEST(descriptors),
		UNIT_TEST(interrupt_table_absent),
		UNIT_TEST(stack_descriptor_absent),
		UNIT_TEST(code_outside_ram),
		UNIT_TEST(odd_user_segment),
		UNIT_TEST(stale_selectors),
		UNIT_END
	};
	return UNIT_RUN("vcpu faults", tests);
}
