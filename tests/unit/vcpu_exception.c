/* vcpu_exception.c - delivery of exceptions and interrupts (vcpu/exception.c, vcpu.c): frames,
 * gates, stacks, nesting. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vcpu/internal.h"

#define V (&fake.v)

static void frame_same_level(void)
{
	fake_reset();
	V->eflags |= EFLAGS_IF | EFLAGS_TF | EFLAGS_NT | EFLAGS_ID | EFLAGS_CF;
	V->cr2 = 0x1000;
	vcpu_exception(V, VECTOR_PF, 2);
	CU_ASSERT_TRUE(in_handler(VECTOR_PF));
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 16);
	CU_ASSERT_EQUAL(frame(0), 2);
	CU_ASSERT_EQUAL(frame(1), CODE);
	CU_ASSERT_EQUAL(frame(2), VMP_SEL_KERNEL_CS);
	CU_ASSERT_EQUAL(frame(3), EFLAGS_FIXED | EFLAGS_IF | EFLAGS_TF | EFLAGS_NT | EFLAGS_ID |
					  EFLAGS_CF | EFLAGS_RF);
	/* an interrupt gate clears IF */
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_ID | EFLAGS_CF);
	CU_ASSERT_EQUAL(V->delivering, 0);
}

static void frame_from_user(void)
{
	fake_reset();
	fake_user();
	V->halted = V->interrupt_shadow = true;
	vcpu_exception(V, VECTOR_UD, -1);
	CU_ASSERT_TRUE(in_handler(VECTOR_UD));
	CU_ASSERT_EQUAL(V->gpr[ESP], ENTRY_STACK - 20);
	CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_KERNEL_DS);
	CU_ASSERT_EQUAL(frame(0), CODE);
	CU_ASSERT_EQUAL(frame(1), VMP_SEL_USER_CS);
	CU_ASSERT_EQUAL(frame(3), USER_STACK);
	CU_ASSERT_EQUAL(frame(4), VMP_SEL_USER_DS);
	CU_ASSERT_EQUAL(V->seg[SEG_DS], VMP_SEL_USER_DS); /* data segments stay */
	CU_ASSERT_FALSE(V->halted);
	CU_ASSERT_FALSE(V->interrupt_shadow);
}

/* RF in the frame: set for faults that restart the instruction, not for traps and interrupts. */
static void frame_resume_flag(void)
{
	for (unsigned vector = 0; vector < 20; vector++) {
		bool trap = vector == VECTOR_DB || vector == VECTOR_NMI || vector == VECTOR_BP ||
			    vector == VECTOR_OF || vector == VECTOR_DF || vector == VECTOR_MC ||
			    vector == 9 || vector == 15;
		bool error = vector == VECTOR_DF || (vector >= VECTOR_TS && vector <= VECTOR_PF) ||
			     vector == VECTOR_AC;

		fake_reset();
		vcpu_exception(V, vector, error ? 0 : -1);
		CU_ASSERT_EQUAL(!(frame(error ? 3 : 2) & EFLAGS_RF), trap);
	}
	fake_reset();
	exception_external(V, 0x40);
	CU_ASSERT_FALSE(frame(2) & EFLAGS_RF);
	/* what is left of a page fault of the host's */
	fake_reset();
	V->eflags |= EFLAGS_RF;
	vcpu_exception(V, VECTOR_DB, -1);
	CU_ASSERT_FALSE(frame(2) & EFLAGS_RF);
	fake_reset();
	V->eflags |= EFLAGS_RF;
	exception_external(V, 0x40);
	CU_ASSERT_TRUE(frame(2) & EFLAGS_RF);
}

static void trap_gate_keeps_if(void)
{
	fake_reset();
	V->eflags |= EFLAGS_IF;
	set_gate(VECTOR_GP, VMP_SEL_KERNEL_CS, HANDLERS + VECTOR_GP * 16, GATE_TRAP);
	vcpu_exception(V, VECTOR_GP, 0);
	CU_ASSERT_TRUE(V->eflags & EFLAGS_IF);
}

/* A bad gate for vector 0x40: which exception is raised, by an interrupt (EXT) and by `int` from
 * user mode. */
