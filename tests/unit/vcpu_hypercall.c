/* vcpu_hypercall.c - hypercalls, vcpu_kill, vcpu_dump and the formatter (vcpu/hypercall.c, dump.c,
 * text.c). */
#include <errno.h>

#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vcpu/internal.h"

#define V (&fake.v)

static uint32_t call(uint32_t number, uint32_t ebx, uint32_t ecx)
{
	V->gpr[EAX] = number;
	V->gpr[EBX] = ebx;
	V->gpr[ECX] = ecx;
	CU_ASSERT_EQUAL(RUN(0xcd, VMP_INT_HYPERCALL), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, CODE + 2);
	return V->gpr[EAX];
}

static void error_numbers(void)
{
	CU_ASSERT_EQUAL(ERR_FAULT, -EFAULT);
	CU_ASSERT_EQUAL(ERR_INVALID, -EINVAL);
	CU_ASSERT_EQUAL(ERR_RANGE, -ERANGE);
	CU_ASSERT_EQUAL(ERR_NO_CALL, -ENOSYS);
}

static void print(void)
{
	fake_reset();
	memcpy(fake.ram + DATA + PAGE_BYTES - 5, "hello, world", 12);
	CU_ASSERT_EQUAL(call(VMP_HC_PRINT, DATA + PAGE_BYTES - 5, 12), 0);
	CU_ASSERT_EQUAL(fake.printed_bytes, 12);
	CU_ASSERT_EQUAL(memcmp(fake.printed, "hello, world", 12), 0);
	CU_ASSERT_EQUAL(call(VMP_HC_PRINT, DATA, 300), 0); /* in parts */
	CU_ASSERT_EQUAL(fake.prints, 3);
	CU_ASSERT_EQUAL(call(VMP_HC_PRINT, DATA, 0), 0);
	V->cr2 = 0x1234;
	CU_ASSERT_EQUAL(call(VMP_HC_PRINT, 0x70000000, 1), (uint32_t)-EFAULT);
	CU_ASSERT_EQUAL(V->cr2, 0x1234); /* no exception: CR2 stays */
	CU_ASSERT_EQUAL(call(VMP_HC_PRINT, DATA, PAGE_BYTES + 1), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(fake.prints, 3);
}

static void clocks(void)
{
	fake_reset();
	fake.now_ns = 0x123456789abcdef;
	CU_ASSERT_EQUAL(call(VMP_HC_CLOCK, 0, 0), 0x89abcdef);
	CU_ASSERT_EQUAL(V->gpr[EDX], 0x1234567);
	call(VMP_HC_WALLCLOCK, 0, 0);
	CU_ASSERT_EQUAL((uint64_t)V->gpr[EDX] << 32 | V->gpr[EAX],
			1700000000000000000 + 0x123456789abcdef);
}

static void tsc_khz(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_TSC_KHZ, 0, 0), 0);
	fake.tsc_khz = 2500000;
	CU_ASSERT_EQUAL(call(VMP_HC_TSC_KHZ, 0, 0), 2500000);
}

