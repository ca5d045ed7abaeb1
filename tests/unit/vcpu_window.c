/* vcpu_window.c - the CPU window: the contents of its data page, and a guest that is stopped at
 * every place of its code page. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vcpu/window.h"

#define V (&fake.v)

extern const char window_syscall_flags[], window_syscall_end[], window_iret_marked[],
	window_iret_slow[];
enum { USER_EIP = 0x12345, USER_FLAGS = EFLAGS_CF | EFLAGS_FIXED };

static uint32_t at(const char *label) { return VMP_STUB_SYSCALL + (uint32_t)(label - window_code); }

static void fits(void)
{
	CU_ASSERT_TRUE(window_code_end - window_code < PAGE_BYTES);
	CU_ASSERT_TRUE(at(window_syscall_end) <= VMP_STUB_IRET);
	CU_ASSERT_TRUE(window_holds(VMP_STUB_SYSCALL));
	CU_ASSERT_TRUE(window_holds(VMP_STUB_SYSCALL + PAGE_BYTES - 1));
	CU_ASSERT_FALSE(window_holds(VMP_STUB_SYSCALL - 1));
	CU_ASSERT_FALSE(window_holds(0xffffffffffffd000));
}

static void flag_and_cr2(void)
{
	struct cpu_window w = { 0 };

	fake_reset();
	V->cr2 = 0x5678;
	V->eflags |= EFLAGS_IF;
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_EQUAL(w.iflag, EFLAGS_IF);
	CU_ASSERT_EQUAL(w.cr2, 0x5678);
	CU_ASSERT_EQUAL(w.spins, 7);
	CU_ASSERT_EQUAL(w.host, 3);
	CU_ASSERT_FALSE(w.pending);
	w.iflag = 0xffffffff & ~EFLAGS_IF; /* whatever else the guest writes there */
	window_close(&w, V);
	CU_ASSERT_FALSE(V->eflags & EFLAGS_IF);
	CU_ASSERT_FALSE(V->eflags & EFLAGS_IOPL);
	CU_ASSERT_FALSE(w.slow_return);
	V->nmi_blocked = true; /* iret must come to us */
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_TRUE(w.slow_return && !w.pending);
	V->nmi_blocked = false;
	V->eflags |= EFLAGS_IOPL; /* the host would not take it away */
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_TRUE(w.slow_return && !w.pending);
}

/* Whatever a program has written, each word that is read is as the engine has it. */
static void every_word_is_written(void)
{
	struct cpu_window w, again;

	fake_reset();
	memset(&w, 0, sizeof w);
	memset(&again, 0xff, sizeof again);
	window_open(&w, V, 0x1234567890, 7, 3);
	window_open(&again, V, 0x1234567890, 7, 3);
	CU_ASSERT_EQUAL(w.gate, 0x1234567890);
	CU_ASSERT(w.iflag == again.iflag && w.pending == again.pending && w.cr2 == again.cr2 &&
		  w.sp0 == again.sp0);
	CU_ASSERT(w.syscall_eip == again.syscall_eip && w.syscall_cs == again.syscall_cs &&
		  w.eoi == again.eoi);
	CU_ASSERT(w.slow_return == again.slow_return && w.gate == again.gate &&
		  w.spins == again.spins && w.host == again.host);
}

/* A user in strict mode: whatever it writes into the window, and wherever in it it runs. */
static void restricted(void)
{
	struct cpu_window w = { 0 };

	fake_reset();
	V->window_syscall_cs = VMP_SEL_KERNEL_CS;
	window_open(&w, V, 0x1234567890, 7, 3);
	window_restrict(&w, V);
	/* the guest kernel still has its entry */
	CU_ASSERT(w.slow_return && w.syscall_cs == VMP_SEL_KERNEL_CS);
	fake_user();
	apic_write(V, 0xf0, 0x1ff);
	apic_post(&V->apic, 0x50);
	apic_accept(&V->apic, 0x50);
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT(w.eoi && V->eoi_offered);
	window_restrict(&w, V);
	CU_ASSERT(w.slow_return && !w.syscall_cs && !w.eoi && !V->eoi_offered);
	CU_ASSERT_TRUE(window_holds_syscall(VMP_STUB_SYSCALL));
	CU_ASSERT_FALSE(window_holds_syscall(VMP_STUB_IRET));
	CU_ASSERT_FALSE(window_holds_syscall(VMP_STUB_SYSCALL - 1));
	CU_ASSERT_FALSE(window_holds_syscall(VMP_STUB_SYSCALL + PAGE_BYTES));
}