static void bad_gates(void)
{
	static const struct {
		uint16_t selector;
		uint8_t access;
		unsigned vector;
		uint32_t error;
	} cases[] = {
		{ VMP_SEL_KERNEL_CS, 0x0e, VECTOR_NP, 0x40 * 8 + 2 }, /* not present */
		{ VMP_SEL_KERNEL_CS, 0x8c, VECTOR_GP, 0x40 * 8 + 2 }, /* a call gate */
		{ VMP_SEL_KERNEL_CS, 0x00, VECTOR_GP, 0x40 * 8 + 2 },
		{ VMP_SEL_KERNEL_CS, 0x9e, VECTOR_GP, 0x40 * 8 + 2 }, /* with the S bit */
		{ VMP_SEL_KERNEL_CS, 0x86, VECTOR_GP, 0x40 * 8 + 2 }, /* 16-bit */
		{ 0, GATE_INTERRUPT, VECTOR_GP, 0 },
		{ VMP_SEL_KERNEL_DS, GATE_INTERRUPT, VECTOR_GP, VMP_SEL_KERNEL_DS & ~3 },
		{ SEL_TSS, GATE_INTERRUPT, VECTOR_GP, SEL_TSS },
		{ VMP_GDT_ENTRIES * 8, GATE_INTERRUPT, VECTOR_GP, VMP_GDT_ENTRIES * 8 },
		{ GDT_ABSENT_CODE * 8, GATE_INTERRUPT, VECTOR_NP, GDT_ABSENT_CODE * 8 },
	};

	for (unsigned n = 0; n < 2 * ARRAY_LEN(cases); n++) {
		const bool software = n & 1;

		fake_reset();
		fake_user();
		set_gate(0x40, cases[n / 2].selector, 0x1000, cases[n / 2].access | GATE_USER);
		V->eip = CODE;
		if (software)
			RUN(0xcd, 0x40);
		else
			exception_external(V, 0x40);
		CU_ASSERT_TRUE(faulted(cases[n / 2].vector, cases[n / 2].error | !software, CODE));
		CU_ASSERT_EQUAL(V->gpr[ESP], ENTRY_STACK - 24);
	}
}

static void table_limit(void)
{
	fake_reset();
	V->idtr.limit = 0x40 * 8 + 6;
	exception_external(V, 0x40);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, 0x40 * 8 + 3, CODE));
	fake_reset();
	V->idtr.limit = 0x40 * 8 + 7;
	exception_external(V, 0x40);
	CU_ASSERT_TRUE(in_handler(0x40));
}

static void kernel_gate_from_user_handler(void)
{
	/* a handler of level 3 cannot be entered from level 0 */
	fake_reset();
	set_gate(0x40, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, (VMP_SEL_USER_CS & ~3) | 1, CODE));
	/* but from level 3: no change of stack */
	fake_reset();
	fake_user();
	set_gate(0x40, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_EQUAL(V->cpl, 3);
	CU_ASSERT_EQUAL(V->eip, 0x1000);
	CU_ASSERT_EQUAL(V->gpr[ESP], USER_STACK - 12);
	/* a conforming handler runs at the interrupted level */
	fake_reset();
	fake_user();
	set_gate(0x40, GDT_CONFORMING * 8, 0x1000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_EQUAL(V->cpl, 3);
	CU_ASSERT_EQUAL(V->seg[SEG_CS], GDT_CONFORMING * 8 + 3);
}

static void code_limit(void)
{
	fake_reset();
	set_descriptor(VMP_GDT_KERNEL_CS, 0, 0xff, 0x9a, 0xc); /* 1 MiB */
	set_gate(0x40, VMP_SEL_KERNEL_CS, 0x100000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, 1, CODE));
}

