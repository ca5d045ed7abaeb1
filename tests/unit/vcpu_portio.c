/* vcpu_portio.c - in, out, ins, outs (vcpu/portio.c): sizes, chunks, page crossings, restart in the
 * middle. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

#define V (&fake.v)
enum { PORT = 0x1f0 };

static void in_sizes(void)
{
	static const struct {
		uint8_t code[3];
		unsigned bytes, size;
		uint16_t port;
		uint32_t eax;
	} cases[] = {
		{ { 0xe4, 0x60 }, 2, 1, 0x60, 0xffffff78 },
		{ { 0xe5, 0x60 }, 2, 4, 0x60, 0x12345678 },
		{ { 0x66, 0xe5, 0x60 }, 3, 2, 0x60, 0xffff5678 },
		{ { 0xec }, 1, 1, PORT, 0xffffff78 },
		{ { 0xed }, 1, 4, PORT, 0x12345678 },
		{ { 0x66, 0xed }, 2, 2, PORT, 0xffff5678 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		V->gpr[EAX] = 0xffffffff;
		V->gpr[EDX] = 0xabcd0000 | PORT;
		fake.port_value = 0x12345678;
		CU_ASSERT_EQUAL(fake_run_at(CODE, cases[n].code, cases[n].bytes), VCPU_DONE);
		CU_ASSERT_EQUAL(fake.port, cases[n].port);
		CU_ASSERT_EQUAL(fake.size, cases[n].size);
		CU_ASSERT_EQUAL(V->gpr[EAX], cases[n].eax);
		CU_ASSERT_EQUAL(V->eip, CODE + cases[n].bytes);
	}
}

static void out_sizes(void)
{
	static const struct {
		uint8_t code[3];
		unsigned bytes, size;
		uint16_t port;
		uint32_t value;
	} cases[] = {
		{ { 0xe6, 0x80 }, 2, 1, 0x80, 0x78 },
		{ { 0xe7, 0x80 }, 2, 4, 0x80, 0x12345678 },
		{ { 0x66, 0xe7, 0x80 }, 3, 2, 0x80, 0x5678 },
		{ { 0xee }, 1, 1, PORT, 0x78 },
		{ { 0xef }, 1, 4, PORT, 0x12345678 },
		{ { 0x66, 0xef }, 2, 2, PORT, 0x5678 },
	};

	for (unsigned n = 0; n < ARRAY_LEN(cases); n++) {
		fake_reset();
		V->gpr[EAX] = 0x12345678;
		V->gpr[EDX] = PORT;
		CU_ASSERT_EQUAL(fake_run_at(CODE, cases[n].code, cases[n].bytes), VCPU_DONE);
		CU_ASSERT_EQUAL(fake.port_outs, 1);
		CU_ASSERT_EQUAL(fake.port, cases[n].port);
		CU_ASSERT_EQUAL(fake.size, cases[n].size);
		CU_ASSERT_EQUAL(fake.value, cases[n].value);
	}
}

static void io_privilege_level(void)
{
	fake_reset();
	fake_user();
	V->eflags |= EFLAGS_IOPL;
	CU_ASSERT_EQUAL(RUN(0xe4, 0x60), VCPU_DONE);
	CU_ASSERT_EQUAL(fake.port_ins, 1);
}

static void fill_port(void)
{
	for (unsigned n = 0; n < sizeof fake.port_data; n++)
		fake.port_data[n] = (uint8_t)(n * 5 + 1);
}

static void prepare(uint32_t edi, uint32_t count)
{
	fake_reset();
	fill_port();
	V->gpr[EDX] = PORT;
	V->gpr[EDI] = V->gpr[ESI] = edi;
	V->gpr[ECX] = count;
}

static void single(void)
{
	prepare(DATA, 77);
	CU_ASSERT_EQUAL(RUN(0x66, 0x6d), VCPU_DONE); /* insw without rep leaves ECX alone */
	CU_ASSERT_EQUAL(V->gpr[ECX], 77);
	CU_ASSERT_EQUAL(V->gpr[EDI], DATA + 2);
	CU_ASSERT_EQUAL(memcmp(fake.ram + DATA, fake.port_data, 2), 0);
	CU_ASSERT_EQUAL(fake.size, 2);
	prepare(DATA, 77);
	set32(DATA, 0xcafebabe);
	CU_ASSERT_EQUAL(RUN(0x6f), VCPU_DONE); /* outsl */
	CU_ASSERT_EQUAL(V->gpr[ESI], DATA + 4);
	CU_ASSERT_EQUAL(memcmp(fake.port_data, fake.ram + DATA, 4), 0);
}