static void send_ipi(void)
{
	fake_reset(); /* CPU 1 of 4 */
	apic_write(V, 0xf0, 0x1ff);
	CU_ASSERT_EQUAL(call(VMP_HC_SEND_IPI, 0xff, 0x41), 0);
	CU_ASSERT_EQUAL(fake.sends, 1);
	CU_ASSERT_EQUAL(fake.sent_cpus, ((1u << V->n_cpus) - 1) & ~(1u << V->number));
	CU_ASSERT_EQUAL(fake.sent_vector, 0x41);
	CU_ASSERT_FALSE(fake.sent_nmi);
	CU_ASSERT_EQUAL(apic_highest(&V->apic), 0x41); /* its own share */
	CU_ASSERT_EQUAL(call(VMP_HC_SEND_IPI, 1, 2), 0);
	CU_ASSERT_TRUE(fake.sent_nmi);
	CU_ASSERT_EQUAL(call(VMP_HC_SEND_IPI, 1u << V->number, 0x42), 0);
	CU_ASSERT_EQUAL(fake.sends, 2); /* nobody else's business */
	CU_ASSERT_EQUAL(call(VMP_HC_SEND_IPI, 1, 15), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(call(VMP_HC_SEND_IPI, 1, 256), (uint32_t)-EINVAL);
}

/* What ends a wait: a request of the vector, even with interrupts off or one of its class in
 * service; other interrupts only if the guest asks for that. */
static void wait_for_kick(void)
{
	static const struct {
		bool on, any;
		uint8_t posted;
		bool nmi, wakes, withdrawn;
	} cases[] = {
		{ false, false, 0, false, false, false },
		{ false, false, 0xf7, false, true, true },
		{ false, false, 0x41, false, false, false },
		{ false, true, 0x41, false, true, false },
		{ false, true, 0xf7, false, true, true },
		{ true, false, 0x41, false, true, false },
		{ false, false, 0, true, true, false },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		V->apic.spiv |= 0x100;
		V->eflags = EFLAGS_FIXED | (cases[n].on ? EFLAGS_IF : 0);
		CU_ASSERT_EQUAL(call(VMP_HC_WAIT, 0xf7, cases[n].any), 0);
		CU_ASSERT_TRUE(V->halted);
		CU_ASSERT_FALSE(vcpu_wakes(V));
		if (cases[n].posted)
			apic_post(&V->apic, cases[n].posted);
		V->nmi_pending = cases[n].nmi;
		CU_ASSERT_EQUAL(vcpu_wakes(V), cases[n].wakes);
		vcpu_wake(V);
		CU_ASSERT_FALSE(V->halted);
		CU_ASSERT_EQUAL(apic_requested(&V->apic, cases[n].posted),
				cases[n].posted && !cases[n].withdrawn);
	}
	V->halted = false;
	V->apic.spiv = 0xff; /* a CPU that is being started: its APIC accepts no kick yet */
	CU_ASSERT(call(VMP_HC_WAIT, 0xf7, 0) == 0 && !V->halted && !V->awaited);
	V->apic.spiv = 0x1ff;
	CU_ASSERT_EQUAL(call(VMP_HC_WAIT, 15, 0), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(call(VMP_HC_WAIT, 256, 0), (uint32_t)-EINVAL);
	CU_ASSERT_FALSE(V->halted);
}

/* As sti; hlt. */
static void halts(void)
{
	fake_reset();
	V->apic.spiv |= 0x100;
	V->eflags = EFLAGS_FIXED;
	CU_ASSERT_EQUAL(call(VMP_HC_HALT, 0, 0), 0);
	CU_ASSERT_TRUE(V->halted && V->eflags & EFLAGS_IF && !V->awaited && !V->interrupt_shadow);
	CU_ASSERT_FALSE(vcpu_wakes(V) || vcpu_halted_for_good(V));
	apic_post(&V->apic, 0x41);
	CU_ASSERT_TRUE(vcpu_wakes(V));
	vcpu_wake(V);
	CU_ASSERT_EQUAL(call(VMP_HC_HALT, 0, 0), 0); /* one that came before ends it at once */
	CU_ASSERT_TRUE(V->halted && vcpu_wakes(V));
}

/* A kick from before the wait ends it at once; a later hlt is not affected. */
static void kicked_before(void)
{
	fake_reset();
	V->apic.spiv |= 0x100;
	apic_post(&V->apic, 0xf7);
	call(VMP_HC_WAIT, 0xf7, 0);
	CU_ASSERT_TRUE(vcpu_wakes(V));
	vcpu_wake(V);
	CU_ASSERT_EQUAL(RUN(0xf4), VCPU_HALTED);
	apic_post(&V->apic, 0xf7);
	CU_ASSERT_FALSE(vcpu_wakes(V));
}

/* As a store to the APIC's page: whole aligned registers only, and none beyond the page. */
static void apic_register(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_APIC_WRITE, 0x80, 0x20), 0);
	CU_ASSERT_EQUAL(V->apic.tpr, 0x20);
	CU_ASSERT_EQUAL(call(VMP_HC_APIC_WRITE, 0x84, 0x30), 0);
	CU_ASSERT_EQUAL(V->apic.tpr, 0x20);
	CU_ASSERT_EQUAL(call(VMP_HC_APIC_WRITE, PAGE_BYTES, 0x30), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(call(VMP_HC_APIC_WRITE, 0xffffffff, 0x30), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(V->apic.tpr, 0x20);
}

static void flush_range(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_FLUSH_RANGE, 0x8000, 7), 0);
	CU_ASSERT_EQUAL(fake.flushed, 0x8000);
	CU_ASSERT_EQUAL(fake.flushed_pages, 7);
}

