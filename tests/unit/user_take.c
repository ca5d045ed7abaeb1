/* user_take.c - what the kernel process of --strict takes from a report that the guest's program
 * may have written itself: never more than a program's stop. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vmproc/user_take.c" /* build/vmproc is a program, not a folder of objects */

#define V (&fake.v)
enum { CODE_KERNEL = 0x80 };

static struct user_report report;
static struct engine_stop stop;

static void begin(void)
{
	fake_reset();
	memset(&report, 0, sizeof report);
	V->cpl = 3;
	V->seg[SEG_CS] = VMP_SEL_USER_CS;
	V->seg[SEG_SS] = VMP_SEL_USER_DS;
	V->eflags = EFLAGS_IF | EFLAGS_FIXED;
	report.signal = SIGUSR1;
	report.cs = VMP_SEL_USER_CS;
	report.ss = VMP_SEL_USER_DS;
}

static void registers(void)
{
	begin();
	for (unsigned i = 0; i < 8; i++)
		report.gpr[i] = 0xdead00000000 + i;
	report.rip = 0x108048000;
	report.rflags = ~0ull;
	report.ds = 1, report.es = 2, report.fs = 3, report.gs = 4;
	CU_ASSERT_TRUE(user_take(&report, V, &stop));
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(V->gpr[i], i);
	CU_ASSERT_EQUAL(V->eip, 0x8048000);
	CU_ASSERT_EQUAL(V->eflags, DIRECT_FLAGS_NATIVE | EFLAGS_RF | EFLAGS_FIXED | EFLAGS_IF);
	CU_ASSERT_FALSE(V->eflags & EFLAGS_IOPL);
	CU_ASSERT_EQUAL(stop.at.eflags, DIRECT_FLAGS_NATIVE);
	CU_ASSERT_EQUAL(V->seg[SEG_GS], 4);
	report.rflags = 0;
	CU_ASSERT_TRUE(user_take(&report, V, &stop));
	CU_ASSERT_EQUAL(V->eflags, EFLAGS_FIXED | EFLAGS_IF);
}

