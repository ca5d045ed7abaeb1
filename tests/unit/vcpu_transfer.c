/* vcpu_transfer.c - control flow, flags and segment registers (vcpu/transfer.c): success, faults,
 * restartability. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)

static void push32(uint32_t value)
{
	V->gpr[ESP] -= 4;
	set32(V->gpr[ESP], value);
}

/* ---- flags */

static void flags_cli_sti(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(RUN(0xfb), VCPU_DONE);
	CU_ASSERT_TRUE(V->eflags & EFLAGS_IF);
	CU_ASSERT_TRUE(V->interrupt_shadow);
	CU_ASSERT_FALSE(vcpu_can_interrupt(V));
	CU_ASSERT_EQUAL(RUN(0xfb), VCPU_DONE); /* already on: no shadow */
	CU_ASSERT_FALSE(V->interrupt_shadow);
	CU_ASSERT_TRUE(vcpu_can_interrupt(V));
	CU_ASSERT_EQUAL(RUN(0xfa), VCPU_DONE);
	CU_ASSERT_FALSE(V->eflags & EFLAGS_IF);
	CU_ASSERT_EQUAL(V->eip, CODE + 1);
	fake_user();
	V->eflags |= EFLAGS_IOPL;
	CU_ASSERT_EQUAL(RUN(0xfa), VCPU_DONE); /* IOPL 3 allows it */
	CU_ASSERT_FALSE(V->eflags & EFLAGS_IF);
}

static void sti_hlt(void)
{
	fake_reset();
	V->apic.spiv |= 0x100;
	apic_post(&V->apic, 0x30);
	RUN(0xfb);
	CU_ASSERT_FALSE(vcpu_deliver_interrupt(V));
	CU_ASSERT_EQUAL(RUN(0xf4), VCPU_HALTED);
	CU_ASSERT_TRUE(V->halted);
	CU_ASSERT_EQUAL(V->eip, CODE + 1);
	CU_ASSERT_TRUE(vcpu_wakes(V));
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V));
	CU_ASSERT_FALSE(V->halted);
	CU_ASSERT_TRUE(in_handler(0x30));
	CU_ASSERT_EQUAL(frame(0), CODE + 1); /* comes back behind hlt */
}

/* A hlt of CPU `number` with these flags, before or after the guest kernel has set its entry for
 * system calls: is it the CPU's end? */
static bool hlt_kills(unsigned number, uint32_t interrupts, uint32_t entry, bool nmi)
{
	fake_reset();
	V->number = number;
	V->eflags = EFLAGS_FIXED | interrupts;
	V->window_syscall_eip = entry;
	V->nmi_pending = nmi;
	CU_ASSERT_EQUAL(RUN(0xf4), V->dead ? VCPU_DONE : VCPU_HALTED);
	return V->dead == VCPU_KILLED;
}

static void hlt_for_good(void)
{
	CU_ASSERT_TRUE(hlt_kills(0, 0, 0, false));
	CU_ASSERT_FALSE(hlt_kills(1, 0, 0, false)); /* CPU 0 can wake it */
	CU_ASSERT_FALSE(hlt_kills(0, EFLAGS_IF, 0, false));
	CU_ASSERT_FALSE(hlt_kills(0, 0, CODE, false)); /* other CPUs may run */
	CU_ASSERT_FALSE(hlt_kills(0, 0, 0, true));
}

/* The only CPU's hlt. */
static bool lone_hlt_kills(uint32_t interrupts, bool nmi)
{
	fake_reset();
	V->n_cpus = 1;
	V->number = 0;
	V->eflags = EFLAGS_FIXED | interrupts;
	V->window_syscall_eip = CODE;
	V->nmi_pending = nmi;
	RUN(0xf4);
	return V->dead == VCPU_KILLED && strstr(V->dead_reason, "only processor");
}

static void lone_hlt_for_good(void)
{
	CU_ASSERT_TRUE(lone_hlt_kills(0, false));
	CU_ASSERT_FALSE(lone_hlt_kills(EFLAGS_IF, false));
	CU_ASSERT_FALSE(lone_hlt_kills(0, true));
}

static void flags_push(void)
{
	fake_reset();
	V->eflags = EFLAGS_FIXED | EFLAGS_IF | EFLAGS_ID | EFLAGS_RF | EFLAGS_IOPL;
	CU_ASSERT_EQUAL(RUN(MARKER, 0x9c), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 4);
	CU_ASSERT_EQUAL(ram32(V->gpr[ESP]), EFLAGS_FIXED | EFLAGS_IF | EFLAGS_ID | EFLAGS_IOPL);
	CU_ASSERT_EQUAL(V->eip, CODE + 3);
	CU_ASSERT_EQUAL(RUN(MARKER, 0x66, 0x9c), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 6);
	CU_ASSERT_EQUAL(ram16(V->gpr[ESP]), EFLAGS_FIXED | EFLAGS_IF | EFLAGS_IOPL);
	V->gpr[ESP] = 0x70000;
	set_pte(0x6f000, 0);
	/* and the fault cannot be pushed either: #DF, triple */
	CU_ASSERT_EQUAL(RUN(MARKER, 0x9c), VCPU_RAISED);
	CU_ASSERT_EQUAL(V->dead, VCPU_TRIPLE_FAULT);
}

/* Which bits may change: popf at CPL 0 here.  The rights of CPL 3 are in the same function; iret
 * tests them below. */