static void start_cpu(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_START_CPU, 3, 0x100000), 0);
	CU_ASSERT_EQUAL(fake.start_cpu, 3);
	CU_ASSERT_EQUAL(fake.start_eip, 0x100000);
	CU_ASSERT_EQUAL(call(VMP_HC_START_CPU, 1, 0x100000), (uint32_t)-EINVAL); /* itself */
	CU_ASSERT_EQUAL(call(VMP_HC_START_CPU, 4, 0x100000), (uint32_t)-EINVAL); /* nobody */
	CU_ASSERT_EQUAL(call(VMP_HC_START_CPU, 2, RAM_BYTES), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(fake.starts, 1);
}

/* A start of a CPU that ran before: one that has halted for good starts, one with interrupts
 * enabled ignores it, and another one starts when it halts. */
static void start_again(void)
{
	static const struct { bool halted, on, awaits, nmi, blocked, starts, waits; } cases[] = {
		{ .halted = true, .starts = true },
		{ .halted = true, .nmi = true, .blocked = true, .starts = true },
		{ .halted = true, .nmi = true, .waits = true }, /* the NMI wakes it first */
		{ .halted = true, .on = true },			/* idle */
		{ .halted = true, .awaits = true, .waits = true },
		{ .halted = true, .awaits = true, .on = true },
		{ .on = true },
		{ .waits = true },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		CU_ASSERT_FALSE(vcpu_settle_start(V));
		V->eip = CODE;
		V->eflags = EFLAGS_FIXED | (cases[n].on ? EFLAGS_IF : 0);
		V->halted = cases[n].halted;
		V->awaited = cases[n].awaits ? 0xf7 : 0;
		V->nmi_pending = cases[n].nmi;
		V->nmi_blocked = cases[n].blocked;
		V->apic.spiv = 0x1ff;
		vcpu_want_start(V, 0x100000);
		CU_ASSERT_EQUAL(vcpu_settle_start(V), cases[n].starts);
		CU_ASSERT_EQUAL(V->start_wanted, cases[n].waits);
		CU_ASSERT_EQUAL(V->eip, cases[n].starts ? 0x100000 : CODE);
		CU_ASSERT_EQUAL(!(V->cr0 & CR0_PG), cases[n].starts);
		CU_ASSERT_EQUAL(V->apic.spiv, cases[n].starts ? 0xff : 0x1ff);
		CU_ASSERT_EQUAL(V->halted, cases[n].halted && !cases[n].starts);
		/* The host has no mapping of before.  Of the segments it has those to begin with
		 * anew, and keeps the others: another VM process has them loaded. */
		CU_ASSERT_EQUAL(fake.flush_all, cases[n].starts);
		CU_ASSERT_EQUAL(fake.segments_changed, cases[n].starts ? 2 : 0);
	}
	V->halted = true; /* the last one was on its way to its hlt */
	CU_ASSERT_TRUE(vcpu_settle_start(V));
	CU_ASSERT_FALSE(vcpu_settle_start(V));
}

static void gdt_changed(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_GDT_CHANGED, VMP_GDT_USER_CS, 2), 0);
	CU_ASSERT_EQUAL(fake.segments_changed, 2);
	CU_ASSERT_TRUE(fake.segment[VMP_GDT_USER_CS].present &&
		       fake.segment[VMP_GDT_USER_DS].present);
	call(VMP_HC_GDT_CHANGED, VMP_GDT_ENTRIES - 1, 0xffffffff);
	CU_ASSERT_EQUAL(fake.segments_changed, 3);
	call(VMP_HC_GDT_CHANGED, 0xffffffff, 0xffffffff);
	CU_ASSERT_EQUAL(fake.segments_changed, 3);
	set_pte(GDT, 0);
	V->cr2 = 5;
	call(VMP_HC_GDT_CHANGED, VMP_GDT_USER_CS, 1); /* unreadable: absent */
	CU_ASSERT_FALSE(fake.segment[VMP_GDT_USER_CS].present);
	CU_ASSERT_EQUAL(V->cr2, 5);
}