static void bad_stacks(void)
{
	static const struct { uint16_t ss; unsigned vector; uint32_t error; } cases[] = {
		{ 0, VECTOR_TS, 1 },
		{ VMP_SEL_KERNEL_CS, VECTOR_TS, VMP_SEL_KERNEL_CS | 1 },
		{ GDT_READ_ONLY * 8, VECTOR_TS, GDT_READ_ONLY * 8 | 1 },
		{ VMP_GDT_ENTRIES * 8, VECTOR_TS, VMP_GDT_ENTRIES * 8 | 1 },
		{ SEL_TSS, VECTOR_TS, SEL_TSS | 1 },
		{ GDT_ABSENT * 8, VECTOR_SS, GDT_ABSENT * 8 | 1 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		fake_user();
		set32(TSS + 8, cases[n].ss);
		/* its handler runs at level 3, so that it needs no stack itself */
		set_gate(cases[n].vector, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
		exception_external(V, 0x40);
		CU_ASSERT_EQUAL(V->eip, 0x1000);
		CU_ASSERT_EQUAL(frame(0), cases[n].error);
	}
	fake_reset();
	fake_user();
	V->tss_limit = 8;
	set_gate(VECTOR_TS, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_EQUAL(frame(0), SEL_TSS | 1);
	fake_reset();
	fake_user();
	set_pte(TSS, 0); /* the state segment is away: a #PF that needs it too */
	set_gate(VECTOR_PF, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_EQUAL(V->eip, 0x1000);
	CU_ASSERT_EQUAL(V->cr2, TSS + 4);
	CU_ASSERT_EQUAL(frame(0), 0); /* a read by the processor, as supervisor */
}

static void frame_is_all_or_nothing(void)
{
	fake_reset();
	fake_user();
	/* 8 bytes of the frame on the upper page, 12 on the lower one, which is away */
	set32(TSS + 4, 0x51000 + 8);
	set_pte(0x50000, 0);
	set32(0x51000, 0x11111111);
	set32(0x51004, 0x22222222);
	set_gate(VECTOR_PF, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_EQUAL(V->eip, 0x1000);
	CU_ASSERT_EQUAL(frame(0), PF_WRITE);
	CU_ASSERT_EQUAL(V->cr2, 0x51008 - 20);
	CU_ASSERT_EQUAL(ram32(0x51000), 0x11111111);
	CU_ASSERT_EQUAL(ram32(0x51004), 0x22222222);
	fake_reset();
	fake_user();
	set32(TSS + 4, 0x51000 + 8);
	exception_external(V, 0x40); /* across pages, both there */
	CU_ASSERT_TRUE(in_handler(0x40));
	CU_ASSERT_EQUAL(frame(4), VMP_SEL_USER_DS);
	CU_ASSERT_EQUAL(frame(0), CODE);
}

/* SDM 3, table 6-5, cell by cell. */
static void nesting_table(void)
{
	static const enum nesting expect[4][3] = {
		[CLASS_BENIGN] = { NEST_SERIAL, NEST_SERIAL, NEST_SERIAL },
		[CLASS_CONTRIBUTORY] = { NEST_SERIAL, NEST_DOUBLE, NEST_SERIAL },
		[CLASS_PAGE_FAULT] = { NEST_SERIAL, NEST_DOUBLE, NEST_DOUBLE },
		[CLASS_DOUBLE_FAULT] = { NEST_SERIAL, NEST_TRIPLE, NEST_TRIPLE },
	};

	for (unsigned first = 0; first < 4; first++)
		for (unsigned second = 0; second < 3; second++)
			CU_ASSERT_EQUAL(exception_nesting(first, second), expect[first][second]);
	for (unsigned vector = 0; vector < 256; vector++) {
		bool contributory = vector == VECTOR_DE ||
				    (vector >= VECTOR_TS && vector <= VECTOR_GP);

		CU_ASSERT_EQUAL(exception_class_of(vector), contributory ? CLASS_CONTRIBUTORY
							    : vector == VECTOR_PF ? CLASS_PAGE_FAULT
							    : vector == VECTOR_DF
								    ? CLASS_DOUBLE_FAULT
								    : CLASS_BENIGN);
	}
}

/* Each vector of the first kind, whose gate raises each vector of the second kind: which handler
 * runs? */
static void nesting_delivered(void)
{
	static const unsigned firsts[] = { VECTOR_DE, VECTOR_DB, VECTOR_UD, VECTOR_NM,
					   VECTOR_TS, VECTOR_NP, VECTOR_SS, VECTOR_GP,
					   VECTOR_PF, VECTOR_AC, VECTOR_XM, 0x40 };
	static const unsigned seconds[] = { VECTOR_NP, VECTOR_GP, VECTOR_PF };

	for (unsigned n = 0; n < ARRAY_LEN(firsts) * ARRAY_LEN(seconds); n++) {
		unsigned first = firsts[n / ARRAY_LEN(seconds)],
			 second = seconds[n % ARRAY_LEN(seconds)], expect = second;

		if (first == second)
			continue;
		fake_reset();
		/* a table across two pages: vectors below 32 on the first one */
		V->idtr.base = DATA;
		memcpy(fake.ram + DATA, fake.ram + IDT, 256 * 8);
		if (second == VECTOR_NP)
			fake.ram[DATA + first * 8 + 5] &= 0x7f;
		else if (second == VECTOR_GP)
			fake.ram[DATA + first * 8 + 5] = 0x80;
		else { /* a code segment descriptor on a page that is away */
			fake.ram[DATA + first * 8 + 2] = 31 * 8;
			V->gdtr.base = 0x81000 - 31 * 8;
			memcpy(fake.ram + V->gdtr.base, fake.ram + GDT, 31 * 8);
			set_pte(0x81000, 0);
		}
		switch (exception_nesting(exception_class_of(first), exception_class_of(second))) {
		case NEST_SERIAL: break;
		case NEST_DOUBLE: expect = VECTOR_DF; break;
		case NEST_TRIPLE: CU_FAIL("impossible"); break;
		}
		if (first == 0x40)
			exception_external(V, first);
		else
			vcpu_exception(V, first, -1);
		CU_ASSERT_TRUE(in_handler(expect));
		CU_ASSERT_EQUAL(frame(1), CODE);
		if (expect == VECTOR_DF)
			CU_ASSERT_EQUAL(frame(0), 0);
	}
}

static void triple_fault(void)
{
	fake_reset();
	V->idtr.limit = 0;
	vcpu_exception(V, VECTOR_UD, -1);
	CU_ASSERT_EQUAL(V->dead, VCPU_TRIPLE_FAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(V->dead_reason, "triple fault"));
	CU_ASSERT_EQUAL(V->eip, CODE);
	fake_reset();
	V->gpr[ESP] = 0x70000000; /* a stack that is nowhere: #PF, #PF -> #DF, #PF -> the end */
	vcpu_exception(V, VECTOR_UD, -1);
	CU_ASSERT_EQUAL(V->dead, VCPU_TRIPLE_FAULT);
	CU_ASSERT_EQUAL(V->gpr[ESP], 0x70000000);
	vcpu_exception(V, VECTOR_UD, -1); /* the dead feel nothing */
	CU_ASSERT_EQUAL(V->eip, CODE);
	CU_ASSERT_FALSE(vcpu_deliver_interrupt(V));
}

static void task_gate_kills(void)
{
	fake_reset();
	set_gate(VECTOR_DF, VMP_GDT_DOUBLEFAULT_TSS * 8, 0, 0x85);
	vcpu_exception(V, VECTOR_DF, 0);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	CU_ASSERT_PTR_NOT_NULL(strstr(V->dead_reason, "task gate"));
	fake_reset();
	set_gate(0x40, GDT_SMALL_CODE * 8, 0, GATE_INTERRUPT);
	exception_external(V, 0x40);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
}

static void device_interrupts(void)
{
	fake_reset();
	V->apic.spiv |= 0x100;
	CU_ASSERT_FALSE(vcpu_interrupt_pending(V));
	apic_post(&V->apic, 0x41);
	apic_post(&V->apic, 0x51);
	CU_ASSERT_TRUE(vcpu_interrupt_pending(V));
	CU_ASSERT_FALSE(vcpu_can_interrupt(V));
	CU_ASSERT_FALSE(vcpu_deliver_interrupt(V));
	V->halted = true;
	CU_ASSERT_FALSE(vcpu_wakes(V)); /* halted with interrupts off: for ever */
	V->eflags |= EFLAGS_IF;
	CU_ASSERT_TRUE(vcpu_wakes(V));
	V->interrupt_shadow = true;
	CU_ASSERT_FALSE(vcpu_deliver_interrupt(V));
	V->interrupt_shadow = false;
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V));
	CU_ASSERT_TRUE(in_handler(0x51));
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 12);
	V->eflags |= EFLAGS_IF;
	CU_ASSERT_FALSE(vcpu_deliver_interrupt(V)); /* 0x41 waits for the end of 0x51 */
	apic_write(V, 0xb0, 0);
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V));
	CU_ASSERT_TRUE(in_handler(0x41));
}