static void flags_pop(void)
{
	fake_reset();
	push32(0xffffffff);
	CU_ASSERT_EQUAL(RUN(MARKER, 0x9d), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eflags, 0xfd7 | EFLAGS_IOPL | EFLAGS_NT | EFLAGS_AC | EFLAGS_ID);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK);
	V->eflags = EFLAGS_FIXED | EFLAGS_ID;
	push32(0x00ff0000);
	CU_ASSERT_EQUAL(RUN(MARKER, 0x66, 0x9d), VCPU_DONE); /* 16 bits: the upper half stays */
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_ID);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 2);
	fake_reset();
	set_pte(KERNEL_STACK, 0);
	CHECK_FAULT(RUN(MARKER, 0x9d), VECTOR_PF, 0);
	CU_ASSERT_EQUAL(V->cr2, KERNEL_STACK);
}

/* ---- single steps: the trap comes behind the instruction that began with TF set */

static bool stepped(enum vcpu_result result, uint32_t to)
{
	bool yes = result == VCPU_RAISED && faulted(VECTOR_DB, -1, to) &&
		   V->dr[6] & DR6_SINGLE_STEP;

	fake_reset();
	V->eflags |= EFLAGS_TF;
	return yes;
}

static void single_steps(void)
{
	fake_reset();
	V->eflags |= EFLAGS_TF;
	CU_ASSERT_TRUE(stepped(RUN(MARKER, 0x9c), CODE + 3));
	CU_ASSERT_TRUE(stepped(RUN(0xfa), CODE + 1));
	push32(EFLAGS_FIXED);
	CU_ASSERT_TRUE(stepped(RUN(MARKER, 0x9d), CODE + 3)); /* which clears it */
	V->eflags &= ~(uint32_t)EFLAGS_TF;
	push32(EFLAGS_TF);
	CU_ASSERT_EQUAL(RUN(MARKER, 0x9d), VCPU_DONE); /* which sets it */
	CU_ASSERT_TRUE(V->eflags & EFLAGS_TF);
}

static void single_steps_without_trap(void)
{
	fake_reset();
	V->eflags |= EFLAGS_TF;
	CU_ASSERT_EQUAL(RUN(0xcd, 0x40), VCPU_DONE); /* the gate clears it */
	CU_ASSERT_TRUE(in_handler(0x40));
	CU_ASSERT_TRUE(frame(2) & EFLAGS_TF);
	CU_ASSERT_FALSE(V->eflags & EFLAGS_TF);
	fake_reset();
	V->eflags |= EFLAGS_TF;
	CU_ASSERT_EQUAL(RUN(0xfb), VCPU_DONE); /* in the shadows of sti and mov ss */
	V->gpr[EAX] = VMP_SEL_KERNEL_DS;
	CU_ASSERT_EQUAL(RUN(0x8e, 0xd0), VCPU_DONE);
	CU_ASSERT_TRUE(stepped(RUN(0xfb), CODE + 1)); /* interrupts were on: no shadow */
	CU_ASSERT_EQUAL(RUN(0xf4), VCPU_HALTED);
}

/* ---- what the host's trap flag would show in, or spoil ---- */

/* User code's next instruction, interrupts waiting for it. */
static bool by_hand(const uint8_t *code, unsigned bytes)
{
	memcpy(fake.ram + CODE, code, bytes);
	V->eip = CODE;
	V->interrupt_shadow = true;
	return vcpu_step_by_hand(V);
}
#define BY_HAND(...) \
	by_hand((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void steps_by_hand(void)
{
	fake_reset();
	fake_user();
	V->gpr[ESP] = USER_STACK;
	CU_ASSERT_TRUE(BY_HAND(0x9c));
	CU_ASSERT_EQUAL(ram32(USER_STACK - 4), EFLAGS_FIXED | EFLAGS_IF);
	CU_ASSERT_EQUAL(V->eip, CODE + 1);
	CU_ASSERT_FALSE(V->interrupt_shadow);
	CU_ASSERT_TRUE(BY_HAND(0x66, 0x9c));
	CU_ASSERT_EQUAL(V->gpr[ESP], USER_STACK - 6);
	push32(EFLAGS_FIXED | EFLAGS_CF | EFLAGS_TF | EFLAGS_IOPL);
	CU_ASSERT_TRUE(BY_HAND(0x9d));
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_IF | EFLAGS_CF | EFLAGS_TF);
	CU_ASSERT_TRUE(BY_HAND(0x9c)); /* under the program's own flag: its trap */
	CU_ASSERT_TRUE(faulted(VECTOR_DB, -1, CODE + 1));
	CU_ASSERT_TRUE(V->dr[6] & DR6_SINGLE_STEP);
	fake_reset();
	fake_user();
	push32(EFLAGS_FIXED | EFLAGS_ZF), push32(VMP_SEL_USER_CS), push32(0x12345);
	CU_ASSERT_TRUE(BY_HAND(0xcf));
	CU_ASSERT_EQUAL(V->eip, 0x12345);
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_IF | EFLAGS_ZF);
}

static void steps_by_the_host(void)
{
	fake_reset(); /* the kernel's are not native */
	CU_ASSERT_FALSE(BY_HAND(0x9c));
	fake_user();
	CU_ASSERT_FALSE(BY_HAND(0x90));
	CU_ASSERT_FALSE(BY_HAND(0xf0, 0x9c));
	CU_ASSERT_FALSE(BY_HAND(0x0f, 0x9c, 0xc0));
	CU_ASSERT_TRUE(V->interrupt_shadow);
	V->cr2 = 0x1234;
	set_pte(CODE, 0);
	CU_ASSERT_FALSE(BY_HAND(0x9c));
	CU_ASSERT_EQUAL(V->cr2, 0x1234);
	CU_ASSERT_EQUAL(V->eip, CODE);
}

