/* kinds_fpu.c - x87 and SSE: registers and memory; in the strict flavours also unmasked exceptions,
 * stack faults and special operands.
 *
 * The other flavours avoid what QEMU does differently from a processor: x87 stack faults (four
 * registers are full at the start, and only register forms push and pop), exceptions, denormal
 * operands, stores (which on QEMU leave flags or half of the value behind when they fault), and
 * fcomi (which leaves OF and AF).
 */
#include "tests/diff/emit.h"

static unsigned depth; /* how many x87 registers are full, in the flavours where that is certain */

/* ---- the state at the beginning */

enum {
	FXSAVE_CONTROL = 0,
	FXSAVE_STATUS = 2,
	FXSAVE_TAGS = 4,
	FXSAVE_MXCSR = 24,
	FXSAVE_X87 = 32,
	FXSAVE_XMM = 160
};

static void put(uint8_t *at, uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> i * 8);
}

static void put_x87(uint8_t *at)
{
	static const struct { uint32_t low, high; uint16_t exponent;
	} values[] = {
		{ 0, 0x80000000, 0x3fff },
		{ 0, 0x80000000, 0xbfff },
		{ 0, 0xc0000000, 0x4000 },
		{ 0, 0, 0 },
		{ 0, 0, 0x8000 },
		{ 0, 0x80000000, 0x7fff },
		{ 0, 0x80000000, 0xffff },
		{ 0, 0xc0000000, 0x7fff },
		{ ~0u, ~0u, 0x7ffe },
		{ 1, 0x80000000, 0x0001 },
		{ 0xdeadbeef, 0x8badf00d, 0x403e },
		/* denormal, signalling, unnormal */
		{ 1, 0, 0 },
		{ 1, 0x80000000, 0x7fff },
		{ 0, 0x40000000, 0x3fff },
	};
	unsigned n = random_below(ARRAY_LEN(values) - (is_strict() ? 0 : 3));

	put(at, values[n].low, 4);
	put(at + 4, values[n].high, 4);
	put(at + 8, values[n].exponent, 2);
}

static uint32_t random_single(void)
{
	static const uint32_t values[] = { 0,          0x80000000, 0x3f800000, 0xbf800000,
					   0x3fc00000, 0x7f800000, 0xff800000, 0x7fc00000,
					   0x7f7fffff, 0x00800000, 0x4b000001, 0x00000001,
					   0x7f800001 };

	if (random_chance(40)) /* a normal one */
		return (random_word() & 0x87ffffff) | 0x38000000;
	return values[random_below(ARRAY_LEN(values) - (is_strict() ? 0 : 2))];
}

void fpu_start(uint8_t image[512])
{
	uint32_t rounding = random_below(4);

	depth = 4;
	put(image + FXSAVE_CONTROL,
	    is_strict() ? (random_word() & 0xf3f) | 0x40 : 0x37f | rounding << 10, 2);
	put(image + FXSAVE_STATUS, is_strict() && random_chance(30) ? random_word() & 0x3f : 0, 2);
	put(image + FXSAVE_TAGS, is_strict() ? random_word() : 0x0f, 1);
	put(image + FXSAVE_MXCSR, is_strict() ? random_word() & 0xffff : 0x1f80 | rounding << 13,
	    4);
	for (unsigned i = 0; i < 8; i++)
		put_x87(image + FXSAVE_X87 + i * 16);
	for (unsigned i = 0; i < 32; i++)
		put(image + FXSAVE_XMM + i * 4, random_single(), 4);
}

/* Of two NaNs in an SSE operation a processor returns the first, but QEMU the one with the larger
 * fraction. */
static uint32_t comparable(uint32_t single)
{
	bool nan = (single & 0x7f800000) == 0x7f800000 && single & 0x007fffff;

	return nan && !is_strict() ? 0x7fc00000 : single;
}

/* QEMU sets neither DE nor the condition codes as a processor does. */
void fpu_record(const uint8_t image[512])
{
	const uint32_t *word = (const uint32_t *)image;

	record("fpu control", word[0] & 0xffff, ~0u);
	record("fpu status", word[0] >> 16, ~0x4702u);
	record("fpu tags", word[1] & 0xff, ~0u);
	record("mxcsr", word[6], ~2u);
	for (unsigned i = 0; i < 8; i++) {
		record("st low", word[8 + i * 4], ~0u);
		record("st high", word[9 + i * 4], ~0u);
		record("st exponent", word[10 + i * 4] & 0xffff, ~0u);
	}
	for (unsigned i = 0; i < 32; i++)
		record("xmm", comparable(word[40 + i]), ~0u);
}

/* ---- x87 */