static void non_maskable(void)
{
	fake_reset();
	V->nmi_pending = true;
	V->halted = true;
	CU_ASSERT_TRUE(vcpu_wakes(V));
	CU_ASSERT_TRUE(vcpu_interrupt_pending(V));
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V)); /* with IF clear */
	CU_ASSERT_TRUE(in_handler(VECTOR_NMI));
	CU_ASSERT_TRUE(V->nmi_blocked);
	V->nmi_pending = true;
	CU_ASSERT_FALSE(vcpu_deliver_interrupt(V));
	CU_ASSERT_FALSE(vcpu_interrupt_pending(V));
	CU_ASSERT_EQUAL(RUN_AT(V->eip, 0xcf), VCPU_DONE);
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V));
	CU_ASSERT_TRUE(in_handler(VECTOR_NMI));
}

/* A device interrupt whose frame faults: the guest handles the #PF; EXT does not appear in its
 * error code. */
static void interrupt_frame_faults(void)
{
	fake_reset();
	fake_user();
	set32(TSS + 4, 0x70000000);
	set_gate(VECTOR_PF, VMP_SEL_USER_CS, 0x1000, GATE_INTERRUPT);
	V->apic.spiv |= 0x100;
	apic_post(&V->apic, 0x41);
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V));
	CU_ASSERT_EQUAL(V->eip, 0x1000);
	CU_ASSERT_EQUAL(frame(1), CODE);
}