static void end_of_interrupt(void)
{
	struct cpu_window w = { 0 };

	fake_reset();
	apic_write(V, 0xf0, 0x1ff);
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_FALSE(w.eoi); /* none in service */
	apic_post(&V->apic, 0x50);
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_TRUE(w.pending && w.slow_return);
	CU_ASSERT_FALSE(w.eoi);
	apic_accept(&V->apic, 0x50);
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_TRUE(w.eoi);
	window_close(&w, V); /* not signalled yet */
	CU_ASSERT_TRUE(apic_end_unwatched(&V->apic));
	window_open(&w, V, 0x1234567890, 7, 3);
	w.eoi = 0;
	window_close(&w, V);
	CU_ASSERT_FALSE(apic_end_unwatched(&V->apic));
	apic_post(&V->apic, 0x50);
	apic_accept(&V->apic, 0x50);
	apic_post(&V->apic, 0x40); /* waits for the end: it must be signalled aloud */
	window_open(&w, V, 0x1234567890, 7, 3);
	CU_ASSERT_FALSE(w.eoi);
	window_close(&w, V);
	CU_ASSERT_EQUAL(apic_highest(&V->apic), -1);
}

/* Wherever it is stopped, the system call happens once, with the user's registers as they were. */
static void syscall_anywhere(void)
{
	for (uint32_t rip = VMP_STUB_SYSCALL; rip < at(window_syscall_end); rip++) {
		bool late = rip >= at(window_syscall_flags);
		struct window_stop stop = { .rip = rip,
					    .esp = rip == VMP_STUB_SYSCALL ? USER_STACK - 8
									   : ENTRY_STACK - 20,
					    .r8 = rip == VMP_STUB_SYSCALL ? 0 : USER_STACK - 8,
					    .r10 = late ? USER_FLAGS | EFLAGS_IF : 0,
					    .eflags = late ? EFLAGS_ZF : USER_FLAGS };

		fake_reset();
		set_gate(0x80, VMP_SEL_KERNEL_CS, HANDLERS + 16 * 0x80, GATE_INTERRUPT | GATE_USER);
		set32(USER_STACK - 8, USER_EIP - 2);
		set32(USER_STACK - 4, VMP_SEL_USER_CS);
		V->gpr[EAX] = 20;
		CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_SYSCALL);
		CU_ASSERT_TRUE(in_handler(0x80));
		CU_ASSERT_EQUAL(V->cpl, 0);
		CU_ASSERT_EQUAL(frame(0), USER_EIP);
		CU_ASSERT_EQUAL(frame(1), VMP_SEL_USER_CS);
		CU_ASSERT_EQUAL(frame(2), USER_FLAGS | EFLAGS_IF);
		CU_ASSERT_EQUAL(frame(3), USER_STACK);
		CU_ASSERT_EQUAL(frame(4), VMP_SEL_USER_DS);
		CU_ASSERT_EQUAL(V->gpr[EAX], 20);
	}
}

/* With the window's own entry, as its code enters the kernel; but with flags that a gate would
 * clear, or without that entry, by the gate. */
