/* vcpu_locked.c - which instructions are locked ones (vcpu/locked.h). */
#include "tests/unit/unit.h"
#include "vcpu/locked.h"
#include "vcpu/pause.h"

static const struct code {
	const char *text;
	unsigned bytes;
	uint8_t code[8];
	bool locked;
} codes[] = {
	{ "lock xadd", 4, { 0xf0, 0x0f, 0xc1, 0x07 }, true },
	{ "lock, alone on its page", 1, { 0xf0 }, true },
	{ "gs lock dec", 3, { 0x65, 0xf0, 0xff }, true },
	{ "lock gs dec", 3, { 0xf0, 0x65, 0xff }, true },
	{ "16-bit lock inc", 3, { 0x66, 0xf0, 0xff }, true },
	{ "xchg with memory", 2, { 0x87, 0x07 }, true },
	{ "xchg of a byte with memory", 2, { 0x86, 0x47 }, true },
	{ "xrelease xchg", 3, { 0xf3, 0x87, 0x07 }, true },
	{ "xchg of registers", 2, { 0x87, 0xc3 }, false },
	{ "xchg, the rest on the next page", 1, { 0x87 }, false },
	{ "a prefix, the rest on the next page", 1, { 0x66 }, false },
	{ "mov", 2, { 0x89, 0x07 }, false },
	{ "gs mov", 3, { 0x65, 0x8b, 0x07 }, false },
	{ "mov of f0 to a byte", 3, { 0xc6, 0x07, 0xf0 }, false },
	{ "rep movs", 2, { 0xf3, 0xa5 }, false },
	{ "prefixes and no end", 8, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66 }, false },
	{ "nothing", 0, { 0xf0 }, false },
};

static void each_is_known(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(codes); i++)
		if (locked_insn(codes[i].code, codes[i].bytes) != codes[i].locked)
			CU_FAIL_FATAL(codes[i].text);
}

/* Each segment and size prefix may stand before LOCK, and none makes a plain store a locked one. */
static void prefixes_are_passed(void)
{
	static const uint8_t prefix[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66,
					  0x67, 0xf2, 0xf3 };

	for (unsigned i = 0; i < ARRAY_LEN(prefix); i++) {
		const uint8_t locked[] = { prefix[i], 0xf0, 0xff, 0x07 };
		const uint8_t plain[] = { prefix[i], 0x89, 0x07 };

		CU_ASSERT(locked_insn(locked, sizeof locked));
		CU_ASSERT(!locked_insn(plain, sizeof plain));
	}
}

static void a_pause_is_known(void)
{
	static const uint8_t pause[] = { 0xf3, 0x90, 0xf0 }, nop[] = { 0x90, 0x90 },
			     rep[] = { 0xf3, 0xa5 };

	CU_ASSERT(pause_insn(pause, sizeof pause));
	CU_ASSERT(pause_insn(pause, PAUSE_BYTES));
	CU_ASSERT(!pause_insn(pause, PAUSE_BYTES - 1));
	CU_ASSERT(!pause_insn(nop, sizeof nop));
	CU_ASSERT(!pause_insn(rep, sizeof rep));
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_is_known),
		UNIT_TEST(prefixes_are_passed),
		UNIT_TEST(a_pause_is_known),
		UNIT_END
	};

	return UNIT_RUN("locked instructions", tests);
}