static void birth_and_start(void)
{
	fake_reset();
	vcpu_init(V, 2, 4, RAM_BYTES >> PAGE_BITS, &fake.env);
	CU_ASSERT_TRUE(V->halted);
	CU_ASSERT_FALSE(vcpu_wakes(V));
	vcpu_start(V, 0x100000, VMP_BOOT_PARAMS_GPA);
	CU_ASSERT_FALSE(V->halted);
	CU_ASSERT_EQUAL(V->eip, 0x100000);
	CU_ASSERT_EQUAL(V->gpr[ESI], VMP_BOOT_PARAMS_GPA);
	CU_ASSERT_EQUAL(V->cr0, CR0_PE | CR0_ET);
	CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_BOOT_CS);
	CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_BOOT_DS);
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED);
	CU_ASSERT_EQUAL(V->apic.id, 2);
	CU_ASSERT_EQUAL(V->number, 2);
	/* flat segments although there is no table yet */
	set32(DATA, 0x1ff | (IDT & 0xffff) << 16);
	CU_ASSERT_EQUAL(RUN(0x0f, 0x01, 0x1d, 0x00, 0x00, 0x04, 0x00), VCPU_DONE);
	CU_ASSERT_EQUAL(V->idtr.limit, 0x1ff);
	V->gpr[EAX] = VMP_SEL_BOOT_DS;
	CU_ASSERT_EQUAL(RUN(0x8e, 0xc0), VCPU_DONE);
}

/* Beyond the limit of user segments: a page fault, whatever the page tables say. */
static void beyond_the_user_limit(void)
{
	static const struct { enum vcpu_access access; uint32_t error;
	} rows[] = {
		{ ACCESS_READ, PF_USER },
		{ ACCESS_FETCH, PF_USER },
		{ ACCESS_WRITE, PF_USER | PF_WRITE },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		fake_reset();
		fake_user();
		vcpu_beyond_user_limit(V, 0xd0000000, rows[i].access);
		CU_ASSERT_TRUE(in_handler(VECTOR_PF));
		CU_ASSERT_EQUAL(V->cr2, 0xd0000000);
		CU_ASSERT_EQUAL(frame(0), rows[i].error);
		fake_reset();
		fake_user();
		vcpu_beyond_user_limit(V, DATA, rows[i].access); /* mapped, for users too */
		CU_ASSERT_EQUAL(frame(0), rows[i].error | PF_PRESENT);
	}
}

static void strayed(void)
{
	static const struct { uint8_t cpl; uint32_t eip; bool strayed;
	} rows[] = {
		{ 3, VMP_USER_LIMIT - 1, false },
		{ 3, VMP_USER_LIMIT, true },
		{ 3, VMP_STUB_IRET, true },
		{ 0, VMP_USER_LIMIT, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		fake_reset();
		V->cpl = rows[i].cpl;
		V->eip = rows[i].eip;
		CU_ASSERT_EQUAL(vcpu_strayed(V), rows[i].strayed);
	}
}

static void what_traps_next(void)
{
	static const struct { uint8_t insn[2]; bool traps;
	} rows[] = {
		{ { 0xfa, 0x90 }, true },	    { { 0xfb, 0x90 }, true },
		{ { 0xf4, 0x90 }, true },	    { { 0x90, 0xfa }, false },
		{ { 0xcd, VMP_INT_MARKER }, true }, { { 0xcd, VMP_INT_HYPERCALL }, true },
		{ { 0xcd, 0x80 }, false },
	};
	uint8_t insn[2];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		fake_reset();
		memcpy(fake.ram + CODE, rows[i].insn, 2);
		CU_ASSERT_EQUAL(emulate_traps_next(V, insn), rows[i].traps);
		CU_ASSERT(!memcmp(insn, rows[i].insn, 2));
		V->cpl = 3;
		CU_ASSERT_FALSE(emulate_traps_next(V, insn));
	}
	fake_reset();
	V->cr2 = 0x1234;
	V->eip = 0xd0000000;
	CU_ASSERT_FALSE(emulate_traps_next(V, insn));
	CU_ASSERT_EQUAL(V->cr2, 0x1234); /* nothing was raised */
}