/* ---- iret */

static void make_frame(uint32_t eip, uint32_t cs, uint32_t eflags, uint32_t esp, uint32_t ss)
{
	push32(ss);
	push32(esp);
	push32(eflags);
	push32(cs);
	push32(eip);
}

static void iret_same_level(void)
{
	fake_reset();
	make_frame(0x12345, VMP_SEL_KERNEL_CS, EFLAGS_IF | EFLAGS_CF | EFLAGS_RF, 0x999, 0x888);
	V->nmi_blocked = true;
	CU_ASSERT_EQUAL(RUN(0xcf), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x12345);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 8);
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_IF | EFLAGS_CF | EFLAGS_RF);
	CU_ASSERT_FALSE(V->nmi_blocked);
	CU_ASSERT_FALSE(V->interrupt_shadow);
	CU_ASSERT_EQUAL(V->cpl, 0);
}

static void iret_to_user(void)
{
	fake_reset();
	V->seg[SEG_DS] = VMP_SEL_USER_DS;
	V->seg[SEG_ES] = VMP_SEL_KERNEL_DS; /* of level 0: dropped */
	V->seg[SEG_FS] = VMP_SEL_PERCPU;
	V->seg[SEG_GS] = SEL_TSS; /* no data segment: dropped */
	make_frame(0x8048000, VMP_SEL_USER_CS, EFLAGS_IF | EFLAGS_ID, 0xbffff000, VMP_SEL_USER_DS);
	CU_ASSERT_EQUAL(RUN(0xcf), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x8048000);
	CU_ASSERT_EQUAL(V->cpl, 3);
	CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_USER_CS);
	CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_USER_DS);
	CU_ASSERT_EQUAL(V->gpr[ESP], 0xbffff000);
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_IF | EFLAGS_ID);
	CU_ASSERT_EQUAL(V->seg[SEG_DS], VMP_SEL_USER_DS);
	CU_ASSERT_EQUAL(V->seg[SEG_ES], 0);
	CU_ASSERT_EQUAL(V->seg[SEG_FS], VMP_SEL_PERCPU);
	CU_ASSERT_EQUAL(V->seg[SEG_GS], 0);
}

/* Each bad frame: the exception points at the iret, registers are as before, the frame is still
 * there. */
static void iret_bad_frames(void)
{
	static const struct { uint32_t cs, ss; unsigned vector; uint32_t error; } cases[] = {
		{ 0, VMP_SEL_USER_DS, VECTOR_GP, 0 },
		{ 3, VMP_SEL_USER_DS, VECTOR_GP, 0 },
		{ VMP_SEL_USER_CS & ~3, 0, VECTOR_GP, VMP_SEL_USER_CS & ~3 }, /* DPL 3 with RPL 0 */
		{ VMP_SEL_KERNEL_CS | 3, 0, VECTOR_GP, VMP_SEL_KERNEL_CS },
		{ VMP_SEL_KERNEL_CS | 1, 0, VECTOR_GP, VMP_SEL_KERNEL_CS },
		{ VMP_SEL_USER_DS, 0, VECTOR_GP, VMP_SEL_USER_DS & ~3 }, /* data */
		{ SEL_TSS, 0, VECTOR_GP, SEL_TSS },
		{ 0x23, VMP_SEL_USER_DS, VECTOR_GP, 0x20 }, /* the host's own */
		{ VMP_GDT_ENTRIES * 8 + 3, 0, VECTOR_GP, VMP_GDT_ENTRIES * 8 },
		{ GDT_ABSENT_CODE * 8, 0, VECTOR_NP, GDT_ABSENT_CODE * 8 },
		{ VMP_SEL_USER_CS, 0, VECTOR_GP, 0 },
		{ VMP_SEL_USER_CS, 3, VECTOR_GP, 0 },
		{ VMP_SEL_USER_CS, VMP_SEL_KERNEL_DS, VECTOR_GP, VMP_SEL_KERNEL_DS & ~3 },
		{ VMP_SEL_USER_CS, VMP_SEL_USER_DS & ~3, VECTOR_GP, VMP_SEL_USER_DS & ~3 },
		{ VMP_SEL_USER_CS, VMP_SEL_USER_CS, VECTOR_GP, VMP_SEL_USER_CS & ~3 },
		{ VMP_SEL_USER_CS, GDT_READ_ONLY * 8 + 3, VECTOR_GP, GDT_READ_ONLY * 8 },
		{ VMP_SEL_USER_CS, GDT_ABSENT * 8 + 3, VECTOR_SS, GDT_ABSENT * 8 },
		{ VMP_SEL_USER_CS, VMP_GDT_ENTRIES * 8 + 3, VECTOR_GP, VMP_GDT_ENTRIES * 8 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		make_frame(0x8048000, cases[n].cs, EFLAGS_IF, 0xbffff000, cases[n].ss);
		CHECK_FAULT(RUN(0xcf), cases[n].vector, cases[n].error);
		CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 20 - 16);
		CU_ASSERT_EQUAL(frame(2), VMP_SEL_KERNEL_CS);
		CU_ASSERT_EQUAL(frame(4), 0x8048000);
	}
}