static void ends_and_yields(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_EXIT, VMP_EXIT_POWEROFF, 7), 0);
	CU_ASSERT_EQUAL(fake.end_why, VMP_EXIT_POWEROFF);
	CU_ASSERT_EQUAL(fake.end_status, 7);
	CU_ASSERT_EQUAL(call(VMP_HC_EXIT, 3, 0), (uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(fake.ends, 1);
	CU_ASSERT_EQUAL(call(VMP_HC_YIELD, 0, 0), 0);
	CU_ASSERT_EQUAL(fake.yields, 1);
	CU_ASSERT_EQUAL(call(VMP_HC_CROWDED, 0, 0), 0);
	CU_ASSERT_EQUAL(fake.crowds, 1);
}

static bool fetched(unsigned at, gfn_t first, unsigned count, bool write)
{
	const struct fake_fetch *fetch = &fake.fetched[at];

	return fetch->first == first && fetch->count == count && fetch->write == write;
}

/* Frames are named before they are pinned: those of a run together, in parts of MAX_AHEAD.  What is
 * refused names none. */
static void names_frames(void)
{
	enum { FRAMES = RAM_BYTES >> PAGE_BITS };

	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_CLEAR_FRAMES, 256, MAX_AHEAD + 1), 0);
	CU_ASSERT_EQUAL(fake.fetches, 2);
	CU_ASSERT(fetched(0, 256, MAX_AHEAD, true));
	CU_ASSERT(fetched(1, 256 + MAX_AHEAD, 1, true));
	CU_ASSERT_EQUAL(call(VMP_HC_COPY_FRAME, 300, 301), 0);
	CU_ASSERT_EQUAL(fake.fetches, 4);
	CU_ASSERT(fetched(2, 301, 1, false));
	CU_ASSERT(fetched(3, 300, 1, true));
	call(VMP_HC_CLEAR_FRAMES, FRAMES - 1, 2);
	call(VMP_HC_CLEAR_FRAMES, 0xffffffff, 2);
	call(VMP_HC_COPY_FRAME, 300, FRAMES);
	CU_ASSERT_EQUAL(fake.fetches, 4);
}

static void clear_frames(void)
{
	enum { FIRST = DATA >> PAGE_BITS, FRAMES = RAM_BYTES >> PAGE_BITS };
	static const uint32_t wrong[][2] = {
		{ FIRST, 0 }, { FIRST, 1025 }, { FRAMES, 1 }, { FRAMES - 1, 2 },
		{ 0xffffffff, 1 }, { 0xffffffff, 2 }, { 0x100000 + FIRST, 1 },
	};

	fake_reset();
	memset(fake.ram + DATA, 0xaa, 4 * PAGE_BYTES);
	CU_ASSERT_EQUAL(call(VMP_HC_CLEAR_FRAMES, FIRST + 1, 2), 0);
	for (unsigned at = 0; at < 4 * PAGE_BYTES; at++)
		CU_ASSERT_EQUAL_FATAL(fake.ram[DATA + at],
				      at / PAGE_BYTES == 1 || at / PAGE_BYTES == 2 ? 0 : 0xaa);
	CU_ASSERT_EQUAL(call(VMP_HC_CLEAR_FRAMES, FRAMES - 1, 1), 0);
	for (unsigned n = 0; n < ARRAY_LEN(wrong); n++)
		CU_ASSERT_EQUAL(call(VMP_HC_CLEAR_FRAMES, wrong[n][0], wrong[n][1]),
				(uint32_t)-EINVAL);
	CU_ASSERT_EQUAL(fake.ram[DATA], 0xaa);
}