static unsigned seen_count;
static enum vcpu_trap seen[8];

static void note_seen(void *ctx, enum vcpu_trap trap)
{
	(void)ctx;
	seen[seen_count++ % ARRAY_LEN(seen)] = trap;
}

static enum vcpu_result run_code(const uint8_t *code, unsigned bytes, bool one)
{
	fake_reset();
	memcpy(fake.ram + CODE, code, bytes);
	V->eip = CODE;
	seen_count = 0;
	return vcpu_emulate_run(V, one, note_seen, NULL);
}

/* Instructions that would trap again are emulated together, up to a hlt, an ordinary instruction,
 * or an interrupt that may be delivered. */
static void emulated_in_a_run(void)
{
	static const uint8_t idle[] = { 0xfa, 0xfb, 0xf4, 0x90 };
	static const uint8_t pauses[] = { 0xcd,		  VMP_INT_MARKER, 0xf3, 0x90, 0xcd,
					  VMP_INT_MARKER, 0xf3,		  0x90, 0x90 };
	static const uint8_t plain[] = { 0x90 };

	CU_ASSERT_EQUAL(run_code(idle, sizeof idle, false), VCPU_HALTED);
	CU_ASSERT_EQUAL(seen_count, 3);
	CU_ASSERT_EQUAL(seen[0], VCPU_TRAP_PRIVILEGED);
	CU_ASSERT_EQUAL(run_code(idle, sizeof idle, true), VCPU_DONE);
	CU_ASSERT(seen_count == 1 && V->eip == CODE + 1);
	CU_ASSERT_EQUAL(run_code(pauses, sizeof pauses, false), VCPU_DONE);
	CU_ASSERT(seen_count == 2 && seen[1] == VCPU_TRAP_MARKER);
	CU_ASSERT(V->yields == 2 && fake.yields == 2);
	V->eip = CODE;
	memcpy(fake.ram + CODE, (uint8_t[]){ 0xfa, 0x90 }, 2);
	vcpu_emulate_run(V, false, note_seen, NULL);
	CU_ASSERT_EQUAL(V->yields, 0); /* something else came between */
	CU_ASSERT_EQUAL(run_code(plain, sizeof plain, false), VCPU_NOT_MINE);
	fake_reset();
	fake_user();
	memcpy(fake.ram + CODE, (uint8_t[]){ 0xcd, 0x80 }, 2);
	seen_count = 0;
	V->eip = CODE;
	vcpu_emulate_run(V, false, note_seen, NULL);
	CU_ASSERT(seen_count == 1 && seen[0] == VCPU_TRAP_SYSCALL);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(frame_same_level),
		UNIT_TEST(frame_from_user),
		UNIT_TEST(frame_resume_flag),
		UNIT_TEST(trap_gate_keeps_if),
		UNIT_TEST(bad_gates),
		UNIT_TEST(table_limit),
		UNIT_TEST(kernel_gate_from_user_handler),
		UNIT_TEST(code_limit),
		UNIT_TEST(bad_stacks),
		UNIT_TEST(frame_is_all_or_nothing),
		UNIT_TEST(nesting_table),
		UNIT_TEST(nesting_delivered),
		UNIT_TEST(triple_fault),
		UNIT_TEST(task_gate_kills),
		UNIT_TEST(device_interrupts),
		UNIT_TEST(non_maskable),
		UNIT_TEST(interrupt_frame_faults),
		UNIT_TEST(beyond_the_user_limit),
		UNIT_TEST(strayed),
		UNIT_TEST(what_traps_next),
		UNIT_TEST(emulated_in_a_run),
		UNIT_TEST(birth_and_start),
		UNIT_END
	};
	return UNIT_RUN("vcpu exceptions", tests);
}