static void syscall_by_the_window(void)
{
	enum { ENTRY = 0x3000, STACK = ENTRY_STACK - 0x100 };
	static const struct { uint32_t cs, flags; bool by_gate; } row[] = {
		{ VMP_SEL_KERNEL_CS | 3, USER_FLAGS, false },
		{ VMP_SEL_KERNEL_CS, USER_FLAGS, false },
		{ 0, USER_FLAGS, true },
		{ VMP_SEL_USER_CS, USER_FLAGS, true },
		{ VMP_SEL_KERNEL_CS, USER_FLAGS | EFLAGS_TF, true },
		{ VMP_SEL_KERNEL_CS, USER_FLAGS | EFLAGS_NT, true },
		{ VMP_SEL_KERNEL_CS, USER_FLAGS | EFLAGS_AC, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		struct window_stop stop = { .rip = VMP_STUB_SYSCALL,
					    .esp = USER_STACK - 8,
					    .eflags = row[i].flags };

		fake_reset();
		set_gate(0x80, VMP_SEL_KERNEL_CS, HANDLERS + 16 * 0x80, GATE_INTERRUPT | GATE_USER);
		set32(USER_STACK - 8, USER_EIP - 2);
		V->window_sp0 = STACK;
		V->window_syscall_eip = ENTRY;
		V->window_syscall_cs = row[i].cs;
		CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_SYSCALL);
		CU_ASSERT_EQUAL(in_handler(0x80), row[i].by_gate);
		CU_ASSERT_EQUAL(V->eip == ENTRY, !row[i].by_gate);
		CU_ASSERT_EQUAL(V->gpr[ESP], (row[i].by_gate ? ENTRY_STACK : STACK) - 20);
		CU_ASSERT_EQUAL(V->cpl, 0);
		CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_KERNEL_CS);
		CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_KERNEL_DS);
		CU_ASSERT_FALSE(V->eflags & (EFLAGS_IF | EFLAGS_TF | EFLAGS_NT));
		CU_ASSERT_EQUAL(frame(0), USER_EIP);
		CU_ASSERT_EQUAL(frame(1), VMP_SEL_USER_CS);
		CU_ASSERT_EQUAL(frame(2), row[i].flags | EFLAGS_IF);
		CU_ASSERT_EQUAL(frame(3), USER_STACK);
		CU_ASSERT_EQUAL(frame(4), VMP_SEL_USER_DS);
	}
}

/* Its stack is not there: the gate's is. */
static void syscall_without_entry_stack(void)
{
	struct window_stop stop = { VMP_STUB_SYSCALL, USER_STACK - 8, 0, 0, USER_FLAGS };

	fake_reset();
	set_gate(0x80, VMP_SEL_KERNEL_CS, HANDLERS + 16 * 0x80, GATE_INTERRUPT | GATE_USER);
	set32(USER_STACK - 8, USER_EIP - 2);
	V->cr2 = 0x1234;
	V->window_sp0 = 0xfffff000;
	V->window_syscall_cs = VMP_SEL_KERNEL_CS;
	CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_SYSCALL);
	CU_ASSERT_TRUE(in_handler(0x80));
	CU_ASSERT_EQUAL(V->cr2, 0x1234);
}

/* The user's stack was unmapped meanwhile: a page fault of the user. */
static void syscall_without_stack(void)
{
	struct window_stop stop = { .rip = at(window_syscall_flags),
				    .r8 = USER_STACK - 8,
				    .r10 = USER_FLAGS };

	fake_reset();
	set_pte(USER_STACK - 8, 0);
	CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_SYSCALL);
	CU_ASSERT_TRUE(in_handler(VECTOR_PF));
	CU_ASSERT_EQUAL(frame(1), VMP_STUB_SYSCALL);
	CU_ASSERT_EQUAL(V->cr2, USER_STACK - 8);
}