/* The level and the code segment are the kernel process's own. */
static void level(void)
{
	static const struct { uint16_t cs; uint64_t rip; bool in_guest, in_window; } row[] = {
		{ VMP_SEL_USER_CS, 0x8048000, true, false },
		{ VMP_SEL_USER_CS, VMP_STUB_SYSCALL, true, false },
		{ VMP_SEL_KERNEL_CS | 3, 0xb1000000, false, false },
		{ VMP_SEL_BOOT_CS | 3, 0xb1000000, false, false },
		{ 0x23, 0x8048000, false, false },
		{ VMP_SEL_HOST64, VMP_STUB_SYSCALL, false, true },
		{ VMP_SEL_HOST64, VMP_STUB_IRET, false, false },
		{ VMP_SEL_HOST64, VMP_STUB_HYPERCALL, false, false },
		{ VMP_SEL_HOST64, 0x100000000ull + VMP_STUB_SYSCALL, false, false },
		{ VMP_SEL_HOST64, 0x700000001000, false, false },
		{ 0, 0, false, false },
		{ 0xffff, ~0ull, false, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		begin();
		report.cs = row[i].cs, report.rip = row[i].rip;
		CU_ASSERT_TRUE(user_take(&report, V, &stop));
		CU_ASSERT_EQUAL(stop.in_guest, row[i].in_guest);
		CU_ASSERT_EQUAL(stop.in_window, row[i].in_window);
		CU_ASSERT_EQUAL(V->cpl, 3);
		CU_ASSERT_EQUAL(V->seg[SEG_CS], VMP_SEL_USER_CS);
	}
}

static void stack_segment(void)
{
	static const struct { uint16_t ss; bool taken; } row[] = {
		{ VMP_SEL_USER_DS, true },
		{ VMP_GDT_TLS_MIN << 3 | 3, true },
		{ (VMP_GDT_TLS_MIN + 3) << 3 | 3, false },
		{ VMP_SEL_KERNEL_DS, false },
		{ VMP_SEL_BOOT_DS, false },
		{ VMP_SEL_PERCPU, false },
		{ 0x2b, false },
		{ 0xffff, false },
		{ 0, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		begin();
		V->seg[SEG_SS] = 0x1234;
		report.ss = row[i].ss;
		CU_ASSERT_TRUE(user_take(&report, V, &stop));
		CU_ASSERT_EQUAL(V->seg[SEG_SS], row[i].taken ? row[i].ss : 0x1234);
	}
}

/* Every signal, with every vector: the vector is one that the signal can have. */
static void vectors(void)
{
	static const struct { int signal, code; uint32_t allowed, other; } row[] = {
		{ SIGSEGV, CODE_KERNEL, 1u << 4 | 1u << 5 | 1u << 10 | 1u << 13 | 1u << 14, 13 },
		{ SIGBUS, 0, 1u << 11 | 1u << 12 | 1u << 14 | 1u << 17, 12 },
		{ SIGTRAP, 2, 1u << 1 | 1u << 3, 1 },
		{ SIGILL, 1, 1u << 6, 6 },
		{ SIGFPE, 2, 1u << 16 | 1u << 19, 16 },
		{ SIGFPE, DIVIDE, 0, 0 },
		{ SIGSYS, 1, 0, 0 },
		{ SIGUSR1, 0, 0, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++)
		for (uint32_t vector = 0; vector < 70; vector++) {
			bool allowed = vector < 32 && row[i].allowed >> vector & 1;

			begin();
			report.signal = (uint32_t)row[i].signal;
			report.code = (uint32_t)row[i].code;
			report.vector = vector;
			CU_ASSERT_TRUE(user_take(&report, V, &stop));
			CU_ASSERT_EQUAL(stop.vector, allowed ? vector : row[i].other);
		}
	begin();
	report.signal = SIGSEGV, report.vector = 0xffffff0e;
	CU_ASSERT_TRUE(user_take(&report, V, &stop));
	CU_ASSERT_EQUAL(stop.vector, VECTOR_GP);
}

static void signals(void)
{
	static const int stops[] = { SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGSYS, SIGUSR1 };

	for (uint32_t signal = 0; signal < 70; signal++) {
		bool is_stop = false;

		for (unsigned i = 0; i < ARRAY_LEN(stops); i++)
			is_stop |= signal == (uint32_t)stops[i];
		begin();
		report.signal = signal;
		CU_ASSERT_EQUAL(user_take(&report, V, &stop), is_stop);
		CU_ASSERT_EQUAL(V->dead == VCPU_KILLED, !is_stop);
	}
	begin();
	report.signal = 0x80000000u | SIGSEGV;
	CU_ASSERT_FALSE(user_take(&report, V, &stop));
}

static void fpu_registers(void)
{
	enum { X87_SSE_AVX = 7, MASK = 0x2ffff };
	static uint8_t xsave[DIRECT_XSAVE_BYTES];
	uint64_t present;
	uint32_t mxcsr;

	memset(xsave, 0xff, sizeof xsave);
	user_take_xsave(xsave, X87_SSE_AVX, MASK);
	memcpy(&mxcsr, xsave + 24, sizeof mxcsr);
	CU_ASSERT_EQUAL(mxcsr, MASK);
	memcpy(&present, xsave + 512, sizeof present);
	CU_ASSERT_EQUAL(present, X87_SSE_AVX);
	for (unsigned i = 520; i < 576; i++)
		CU_ASSERT_EQUAL(xsave[i], 0);
	CU_ASSERT_EQUAL(xsave[576], 0xff);
	/* protection keys would lock the kernel process out */
	memset(xsave, 0xff, sizeof xsave);
	user_take_xsave(xsave, 1 << 9 | X87_SSE_AVX, MASK);
	memcpy(&present, xsave + 512, sizeof present);
	CU_ASSERT_EQUAL(present, X87_SSE_AVX);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(registers), UNIT_TEST(level),	UNIT_TEST(stack_segment),
		UNIT_TEST(vectors),	 UNIT_TEST(signals), UNIT_TEST(fpu_registers),
		UNIT_END
	};

	return UNIT_RUN("user_take", tests);
}