static void copy_frame(void)
{
	enum { FIRST = DATA >> PAGE_BITS, FRAMES = RAM_BYTES >> PAGE_BITS };
	static const uint32_t wrong[][2] = {
		{ FIRST, FRAMES }, { FRAMES, FIRST }, { FIRST, 0x100000 + FIRST },
		{ 0xffffffff, FIRST },
	};

	fake_reset();
	for (unsigned at = 0; at < 3 * PAGE_BYTES; at++)
		fake.ram[DATA + at] = (uint8_t)(at * 7 + at / PAGE_BYTES);
	CU_ASSERT_EQUAL(call(VMP_HC_COPY_FRAME, FIRST + 1, FIRST), 0);
	CU_ASSERT_FALSE(memcmp(fake.ram + DATA + PAGE_BYTES, fake.ram + DATA, PAGE_BYTES));
	CU_ASSERT_EQUAL(call(VMP_HC_COPY_FRAME, FIRST, FIRST + 2), 0);
	CU_ASSERT_FALSE(memcmp(fake.ram + DATA, fake.ram + DATA + 2 * PAGE_BYTES, PAGE_BYTES));
	CU_ASSERT_EQUAL(call(VMP_HC_COPY_FRAME, FIRST, FIRST), 0);
	for (unsigned n = 0; n < ARRAY_LEN(wrong); n++)
		CU_ASSERT_EQUAL(call(VMP_HC_COPY_FRAME, wrong[n][0], wrong[n][1]),
				(uint32_t)-EINVAL);
}

static void unknown(void)
{
	fake_reset();
	CU_ASSERT_EQUAL(call(VMP_HC_COUNT, 0, 0), (uint32_t)-ENOSYS);
	CU_ASSERT_EQUAL(call(0xffffffff, 0, 0), (uint32_t)-ENOSYS);
	fake_user();
	V->gpr[EAX] = VMP_HC_EXIT;
	RUN(0xcd, VMP_INT_HYPERCALL); /* not from user mode */
	CU_ASSERT_TRUE(in_handler(VECTOR_GP));
	CU_ASSERT_EQUAL(fake.ends, 0);
}

/* The one call that a program has. */
static void barrier_of_a_program(void)
{
	enum { BX = 0x11111111, DI = 0x22222222 };

	fake_reset();
	fake_user();
	fake.reached = 1;
	V->gpr[EAX] = BARRIER_CALL, V->gpr[EBX] = BX, V->gpr[EDI] = DI;
	V->gpr[ECX] = 3 | BARRIER_TELL, V->gpr[EDX] = 40, V->gpr[ESI] = 80;
	CU_ASSERT_EQUAL(RUN(0xcd, VMP_INT_HYPERCALL), VCPU_DONE);
	CU_ASSERT(V->gpr[EAX] == 1 && V->cpl == 3 && V->eip == CODE + 2);
	CU_ASSERT_EQUAL(fake.barrier.key.frame, V->cr3 >> PAGE_BITS);
	CU_ASSERT_EQUAL(fake.barrier.key.serial, (uint64_t)DI << 32 | BX);
	CU_ASSERT(fake.barrier.place == 3 && fake.barrier.tell);
	CU_ASSERT(fake.barrier.count == 40 && fake.barrier.sum == 80);
	fake_reset();
	fake_user();
	V->gpr[EAX] = BARRIER_CALL, V->gpr[ECX] = BARRIER_PLACES;
	RUN(0xcd, VMP_INT_HYPERCALL);
	CU_ASSERT_EQUAL(V->gpr[EAX], (uint32_t)-EINVAL);
	fake_reset(); /* the kernel's hypercalls do not have it */
	CU_ASSERT_EQUAL(call(BARRIER_CALL, 0, 0), (uint32_t)-ENOSYS);
}

static void segment_look_up(void)
{
	struct vcpu_segment s;

	fake_reset();
	CU_ASSERT_EQUAL(vcpu_segment(V, VMP_GDT_PERCPU, &s), 0);
	CU_ASSERT_EQUAL(s.base, BASED_AT);
	CU_ASSERT_EQUAL(s.limit, 0xffffffff);
	CU_ASSERT_EQUAL(vcpu_segment(V, VMP_GDT_TSS, &s), 0);
	CU_ASSERT_TRUE(s.system && !s.granular);
	CU_ASSERT_EQUAL(s.limit, 0x67);
	CU_ASSERT_EQUAL(s.type, 9);
	CU_ASSERT_EQUAL(vcpu_segment(V, VMP_GDT_ENTRIES, &s), -EFAULT);
	CU_ASSERT_FALSE(s.present);
	CU_ASSERT_EQUAL(vcpu_segment(V, 0x10000, &s), -EFAULT);
}

