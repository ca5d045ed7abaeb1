/* monitor_insn.c - what an instruction touches, as the ptrace engine reads it off the code
 * (monitor/insn.c). */
#include "monitor/monitor.h"
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

enum { BASED = GDT_BASED_DATA * 8 + 7, STACK = USER_STACK, BELOW = USER_STACK - 4 };

static struct monitor m;

static void at_user_code(const uint8_t *code, unsigned bytes, uint16_t ss)
{
	fake_reset();
	fake_user();
	memcpy(fake.ram + CODE, code, bytes);
	m.vcpu = fake.v;
	m.vcpu.eip = CODE;
	m.vcpu.gpr[ESP] = STACK;
	m.vcpu.gpr[EBX] = DATA;
	m.vcpu.gpr[ESI] = DATA;
	m.vcpu.gpr[EDI] = DATA + 64;
	m.vcpu.seg[SEG_SS] = ss;
}

static void who_writes(void)
{
	static const struct {
		const char *name;
		uint8_t code[8];
		uint16_t ss;
		gva_t gva;
		bool writes;
	} cases[] = {
		{ "mov %eax, (%ebx)", { 0x89, 0x03 }, VMP_SEL_USER_DS, DATA, true },
		{ "mov (%ebx), %eax", { 0x8b, 0x03 }, VMP_SEL_USER_DS, DATA, false },
		{ "add %eax, (%ebx)", { 0x01, 0x03 }, VMP_SEL_USER_DS, DATA + 3, true },
		{ "behind add %eax, (%ebx)", { 0x01, 0x03 }, VMP_SEL_USER_DS, DATA + 4, false },
		{ "movsb: its source", { 0xa4 }, VMP_SEL_USER_DS, DATA, false },
		{ "movsb: its target", { 0xa4 }, VMP_SEL_USER_DS, DATA + 64, true },
		{ "push %eax", { 0x50 }, VMP_SEL_USER_DS, BELOW, true },
		{ "push %eax does not touch the top", { 0x50 }, VMP_SEL_USER_DS, STACK, false },
		{ "push %eax, based", { 0x50 }, BASED, BASED_AT + BELOW, true },
		{ "push %eax, based, without its base", { 0x50 }, BASED, BELOW, false },
		{ "pop %eax", { 0x58 }, VMP_SEL_USER_DS, STACK, false },
		{ "pushal", { 0x60 }, VMP_SEL_USER_DS, STACK - 32, true },
		{ "call .", { 0xe8, 0, 0, 0, 0 }, VMP_SEL_USER_DS, BELOW, true },
		{ "lcall, a 32-bit segment, based",
		  { 0x9a, 0, 0, 1, 0, 0x97, 0 },
		  BASED,
		  BASED_AT + STACK - 8,
		  true },
		/* Such pushes are of a 64-bit processor. */
		{ "lcall to the window",
		  { 0x9a, 0, 0xd0, 0xff, 0xff, VMP_SEL_HOST64, 0 },
		  VMP_SEL_USER_DS,
		  STACK - 8,
		  true },
		{ "lcall to the window, based",
		  { 0x9a, 0, 0xd0, 0xff, 0xff, VMP_SEL_HOST64, 0 },
		  BASED,
		  STACK - 8,
		  true },
		{ "the same, with its base",
		  { 0x9a, 0, 0xd0, 0xff, 0xff, VMP_SEL_HOST64, 0 },
		  BASED,
		  BASED_AT + STACK - 8,
		  false },
		{ "its own code", { 0x89, 0x03 }, VMP_SEL_USER_DS, CODE, false },
		{ "no instruction", { 0x0f, 0xff, 0xff }, VMP_SEL_USER_DS, DATA, false },
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		at_user_code(cases[i].code, sizeof cases[i].code, cases[i].ss);
		if (insn_writes(&m, cases[i].gva) != cases[i].writes)
			CU_FAIL(cases[i].name);
	}
}

static void what_is_beyond_the_users_end(void)
{
	static const struct {
		const char *name;
		uint8_t code[8];
		gva_t ebx, gva;
		bool beyond;
		enum vcpu_access access;
	} cases[] = {
		{ "a read",
		  { 0x8b, 0x03 },
		  VMP_USER_LIMIT + 64,
		  VMP_USER_LIMIT + 64,
		  true,
		  ACCESS_READ },
		{ "a write", { 0x89, 0x03 }, VMP_USER_LIMIT, VMP_USER_LIMIT, true, ACCESS_WRITE },
		{ "a write across",
		  { 0x89, 0x03 },
		  VMP_USER_LIMIT - 2,
		  VMP_USER_LIMIT,
		  true,
		  ACCESS_WRITE },
		{ "a read and a write",
		  { 0x01, 0x03 },
		  VMP_USER_LIMIT,
		  VMP_USER_LIMIT,
		  true,
		  ACCESS_WRITE },
		{ "the last word", { 0x89, 0x03 }, VMP_USER_LIMIT - 4, 0, false, ACCESS_READ },
		{ "an address alone", { 0x8d, 0x03 }, VMP_USER_LIMIT, 0, false, ACCESS_READ },
	};
	enum vcpu_access access;
	gva_t gva;

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		at_user_code(cases[i].code, sizeof cases[i].code, VMP_SEL_USER_DS);
		m.vcpu.gpr[EBX] = cases[i].ebx;
		if (insn_beyond_user_limit(&m, &gva, &access) != cases[i].beyond ||
		    (cases[i].beyond && (gva != cases[i].gva || access != cases[i].access)))
			CU_FAIL(cases[i].name);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(who_writes),
		UNIT_TEST(what_is_beyond_the_users_end),
		UNIT_END
	};

	return UNIT_RUN("monitor_insn", tests);
}