static void iret_page_faults(void)
{
	/* esp0's page is another one, but the fault is taken at CPL 0 on this stack: only reads of
	 * the frame may fault */
	fake_reset();
	V->gpr[ESP] = 0x21000 - 12; /* EIP, CS, EFLAGS here; ESP, SS on the next page */
	set32(V->gpr[ESP], 0x8048000);
	set32(V->gpr[ESP] + 4, VMP_SEL_USER_CS);
	set32(V->gpr[ESP] + 8, EFLAGS_IF);
	set_pte(0x21000, 0);
	CHECK_FAULT(RUN(0xcf), VECTOR_PF, 0);
	CU_ASSERT_EQUAL(V->cr2, 0x21000);
	CU_ASSERT_EQUAL(frame(4), 0x8048000);
}

static void iret_modes(void)
{
	fake_reset();
	make_frame(0, VMP_SEL_USER_CS, EFLAGS_VM, 0, 0);
	RUN(0xcf);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	fake_reset();
	V->eflags |= EFLAGS_NT;
	make_frame(CODE, VMP_SEL_KERNEL_CS, 0, 0, 0);
	RUN(0xcf);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	fake_reset();
	make_frame(CODE, GDT_SMALL_CODE * 8, 0, 0, 0);
	RUN(0xcf);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
}

static void iret_user(void)
{
	fake_reset();
	fake_user();
	make_frame(0x12345, VMP_SEL_USER_CS, EFLAGS_IOPL | EFLAGS_CF | EFLAGS_VM, 0, 0);
	CU_ASSERT_EQUAL(RUN(0xcf), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x12345);
	/* neither IF, IOPL nor VM */
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_IF | EFLAGS_CF);
	CU_ASSERT_EQUAL(V->gpr[ESP], USER_STACK - 8);
	fake_reset();
	fake_user();
	make_frame(CODE, VMP_SEL_KERNEL_CS, 0, 0, 0); /* up? no */
	CHECK_FAULT(RUN(0xcf), VECTOR_GP, VMP_SEL_KERNEL_CS);
	fake_reset();
	fake_user();
	V->eflags |= EFLAGS_NT;
	CHECK_FAULT(RUN(0xcf), VECTOR_TS, 0);
	CU_ASSERT_EQUAL(V->dead, VCPU_ALIVE);
}

static void iret_16bit(void)
{
	fake_reset();
	V->eflags |= EFLAGS_ID;
	push32(EFLAGS_FIXED | EFLAGS_CF);
	push32(0x1234 | VMP_SEL_KERNEL_CS << 16);
	CU_ASSERT_EQUAL(RUN(0x66, 0xcf), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x1234);
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_ID | EFLAGS_CF);
}

/* ---- software interrupts */

static void software_interrupts(void)
{
	/* to VMP_STUB_SYSCALL */
	static const uint8_t stub_call[] = { 0x9a, 0x00, 0xd0, 0xff, 0xff, VMP_SEL_HOST64, 0x00 };

	fake_reset();
	fake_user();
	CU_ASSERT_EQUAL(RUN(0xcd, 0x80), VCPU_DONE);
	CU_ASSERT_TRUE(in_handler(0x80));
	CU_ASSERT_EQUAL(frame(0), CODE + 2);
	CU_ASSERT_TRUE(V->eflags & EFLAGS_IF); /* a trap gate */
	fake_reset();
	fake_user();
	RUN(0xcd, VMP_INT_SYSCALL); /* not the vDSO's: as on any processor */
	CU_ASSERT_TRUE(faulted(VECTOR_GP, VMP_INT_SYSCALL * 8 + 2, CODE));
	fake_reset();
	fake_user();
	memcpy(fake.ram + CODE - sizeof stub_call, stub_call, sizeof stub_call);
	RUN(0xcd, VMP_INT_SYSCALL);
	CU_ASSERT_TRUE(in_handler(0x80));
	fake_reset();
	fake_user();
	memcpy(fake.ram + CODE - sizeof stub_call, stub_call, sizeof stub_call);
	fake.ram[CODE - 1]++;
	RUN(0xcd, VMP_INT_SYSCALL);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, VMP_INT_SYSCALL * 8 + 2, CODE));
	fake.ram[CODE - 1] = 0;
	fake_reset();
	fake_user();
	RUN(0xcd, VMP_INT_MARKER); /* no right to markers or hypercalls */
	CU_ASSERT_TRUE(faulted(VECTOR_GP, VMP_INT_MARKER * 8 + 2, CODE));
	fake_reset();
	fake_user();
	RUN(0xcd, VMP_INT_HYPERCALL);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, VMP_INT_HYPERCALL * 8 + 2, CODE));
	fake_reset();
	fake_user();
	RUN(0xcd, VECTOR_PF);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, VECTOR_PF * 8 + 2, CODE));
	fake_reset();
	fake_user();
	RUN(0xcc);
	CU_ASSERT_TRUE(in_handler(VECTOR_BP));
	CU_ASSERT_EQUAL(frame(0), CODE + 1);
	fake_reset();
	RUN(0xcd, VECTOR_PF); /* kernel mode: any gate, no error code */
	CU_ASSERT_TRUE(in_handler(VECTOR_PF));
	CU_ASSERT_EQUAL(frame(0), CODE + 2);
}

static void into(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(RUN(0xce), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, CODE + 1);
	V->eflags |= EFLAGS_OF;
	RUN(0xce);
	CU_ASSERT_TRUE(in_handler(VECTOR_OF));
	CU_ASSERT_EQUAL(frame(0), CODE + 1);
}

/* ---- far transfers */