static void formatter(void)
{
	char cut[] = "a%";
	char text[32];
	struct text t = { text, sizeof text, 0 };

	text_add(&t, "%s-%u-%x-%08x-%%", "ab", 42, 0xbeef, 0x1f);
	CU_ASSERT_STRING_EQUAL(text, "ab-42-beef-0000001f-%");
	CU_ASSERT_EQUAL(t.used, strlen(text));
	text_add(&t, "%u%u%u%u", 0, 1234567890, 4294967295u, 1);
	CU_ASSERT_EQUAL(t.used, sizeof text - 1); /* cut, and closed */
	CU_ASSERT_EQUAL(text[sizeof text - 1], 0);
	t = (struct text){ text, 0, 0 };
	text_add(&t, "x");
	CU_ASSERT_EQUAL(t.used, 0);
	t = (struct text){ text, sizeof text, 0 };
	text_add(&t, cut);
	CU_ASSERT_STRING_EQUAL(text, "a");
}

static void kill_keeps_the_first_reason(void)
{
	fake_reset();
	vcpu_kill(V, "first %x", 0xabc);
	vcpu_kill(V, "second");
	CU_ASSERT_STRING_EQUAL(V->dead_reason, "first abc");
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
	fake_reset();
	for (unsigned n = 0; n < sizeof fake.printed - 1; n++)
		fake.printed[n] = 'x';
	vcpu_kill(V, "%s", fake.printed);
	CU_ASSERT_EQUAL(strlen(V->dead_reason), sizeof V->dead_reason - 1);
}

static void dump(void)
{
	static const char *const expected[] = {
		"cpu 1 level 0",
		"eax 12345678",
		"eip 00010000 eflags 00000202 IF",
		"cs 0084",
		"gdt 00001000/00ff",
		"irr 41",
		"isr 51",
		"eip 00010000 -> 00010000 user writable",
		"esp 00020000 -> 00020000",
		"code f4 90",
		"stack 00000000 12345678 00000000",
	};
	char text[4096];
	struct vcpu before;
	unsigned bytes;

	fake_reset();
	V->gpr[EAX] = 0x12345678;
	V->eflags |= EFLAGS_IF;
	V->apic.irr[2] = 2;
	V->apic.isr[2] = 1 << 17;
	fake.ram[CODE] = 0xf4;
	memcpy(fake.ram + V->gpr[ESP] + 4, &(uint32_t){ 0x12345678 }, 4);
	before = *V;
	bytes = vcpu_dump(V, text, sizeof text);
	CU_ASSERT_EQUAL(memcmp(&before, V, sizeof before), 0);
	CU_ASSERT_EQUAL(bytes, strlen(text));
	for (unsigned n = 0; n < ARRAY_LEN(expected); n++)
		CU_ASSERT_PTR_NOT_NULL(strstr(text, expected[n]));
	V->gpr[ESP] = 0x70000000;
	set_pte(CODE, VMP_LAPIC_GPA | P | A);
	vcpu_kill(V, "because");
	vcpu_dump(V, text, sizeof text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "esp 70000000 -> not present"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "KILLED"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "reason: because"));
	CU_ASSERT_PTR_NULL(strstr(text, "code"));
	V->cr0 &= ~CR0_PG;
	vcpu_dump(V, text, sizeof text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "(paging off)"));
	CU_ASSERT_EQUAL(vcpu_dump(V, text, 100), 99); /* never beyond the room */
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(error_numbers), UNIT_TEST(print),
		UNIT_TEST(clocks),	     UNIT_TEST(tsc_khz),
		UNIT_TEST(send_ipi),	     UNIT_TEST(wait_for_kick),
		UNIT_TEST(kicked_before), UNIT_TEST(halts), UNIT_TEST(apic_register),
		UNIT_TEST(flush_range),   UNIT_TEST(start_cpu),
		UNIT_TEST(start_again),
		UNIT_TEST(gdt_changed),   UNIT_TEST(ends_and_yields),
		UNIT_TEST(clear_frames),  UNIT_TEST(copy_frame),   UNIT_TEST(names_frames),
		UNIT_TEST(unknown),	     UNIT_TEST(segment_look_up),
		UNIT_TEST(barrier_of_a_program),
		UNIT_TEST(formatter),     UNIT_TEST(kill_keeps_the_first_reason),
		UNIT_TEST(dump),
		UNIT_END
	};
	return UNIT_RUN("vcpu hypercalls and dumps", tests);
}