/* A sector into a buffer at each alignment around a page's end: always the same bytes, in at most
 * two chunks and a split. */
static void repeat_in(void)
{
	for (uint32_t at = DATA + PAGE_BYTES - 516; at <= DATA + PAGE_BYTES; at++) {
		prepare(at, 256);
		CU_ASSERT_EQUAL(RUN(0xf3, 0x66, 0x6d), VCPU_DONE);
		CU_ASSERT_EQUAL(V->gpr[ECX], 0);
		CU_ASSERT_EQUAL(V->gpr[EDI], at + 512);
		CU_ASSERT_EQUAL(V->eip, CODE + 3);
		CU_ASSERT_EQUAL(memcmp(fake.ram + at, fake.port_data, 512), 0);
		CU_ASSERT_EQUAL(fake.ram[at - 1] | fake.ram[at + 512], 0);
		CU_ASSERT_TRUE(fake.string_ins <= 3);
	}
}

static void repeat_out(void)
{
	for (uint32_t at = DATA + PAGE_BYTES - 516; at <= DATA + PAGE_BYTES; at += 3) {
		prepare(at, 128);
		memcpy(fake.ram + at, fake.port_data, 512);
		memset(fake.port_data, 0, 512);
		CU_ASSERT_EQUAL(RUN(0xf3, 0x6f), VCPU_DONE);
		CU_ASSERT_EQUAL(V->gpr[ECX], 0);
		CU_ASSERT_EQUAL(V->gpr[ESI], at + 512);
		CU_ASSERT_EQUAL(memcmp(fake.ram + at, fake.port_data, 512), 0);
	}
}

/* Every element of a repetition is a step; the last one ends behind it. */
static void single_steps(void)
{
	prepare(DATA, 2);
	V->eflags |= EFLAGS_TF;
	CU_ASSERT_EQUAL(RUN(0xf3, 0x6c), VCPU_RAISED);
	CU_ASSERT_TRUE(faulted(VECTOR_DB, -1, CODE));
	CU_ASSERT_EQUAL(V->gpr[ECX], 1);
	V->eflags |= EFLAGS_TF;
	CU_ASSERT_EQUAL(RUN(0xf3, 0x6c), VCPU_RAISED);
	CU_ASSERT_TRUE(faulted(VECTOR_DB, -1, CODE + 2));
	CU_ASSERT_EQUAL(memcmp(fake.ram + DATA, fake.port_data, 2), 0);
}

static void large_and_empty(void)
{
	prepare(DATA, 3 * PAGE_BYTES);
	CU_ASSERT_EQUAL(RUN(0xf3, 0x6c), VCPU_DONE);
	CU_ASSERT_EQUAL(fake.string_ins, 3);
	CU_ASSERT_EQUAL(fake.count, PAGE_BYTES);
	CU_ASSERT_EQUAL(memcmp(fake.ram + DATA, fake.port_data, 3 * PAGE_BYTES), 0);
	prepare(DATA, 0);
	CU_ASSERT_EQUAL(RUN(0xf3, 0x6c), VCPU_DONE);
	CU_ASSERT_EQUAL(fake.string_ins, 0);
	CU_ASSERT_EQUAL(V->eip, CODE + 2);
}

static void backwards(void)
{
	prepare(DATA + 6, 4);
	V->eflags |= EFLAGS_DF;
	CU_ASSERT_EQUAL(RUN(0xf3, 0x66, 0x6d), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[EDI], DATA - 2);
	CU_ASSERT_EQUAL(fake.string_ins, 4);
	CU_ASSERT_EQUAL(ram16(DATA + 6), fake.port_data[0] | fake.port_data[1] << 8);
	CU_ASSERT_EQUAL(ram16(DATA), fake.port_data[6] | fake.port_data[7] << 8);
}

/* The second page is away: the part before it is done and counted; after the guest maps it, the
 * rest follows. */