static void far_jumps(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(RUN(0xea, 0x78, 0x56, 0x34, 0x12, VMP_SEL_BOOT_CS, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x12345678);
	CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_BOOT_CS);
	fake_reset();
	set32(DATA, 0xabcdef00);
	set32(DATA + 4, VMP_SEL_BOOT_CS);
	CU_ASSERT_EQUAL(RUN(0xff, 0x2d, 0x00, 0x00, 0x04, 0x00), VCPU_DONE); /* ljmp *DATA */
	CU_ASSERT_EQUAL(V->eip, 0xabcdef00);
	fake_reset();
	CU_ASSERT_EQUAL(RUN(0x9a, 0x78, 0x56, 0x34, 0x12, VMP_SEL_BOOT_CS, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x12345678);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 8);
	CU_ASSERT_EQUAL(frame(0), CODE + 7);
	CU_ASSERT_EQUAL(frame(1), VMP_SEL_KERNEL_CS);
	CU_ASSERT_EQUAL(RUN(0xcb), VCPU_DONE); /* and back */
	CU_ASSERT_EQUAL(V->eip, CODE + 7);
	CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_KERNEL_CS);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK);
	/* lcall *DATA, null selector */
	CU_ASSERT_EQUAL(RUN(0xff, 0x1d, 0x00, 0x00, 0x04, 0x00), VCPU_RAISED);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, 0, CODE));
	fake_reset();
	/* 16-bit operands */
	CU_ASSERT_EQUAL(RUN(0x66, 0x9a, 0x34, 0x12, VMP_SEL_BOOT_CS, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x1234);
	CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 4);
	CU_ASSERT_EQUAL(frame(0), ((CODE + 6) & 0xffff) | VMP_SEL_KERNEL_CS << 16);
	RUN(0x66, 0xcb);
	CU_ASSERT_EQUAL(V->eip, (CODE + 6) & 0xffff);
}

static void far_jump_faults(void)
{
	static const struct { uint16_t selector; unsigned vector; uint32_t error; } cases[] = {
		{ 0, VECTOR_GP, 0 },
		{ VMP_SEL_KERNEL_DS, VECTOR_GP, VMP_SEL_KERNEL_DS & ~3 },
		{ VMP_SEL_USER_CS, VECTOR_GP, VMP_SEL_USER_CS & ~3 },
		{ VMP_SEL_KERNEL_CS | 3, VECTOR_GP, VMP_SEL_KERNEL_CS },
		{ GDT_ABSENT_CODE * 8, VECTOR_NP, GDT_ABSENT_CODE * 8 },
		{ VMP_GDT_ENTRIES * 8, VECTOR_GP, VMP_GDT_ENTRIES * 8 },
		{ SEL_LDT, VECTOR_GP, SEL_LDT },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		CHECK_FAULT(RUN(0xea, 0, 0, 0, 0, (uint8_t)cases[n].selector,
				(uint8_t)(cases[n].selector >> 8)),
			    cases[n].vector, cases[n].error);
	}
	fake_reset();
	RUN(0xea, 0, 0, 0, 0, GDT_CALL_GATE * 8, 0);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	fake_reset();
	RUN(0xea, 0, 0, 0, 0, SEL_TSS, 0);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	fake_reset();
	fake_user();
	CHECK_FAULT(RUN(0xea, 0, 0, 0, 0, SEL_TSS, 0), VECTOR_GP, SEL_TSS);
	fake_reset();
	fake_user();
	/* the host's 64-bit segment */
	CHECK_FAULT(RUN(0xea, 0, 0, 0, 0, 0x33, 0), VECTOR_GP, 0x30);
	fake_reset();
	fake_user();
	CHECK_FAULT(RUN(0x9a, 0, 0, 0, 0, VMP_SEL_KERNEL_CS, 0), VECTOR_GP, VMP_SEL_KERNEL_CS);
	fake_reset();
	fake_user();
	set_pte(USER_STACK - 1, 0);
	CHECK_FAULT(RUN(0x9a, 0, 0, 0, 0, VMP_SEL_USER_CS, 0), VECTOR_PF, PF_WRITE | PF_USER);
	CU_ASSERT_EQUAL(frame(4), USER_STACK);
}

static void far_return_outer(void)
{
	fake_reset();
	push32(VMP_SEL_USER_DS);
	push32(USER_STACK);
	push32(0x77777777); /* one parameter, released on both stacks */
	push32(VMP_SEL_USER_CS);
	push32(0x8048000);
	CU_ASSERT_EQUAL(RUN(0xca, 4, 0), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, 0x8048000);
	CU_ASSERT_EQUAL(V->cpl, 3);
	CU_ASSERT_EQUAL(V->gpr[ESP], USER_STACK + 4);
	CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_USER_DS);
	push32(VMP_SEL_KERNEL_CS);
	push32(0);
	CHECK_FAULT(RUN(0xcb), VECTOR_GP, VMP_SEL_KERNEL_CS);
}

/* ---- segment registers */