static void x87_strict(void)
{
	static const char *const forms[] = {
		"\xd9\xe8", "\xd9\xee", "\xd9\xc1", "\xdd\xd8", "\xde\xc1", "\xde\xf9", "\xd9\xfa",
		"\xd9\xfc", "\xd9\xf4", "\xd9\xfd", "\xd9\xf8", "\xd9\xe4", "\xd9\xe5", "\xdf\xe0",
		"\xdb\xe2", "\xdb\xe3", "\x0f\x77", "\x9b",     "\xd9\xf6", "\xd9\xf7", "\xdd\xc0",
		"\xdf\xf1", "\xda\xe9", "\xd9\xd0", "\xdb\xf1", "\xdb\xe9",
	};
	static const uint8_t escapes[] = { 0xd8, 0xda, 0xdc, 0xde, 0xdb, 0xdd, 0xdf, 0xd9 };
	static const uint8_t stores[][2] = { { 0xd9, 2 }, { 0xdd, 2 }, { 0xdb, 2 }, { 0xd9, 3 },
					     { 0xdd, 3 }, { 0xdb, 7 }, { 0xdf, 7 }, { 0xdd, 1 },
					     { 0xdb, 3 }, { 0xdf, 6 } };
	uint32_t choice = random_below(10);

	if (choice < 5) {
		emit_text(RANDOM_OF(forms));
	} else if (choice < 7) { /* arithmetic with memory, of whole numbers too */
		emit_byte(escapes[random_below(4)]);
		emit_memory(random_below(8));
	} else if (choice < 9) {
		unsigned n = random_below(ARRAY_LEN(stores));

		emit_byte(stores[n][0]);
		emit_memory(stores[n][1]);
	} else { /* loads */
		emit_byte(escapes[4 + random_below(4)]);
		emit_memory(0);
	}
}

static void x87_push(void)
{
	static const char *const forms[] = { "\xd9\xe8", "\xd9\xee", "\xd9\xc1", "\xd9\xeb" };

	depth++;
	emit_text(RANDOM_OF(forms));
}

static void x87_pop(void)
{
	static const char *const forms[] = { "\xdd\xd9", "\xde\xc1", "\xde\xc9", "\xde\xe9",
					     "\xde\xf9" };

	depth--;
	emit_text(RANDOM_OF(forms));
}

void kind_x87(void)
{
	static const char *const forms[] = { "\xd8\xc1", "\xd8\xc9", "\xd8\xe1", "\xd8\xf1",
					     "\xdc\xc1", "\xdc\xc9", "\xd9\xe0", "\xd9\xe1",
					     "\xd9\xfa", "\xd9\xfc", "\xd9\xc9", "\x9b" };
	static const uint8_t arithmetic[] = { 0, 1, 4, 5, 6, 7 };
	uint32_t choice = random_below(8);

	if (is_strict()) {
		x87_strict();
	} else if (choice == 0 && depth < 8) {
		x87_push();
	} else if (choice == 1 && depth > 3) {
		x87_pop();
	} else if (choice < 4) {
		emit_byte(random_chance(50) ? 0xd8 : 0xdc);
		emit_memory(RANDOM_OF(arithmetic));
	} else {
		emit_text(RANDOM_OF(forms));
	}
}

/* ---- SSE */

static void prefix(void)
{
	static const uint8_t prefixes[] = { 0x66, 0xf2, 0xf3 };
	unsigned n = random_below(4);

	if (n < ARRAY_LEN(prefixes))
		emit_byte(prefixes[n]);
}

static void operand(unsigned reg)
{
	if (is_strict() && random_chance(50))
		emit_memory(reg);
	else
		emit_registers(reg, random_below(8));
}

void kind_sse(void)
{
	static const uint8_t arithmetic[] = { 0x51, 0x58, 0x59, 0x5c, 0x5d, 0x5e, 0x5f };
	static const uint8_t conversions[] = { 0x2c, 0x2d },
			     integer[] = { 0xfc, 0xfe, 0xd4, 0xef, 0xeb, 0xdb, 0x75, 0x62 };

	switch (random_below(7)) {
	case 0: /* movups */
		emit_byte(0x0f);
		emit_byte(0x10 | (is_strict() && random_chance(50)));
		emit_memory(random_below(8));
		break;
	case 1: /* movaps: from where it is aligned, mostly not */
		emit_byte(0x0f);
		emit_byte(0x28);
		operand(random_below(8));
		break;
	case 2: /* to a whole number */
		emit_byte(random_chance(50) ? 0xf2 : 0xf3);
		emit_byte(0x0f);
		emit_byte(RANDOM_OF(conversions));
		operand(data_register());
		break;
	case 3: /* comis, ucomis */
		if (random_chance(50))
			emit_byte(0x66);
		emit_byte(0x0f);
		emit_byte(0x2e | random_below(2));
		operand(random_below(8));
		break;
	case 4:
		EMIT("\x66\x0f");
		emit_byte(RANDOM_OF(integer));
		operand(random_below(8));
		break;
	default:
		prefix();
		emit_byte(0x0f);
		emit_byte(RANDOM_OF(arithmetic));
		operand(random_below(8));
	}
}

void kind_mxcsr(void)
{
	emit_byte(0x68);
	emit_word(is_strict() ? random_word() & (random_chance(90) ? 0xffff : 0x1ffff)
			      : 0x1f80 | random_below(4) << 13,
		  4);
	EMIT("\x0f\xae\x14\x24\x8d\x64\x24\x04"); /* ldmxcsr (%esp); lea 4(%esp), %esp */
}