static void iret_anywhere(void)
{
	for (uint32_t rip = VMP_STUB_IRET; rip < VMP_STUB_HYPERCALL; rip++) {
		bool marked = rip >= at(window_iret_marked) && rip < at(window_iret_slow);
		struct window_stop stop = { .rip = rip, .esp = KERNEL_STACK - 12 };

		fake_reset();
		V->gpr[ESP] = KERNEL_STACK - 12;
		V->eflags |= EFLAGS_IF; /* the stub had set it */
		set32(KERNEL_STACK - 12, CODE);
		set32(KERNEL_STACK - 8, VMP_SEL_KERNEL_CS | (marked ? 3 : 0));
		set32(KERNEL_STACK - 4, EFLAGS_FIXED | EFLAGS_IF);
		CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_IRET);
		CU_ASSERT_EQUAL(V->eip, VMP_STUB_IRET);
		CU_ASSERT_EQUAL(V->cpl, 0);
		CU_ASSERT_FALSE(V->eflags & EFLAGS_IF);
		CU_ASSERT_EQUAL(ram32(KERNEL_STACK - 8), VMP_SEL_KERNEL_CS);
		CU_ASSERT_EQUAL(vcpu_iret(V), VCPU_DONE);
		CU_ASSERT_EQUAL(V->eip, CODE);
		CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK);
		CU_ASSERT_TRUE(V->eflags & EFLAGS_IF);
	}
}

static void prepare_return(uint32_t cs, uint32_t flags, uint32_t ss)
{
	fake_reset();
	V->cr2 = 0x1234;
	V->eflags = EFLAGS_FIXED | EFLAGS_SF;
	V->gpr[ESP] = KERNEL_STACK - 20;
	set32(KERNEL_STACK - 20, USER_EIP);
	set32(KERNEL_STACK - 16, cs);
	set32(KERNEL_STACK - 12, flags);
	set32(KERNEL_STACK - 8, USER_STACK);
	set32(KERNEL_STACK - 4, ss);
}

/* A plain return to the user, and all that the emulated iret has to do. */
static void returns(void)
{
	enum { PLAIN = EFLAGS_FIXED | EFLAGS_IF | EFLAGS_CF };
	static const struct { uint32_t cs, flags, ss; bool returns; } row[] = {
		{ VMP_SEL_USER_CS, PLAIN, VMP_SEL_USER_DS, true },
		{ VMP_SEL_USER_CS, PLAIN | EFLAGS_AC | EFLAGS_RF, VMP_SEL_USER_DS, true },
		{ VMP_SEL_USER_CS, PLAIN | EFLAGS_TF, VMP_SEL_USER_DS, false },
		{ VMP_SEL_USER_CS, PLAIN | EFLAGS_NT, VMP_SEL_USER_DS, false },
		{ VMP_SEL_USER_CS, PLAIN | EFLAGS_VM, VMP_SEL_USER_DS, false },
		{ VMP_SEL_USER_CS, PLAIN | 0x1000, VMP_SEL_USER_DS, false },
		{ VMP_SEL_USER_CS, EFLAGS_FIXED, VMP_SEL_USER_DS, false },
		{ VMP_SEL_KERNEL_CS, PLAIN, VMP_SEL_USER_DS, false },
		{ VMP_SEL_USER_CS, PLAIN, VMP_SEL_KERNEL_DS, false },
		{ 0, PLAIN, VMP_SEL_USER_DS, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		struct vcpu before;

		prepare_return(row[i].cs, row[i].flags, row[i].ss);
		before = *V;
		CU_ASSERT_EQUAL(window_return(V), row[i].returns);
		if (!row[i].returns) {
			CU_ASSERT_EQUAL(memcmp(&before, V, sizeof before), 0);
			continue;
		}
		CU_ASSERT_EQUAL(V->cpl, 3);
		CU_ASSERT_EQUAL(V->eip, USER_EIP);
		CU_ASSERT_EQUAL(V->gpr[ESP], USER_STACK);
		CU_ASSERT_EQUAL(V->eflags, row[i].flags);
		CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_USER_CS);
		CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_USER_DS);
	}
	prepare_return(VMP_SEL_USER_CS, PLAIN, VMP_SEL_USER_DS);
	V->nmi_blocked = true;
	CU_ASSERT_FALSE(window_return(V));
	prepare_return(VMP_SEL_USER_CS, PLAIN, VMP_SEL_USER_DS);
	V->eflags |= EFLAGS_TF;
	CU_ASSERT_FALSE(window_return(V));
	prepare_return(VMP_SEL_USER_CS, PLAIN, VMP_SEL_USER_DS);
	set_pte(KERNEL_STACK - 20, 0);
	CU_ASSERT_FALSE(window_return(V));
	CU_ASSERT_EQUAL(V->cr2, 0x1234);
}