static void restart_in(void)
{
	uint32_t at = DATA + PAGE_BYTES - 100;

	prepare(at, 256);
	set_pte(DATA + PAGE_BYTES, 0);
	CHECK_FAULT(RUN(0xf3, 0x66, 0x6d), VECTOR_PF, PF_WRITE);
	CU_ASSERT_EQUAL(V->cr2, DATA + PAGE_BYTES);
	CU_ASSERT_EQUAL(V->gpr[ECX], 206);
	CU_ASSERT_EQUAL(V->gpr[EDI], DATA + PAGE_BYTES);
	CU_ASSERT_EQUAL(fake.port_data_at, 100); /* no byte was taken from the port in vain */
	set_pte(DATA + PAGE_BYTES, (DATA + PAGE_BYTES) | P | W);
	CU_ASSERT_EQUAL(RUN(0xf3, 0x66, 0x6d), VCPU_DONE);
	CU_ASSERT_EQUAL(V->gpr[ECX], 0);
	CU_ASSERT_EQUAL(memcmp(fake.ram + at, fake.port_data, 512), 0);
}

static void restart_split(void)
{
	uint32_t at = DATA + PAGE_BYTES - 3;

	prepare(at, 2);
	set_pte(DATA + PAGE_BYTES, 0);
	CHECK_FAULT(RUN(0xf3, 0x6d), VECTOR_PF, PF_WRITE);
	CU_ASSERT_EQUAL(V->cr2, DATA + PAGE_BYTES);
	CU_ASSERT_EQUAL(V->gpr[ECX], 2);
	CU_ASSERT_EQUAL(fake.port_data_at, 0);
	prepare(at, 2);
	set_pte(DATA + PAGE_BYTES, 0);
	CHECK_FAULT(RUN(0xf3, 0x6f), VECTOR_PF, 0);
	CU_ASSERT_EQUAL(fake.string_outs, 0);
	prepare(at, 2);
	set_pte(DATA, DATA | P);
	CHECK_FAULT(RUN(0xf3, 0x6d), VECTOR_PF, PF_PRESENT | PF_WRITE);
	CU_ASSERT_EQUAL(V->cr2, at);
}

static void restart_out(void)
{
	prepare(DATA + PAGE_BYTES - 8, 4);
	set_pte(DATA + PAGE_BYTES, 0);
	CHECK_FAULT(RUN(0xf3, 0x6f), VECTOR_PF, 0);
	CU_ASSERT_EQUAL(V->gpr[ECX], 2);
	CU_ASSERT_EQUAL(V->gpr[ESI], DATA + PAGE_BYTES);
	CU_ASSERT_EQUAL(fake.port_data_at, 8);
}

static void interrupted(void)
{
	prepare(DATA, 2 * PAGE_BYTES);
	V->eflags |= EFLAGS_IF;
	V->apic.spiv |= 0x100;
	apic_post(&V->apic, 0x40);
	CU_ASSERT_EQUAL(RUN(0xf3, 0x6c), VCPU_DONE);
	CU_ASSERT_EQUAL(V->eip, CODE); /* to be run again */
	CU_ASSERT_EQUAL(V->gpr[ECX], PAGE_BYTES);
	CU_ASSERT_TRUE(vcpu_deliver_interrupt(V));
	CU_ASSERT_EQUAL(frame(0), CODE);
}

static void segments(void)
{
	prepare(DATA, 1);
	V->seg[SEG_DS] = GDT_BASED_DATA * 8 + 3;
	set32(DATA + BASED_AT, 0x99);
	CU_ASSERT_EQUAL(RUN(0x6e), VCPU_DONE); /* outsb %ds:(%esi) */
	CU_ASSERT_EQUAL(fake.port_data[0], 0x99);
	set32(DATA, 0x55);
	CU_ASSERT_EQUAL(RUN(0x26, 0x6f), VCPU_DONE); /* %es: */
	CU_ASSERT_EQUAL(fake.port_data[1], fake.ram[DATA + 1]);
	prepare(DATA, 1);
	V->seg[SEG_ES] = 0;
	CHECK_FAULT(RUN(0x6c), VECTOR_GP, 0);
	prepare(DATA, 1);
	RUN(0x67, 0x6c);
	CU_ASSERT_EQUAL(V->dead, VCPU_KILLED);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(in_sizes),
		UNIT_TEST(out_sizes),
		UNIT_TEST(io_privilege_level),
		UNIT_TEST(single),	    UNIT_TEST(repeat_in),	   UNIT_TEST(repeat_out),
		UNIT_TEST(single_steps), UNIT_TEST(large_and_empty), UNIT_TEST(backwards),
		UNIT_TEST(restart_in),   UNIT_TEST(restart_split),   UNIT_TEST(restart_out),
		UNIT_TEST(interrupted),  UNIT_TEST(segments),
		UNIT_END
	};
	return UNIT_RUN("vcpu port I/O", tests);
}