static void segment_stores(void)
{
	fake_reset();
	V->gpr[EAX] = 0xffffffff;
	CU_ASSERT_EQUAL(RUN(MARKER, 0x8c, 0xc8), VCPU_DONE); /* mov %cs, %eax */
	CU_ASSERT_EQUAL(V->gpr[EAX], VMP_SEL_KERNEL_CS);
	V->gpr[EAX] = 0xffffffff;
	RUN(MARKER, 0x66, 0x8c, 0xd8); /* mov %ds, %ax */
	CU_ASSERT_EQUAL(V->gpr[EAX], 0xffff0000 | VMP_SEL_KERNEL_DS);
	set32(DATA, 0xffffffff);
	RUN(MARKER, 0x8c, 0x25, 0x00, 0x00, 0x04, 0x00); /* mov %fs, DATA */
	CU_ASSERT_EQUAL(ram32(DATA), 0xffff0000 | VMP_SEL_PERCPU);
	CHECK_FAULT(RUN(MARKER, 0x8c, 0xf0), VECTOR_UD, -1); /* there is no segment 6 */
	fake_reset();
	set_pte(DATA, DATA | P);
	CHECK_FAULT(RUN(MARKER, 0x8c, 0x25, 0x00, 0x00, 0x04, 0x00), VECTOR_PF,
		    PF_PRESENT | PF_WRITE);
}

static void segment_pushes(void)
{
	static const struct { uint8_t code[2]; unsigned bytes; enum vcpu_seg segment;
	} pushes[] = {
		{ { 0x06 }, 1, SEG_ES },       { { 0x0e }, 1, SEG_CS },
		{ { 0x16 }, 1, SEG_SS },       { { 0x1e }, 1, SEG_DS },
		{ { 0x0f, 0xa0 }, 2, SEG_FS }, { { 0x0f, 0xa8 }, 2, SEG_GS },
	};

	for (unsigned n = 0; n < ARRAY_LEN(pushes); n++) {
		uint8_t code[4] = { MARKER, pushes[n].code[0], pushes[n].code[1] };

		fake_reset();
		V->seg[SEG_GS] = 0x63;
		set32(KERNEL_STACK - 4, 0xffffffff);
		CU_ASSERT_EQUAL(fake_run_at(CODE, code, sizeof code), VCPU_DONE);
		CU_ASSERT_EQUAL(V->eip, CODE + 2 + pushes[n].bytes);
		CU_ASSERT_EQUAL(ram32(KERNEL_STACK - 4), V->seg[pushes[n].segment]);
		CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 4);
	}
}

static void segment_pops(void)
{
	static const struct { uint8_t code[2]; enum vcpu_seg segment; } pops[] = {
		{ { 0x07, 0x90 }, SEG_ES }, { { 0x17, 0x90 }, SEG_SS }, { { 0x1f, 0x90 }, SEG_DS },
		{ { 0x0f, 0xa1 }, SEG_FS }, { { 0x0f, 0xa9 }, SEG_GS },
	};

	for (unsigned n = 0; n < ARRAY_LEN(pops); n++) {
		fake_reset();
		push32(VMP_SEL_USER_DS);
		CU_ASSERT_EQUAL(fake_run_at(CODE, pops[n].code, 2), VCPU_DONE);
		CU_ASSERT_EQUAL(V->seg[pops[n].segment], VMP_SEL_USER_DS);
		CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK);
		CU_ASSERT_EQUAL(V->interrupt_shadow, pops[n].segment == SEG_SS);
		push32(SEL_TSS);
		CHECK_FAULT(fake_run_at(CODE, pops[n].code, 2), VECTOR_GP, SEL_TSS);
		CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK - 4 - 16); /* not popped */
	}
}

/* Selector against register and level: returns the vector, or -1. */
static void segment_loads(void)
{
	static const struct { uint16_t selector; int ds0, ds3, ss0, ss3; } cases[] = {
		{ 0, -1, -1, VECTOR_GP, VECTOR_GP },
		{ 3, -1, -1, VECTOR_GP, VECTOR_GP },
		{ VMP_SEL_KERNEL_DS, -1, VECTOR_GP, -1, VECTOR_GP },
		{ VMP_SEL_USER_DS, -1, -1, -1, -1 },
		{ VMP_SEL_USER_DS & ~3, -1, -1, -1, VECTOR_GP },
		{ VMP_SEL_USER_CS, -1, -1, VECTOR_GP, VECTOR_GP },
		{ GDT_CODE_EXECUTE_ONLY * 8 + 3, VECTOR_GP, VECTOR_GP, VECTOR_GP, VECTOR_GP },
		{ GDT_READ_ONLY * 8 + 3, -1, -1, VECTOR_GP, VECTOR_GP },
		{ GDT_CONFORMING * 8 + 3, -1, -1, VECTOR_GP, VECTOR_GP },
		{ GDT_ABSENT * 8 + 3, VECTOR_NP, VECTOR_NP, VECTOR_SS, VECTOR_SS },
		{ SEL_TSS, VECTOR_GP, VECTOR_GP, VECTOR_GP, VECTOR_GP },
		{ VMP_GDT_ENTRIES * 8 + 3, VECTOR_GP, VECTOR_GP, VECTOR_GP, VECTOR_GP },
	};

	for (unsigned n = 0; n < 4 * ARRAY_LEN(cases); n++) {
		bool user = n & 1, stack = n & 2;
		int expect = stack  ? (user ? cases[n / 4].ss3 : cases[n / 4].ss0)
			     : user ? cases[n / 4].ds3
				    : cases[n / 4].ds0;
		uint16_t selector = cases[n / 4].selector;

		fake_reset();
		if (user)
			fake_user();
		V->gpr[EAX] = selector;
		if (expect >= 0) {
			CHECK_FAULT(RUN(0x8e, (uint8_t)(stack ? 0xd0 : 0xd8)), (unsigned)expect,
				    selector < 4 ? 0 : selector & ~3);
			continue;
		}
		CU_ASSERT_EQUAL(RUN(0x8e, (uint8_t)(stack ? 0xd0 : 0xd8)), VCPU_DONE);
		CU_ASSERT_EQUAL(V->seg[stack ? SEG_SS : SEG_DS], selector);
		CU_ASSERT_EQUAL(V->interrupt_shadow, stack);
	}
	fake_reset();
	CHECK_FAULT(RUN(0x8e, 0xc8), VECTOR_UD, -1); /* mov %eax, %cs */
	fake_reset();
	CHECK_FAULT(RUN(0x8e, 0xf8), VECTOR_UD, -1);
}