static void iret_fails_at_the_stub(void)
{
	fake_reset();
	V->gpr[ESP] = KERNEL_STACK - 12;
	V->eip = VMP_STUB_IRET;
	set32(KERNEL_STACK - 8, 0); /* a null CS */
	CU_ASSERT_EQUAL(vcpu_iret(V), VCPU_RAISED);
	CU_ASSERT_TRUE(faulted(VECTOR_GP, 0, VMP_STUB_IRET));
}

/* Wherever it is stopped, a hypercall happens once, as if it had been an int.  At the trap, r8 says
 * that it was one. */
static void hypercall_anywhere(void)
{
	for (uint32_t rip = VMP_STUB_HYPERCALL; rip < at(window_code_end); rip++) {
		struct window_stop stop = { .rip = rip,
					    .esp = KERNEL_STACK - 4,
					    .r8 = VMP_STUB_HYPERCALL };

		fake_reset();
		/* as at the last stop: the kernel may have been entered through the window */
		V->cpl = 3;
		V->seg[SEG_CS] = VMP_SEL_USER_CS;
		V->gpr[EAX] = VMP_HC_WRITE_CR3;
		V->gpr[EBX] = 0x5003;
		set32(KERNEL_STACK - 4, CODE);
		CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_HYPERCALL);
		CU_ASSERT_EQUAL(V->cpl, 0);
		CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_KERNEL_CS);
		CU_ASSERT_EQUAL(V->seg[SEG_SS], VMP_SEL_KERNEL_DS);
		CU_ASSERT_EQUAL(V->eip, CODE);
		CU_ASSERT_EQUAL(V->gpr[ESP], KERNEL_STACK);
		CU_ASSERT_EQUAL(V->gpr[EAX], 0);
		CU_ASSERT_EQUAL(V->cr3, 0x5003);
		CU_ASSERT_EQUAL(fake.switch_space, 1);
	}
}

static void hypercall_without_stack(void)
{
	struct window_stop stop = { .rip = VMP_STUB_HYPERCALL, .esp = KERNEL_STACK - 4 };

	fake_reset();
	set_pte(KERNEL_STACK - 4, 0);
	CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_HYPERCALL);
	CU_ASSERT_TRUE(V->dead);
}

/* Both entries end at the same trap if the engine is another process. */
static void iret_at_the_trap(void)
{
	struct window_stop stop = { .rip = (uint32_t)window_trap_gate(),
				    .esp = KERNEL_STACK - 12,
				    .r8 = VMP_STUB_IRET };

	fake_reset();
	V->gpr[ESP] = KERNEL_STACK - 12;
	CU_ASSERT_TRUE(window_holds(window_trap_gate()));
	CU_ASSERT_EQUAL(window_settle(V, &stop), WINDOW_IRET);
	CU_ASSERT_EQUAL(V->eip, VMP_STUB_IRET);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(fits),
		UNIT_TEST(flag_and_cr2),
		UNIT_TEST(every_word_is_written),
		UNIT_TEST(restricted),
		UNIT_TEST(end_of_interrupt),
		UNIT_TEST(syscall_anywhere),
		UNIT_TEST(syscall_by_the_window),
		UNIT_TEST(syscall_without_entry_stack),
		UNIT_TEST(syscall_without_stack),
		UNIT_TEST(iret_anywhere),
		UNIT_TEST(returns),
		UNIT_TEST(iret_fails_at_the_stub),
		UNIT_TEST(iret_at_the_trap),
		UNIT_TEST(hypercall_anywhere),
		UNIT_TEST(hypercall_without_stack),
		UNIT_END
	};

	return UNIT_RUN("vcpu_window", tests);
}