static void segment_load_faults(void)
{
	fake_reset();
	set_pte(DATA, 0);
	CHECK_FAULT(RUN(0x8e, 0x1d, 0x00, 0x00, 0x04, 0x00), VECTOR_PF, 0); /* mov DATA, %ds */
	fake_reset();
	/* the table itself is away: the handler's segment too */
	V->gdtr = (struct vcpu_table){ DATA, 0xff };
	set_pte(DATA, 0);
	V->gpr[EAX] = VMP_SEL_USER_DS;
	RUN(0x8e, 0xd8);
	CU_ASSERT_EQUAL(V->dead, VCPU_TRIPLE_FAULT);
}

static void far_pointers(void)
{
	static const struct { uint8_t code[7]; unsigned bytes; enum vcpu_seg segment;
	} loads[] = {
		{ { 0xc4, 0x05, 0x00, 0x00, 0x04, 0x00 }, 6, SEG_ES },
		{ { 0xc5, 0x05, 0x00, 0x00, 0x04, 0x00 }, 6, SEG_DS },
		{ { 0x0f, 0xb2, 0x05, 0x00, 0x00, 0x04, 0x00 }, 7, SEG_SS },
		{ { 0x0f, 0xb4, 0x05, 0x00, 0x00, 0x04, 0x00 }, 7, SEG_FS },
		{ { 0x0f, 0xb5, 0x05, 0x00, 0x00, 0x04, 0x00 }, 7, SEG_GS },
	};

	for (unsigned n = 0; n < ARRAY_LEN(loads); n++) {
		fake_reset();
		set32(DATA, 0x87654321);
		set32(DATA + 4, VMP_SEL_USER_DS);
		CU_ASSERT_EQUAL(fake_run_at(CODE, loads[n].code, loads[n].bytes), VCPU_DONE);
		CU_ASSERT_EQUAL(V->gpr[EAX], 0x87654321);
		CU_ASSERT_EQUAL(V->seg[loads[n].segment], VMP_SEL_USER_DS);
		CU_ASSERT_EQUAL(V->eip, CODE + loads[n].bytes);
		set32(DATA + 4, SEL_TSS);
		V->gpr[EAX] = 5;
		V->seg[SEG_DS] = VMP_SEL_KERNEL_DS;
		CHECK_FAULT(fake_run_at(CODE, loads[n].code, loads[n].bytes), VECTOR_GP, SEL_TSS);
		CU_ASSERT_EQUAL(V->gpr[EAX], 5);
	}
	fake_reset();
	/* a register operand: #UD by the host */
	CU_ASSERT_EQUAL(RUN(0x0f, 0xb2, 0xc0), VCPU_NOT_MINE);
}

static void pause_yields(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(RUN(MARKER, 0xf3, 0x90), VCPU_DONE);
	CU_ASSERT_EQUAL(fake.yields, 1);
	CU_ASSERT_EQUAL(V->eip, CODE + 4);
}

/* ---- decoding */

static void decode_operand_forms(void)
{
	/* sidt to each form of memory operand; the IDT register is a recognisable value. */
	static const struct { uint8_t code[12]; unsigned bytes; uint32_t at; } forms[] = {
		{ { 0x0f, 0x01, 0x0b }, 3, 0x40100 },			      /* (%ebx) */
		{ { 0x0f, 0x01, 0x4b, 0x10 }, 4, 0x40110 },		      /* 16(%ebx) */
		{ { 0x0f, 0x01, 0x4b, 0xf0 }, 4, 0x400f0 },		      /* -16(%ebx) */
		{ { 0x0f, 0x01, 0x8b, 0, 1, 0, 0 }, 7, 0x40200 },	      /* 256(%ebx) */
		{ { 0x0f, 0x01, 0x4d, 0x20 }, 4, 0x40320 },		      /* 32(%ebp) */
		{ { 0x0f, 0x01, 0x0c, 0x24 }, 4, 0x40400 },		      /* (%esp) */
		{ { 0x0f, 0x01, 0x0c, 0x73 }, 4, 0x40120 },		      /* (%ebx,%esi,2) */
		{ { 0x0f, 0x01, 0x4c, 0xb3, 8 }, 5, 0x40148 },		      /* 8(%ebx,%esi,4) */
		{ { 0x0f, 0x01, 0x0c, 0xf5, 0, 0, 4, 0 }, 8, 0x40080 },	      /* DATA(,%esi,8) */
		{ { 0x0f, 0x01, 0x8c, 0x35, 0, 1, 0, 0 }, 8, 0x40410 },	      /* 256(%ebp,%esi) */
		{ { 0x0f, 0x01, 0x0d, 0, 5, 4, 0 }, 7, 0x40500 },	      /* absolute */
		/* %gs: based at 0x1234 */
		{ { 0x65, 0x0f, 0x01, 0x0d, 0xcc, 0xed, 3, 0 }, 8, 0x40000 },
		{ { 0x67, 0x0f, 0x01, 0x0e, 0, 0x60 }, 6, 0x6000 },	      /* 16-bit address */
		{ { 0x67, 0x0f, 0x01, 0x4c, 0x10 }, 5, 0x6010 + 0x10 },	      /* 16(%si) ... */
	};

	for (unsigned n = 0; n < ARRAY_LEN(forms); n++) {
		fake_reset();
		V->seg[SEG_GS] = GDT_BASED_DATA * 8 + 3;
		V->gpr[EBX] = 0x40100;
		V->gpr[ESI] = n == ARRAY_LEN(forms) - 1 ? 0x6010 : 0x10;
		V->gpr[EBP] = 0x40300;
		V->gpr[ESP] = 0x40400;
		CU_ASSERT_EQUAL(fake_run_at(CODE, forms[n].code, forms[n].bytes), VCPU_DONE);
		CU_ASSERT_EQUAL(V->eip, CODE + forms[n].bytes);
		CU_ASSERT_EQUAL(ram16(forms[n].at), 0x7ff);
		CU_ASSERT_EQUAL(ram32(forms[n].at + 2), IDT);
	}
}

static void decode_null_segment(void)
{
	fake_reset();
	V->seg[SEG_DS] = 0;
	CHECK_FAULT(RUN(0x0f, 0x01, 0x0d, 0, 0, 4, 0), VECTOR_GP, 0);
	fake_reset();
	V->seg[SEG_DS] = 0;
	CU_ASSERT_EQUAL(RUN(0x36, 0x0f, 0x01, 0x0d, 0, 0, 4, 0), VCPU_DONE); /* %ss: */
	CU_ASSERT_EQUAL(RUN(0x2e, 0x0f, 0x01, 0x0d, 0, 0, 4, 0), VCPU_DONE); /* %cs: */
}

static void decode_across_pages(void)
{
	uint32_t end = CODE + PAGE_BYTES;

	for (uint32_t before = 1; before <= 6; before++) {
		fake_reset();
		V->idtr.base = 0x1000000; /* marks success */
		set32(DATA, 0x7ff | (IDT & 0xffff) << 16);
		set32(DATA + 4, IDT >> 16);
		CU_ASSERT_EQUAL(RUN_AT(end - before, 0x0f, 0x01, 0x1d, 0x00, 0x00, 0x04, 0x00),
				VCPU_DONE);
		CU_ASSERT_EQUAL(V->idtr.base, IDT);
		set_pte(end, 0);
		CU_ASSERT_EQUAL(RUN_AT(end - before, 0x0f, 0x01, 0x1d, 0x00, 0x00, 0x04, 0x00),
				VCPU_RAISED);
		CU_ASSERT_TRUE(faulted(VECTOR_PF, 0, end - before));
		CU_ASSERT_EQUAL(V->cr2, end);
	}
	fake_reset();
	set_pte(end, 0);
	CU_ASSERT_EQUAL(RUN_AT(end - 1, 0xfa), VCPU_DONE); /* does not reach into the next page */
	fake_reset();
	CU_ASSERT_EQUAL(RUN_AT(end - 1, MARKER, 0xfa), VCPU_DONE); /* a marker does */
	fake_reset();
	V->eip = 0x70000000;
	set32(PAGE_DIR + (0x70000000 >> 22) * 4, 0);
	CU_ASSERT_EQUAL(vcpu_emulate(V), VCPU_RAISED);
	CU_ASSERT_EQUAL(V->cr2, 0x70000000);
}

static void decode_too_long(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(RUN(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
			    0x66, 0x66, 0xfa),
			VCPU_DONE);
	CHECK_FAULT(RUN(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
			0x66, 0x66, 0x66, 0xfa),
		    VECTOR_GP, 0);
}

static void marker_faults_point_at_marker(void)
{
	fake_reset();
	set_pte(DATA, 0);
	CHECK_FAULT(RUN(MARKER, 0x0f, 0x01, 0x0d, 0, 0, 4, 0), VECTOR_PF, PF_WRITE);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(flags_cli_sti),
		UNIT_TEST(sti_hlt),
		UNIT_TEST(hlt_for_good), UNIT_TEST(lone_hlt_for_good),
		UNIT_TEST(flags_push),
		UNIT_TEST(flags_pop),
		UNIT_TEST(single_steps),
		UNIT_TEST(single_steps_without_trap),
		UNIT_TEST(steps_by_hand),
		UNIT_TEST(steps_by_the_host),
		UNIT_TEST(iret_same_level),
		UNIT_TEST(iret_to_user),
		UNIT_TEST(iret_bad_frames),
		UNIT_TEST(iret_page_faults),
		UNIT_TEST(iret_modes),
		UNIT_TEST(iret_user),
		UNIT_TEST(iret_16bit),
		UNIT_TEST(software_interrupts),
		UNIT_TEST(into),
		UNIT_TEST(far_jumps),
		UNIT_TEST(far_jump_faults),
		UNIT_TEST(far_return_outer),
		UNIT_TEST(segment_stores),
		UNIT_TEST(segment_pushes),
		UNIT_TEST(segment_pops),
		UNIT_TEST(segment_loads),
		UNIT_TEST(segment_load_faults),
		UNIT_TEST(far_pointers),
		UNIT_TEST(pause_yields),
		UNIT_TEST(decode_operand_forms),
		UNIT_TEST(decode_null_segment),
		UNIT_TEST(decode_across_pages),
		UNIT_TEST(decode_too_long),
		UNIT_TEST(marker_faults_point_at_marker),
		UNIT_END
	};
	return UNIT_RUN("vcpu control transfers", tests);
}
