/* code.c - generates sequences; the kinds of slots are in kinds_*.c. */
#include "tests/diff/emit.h"

struct sequence sequence;
static bool hide_next;

/* ---- encoding */

void emit_byte(uint32_t value)
{
	unsigned at = sequence.bytes++;

	sequence.code[at] = (uint8_t)value;
	sequence.canonical[at] = (uint16_t)at;
	sequence.step_hidden[at] = hide_next;
	hide_next = false;
}

void emit_word(uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		emit_byte(value >> i * 8);
}

void emit_bytes(const char *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		emit_byte((uint8_t)bytes[i]);
}

void emit_text(const char *bytes)
{
	while (*bytes)
		emit_byte((uint8_t)*bytes++);
}

void emit_memory(unsigned reg)
{
	static const uint8_t pointers[] = { EBX, ESI, EDI, EBP };

	emit_byte(0x40 | reg << 3 | RANDOM_OF(pointers));
	emit_byte(random_below(32) - 16);
}

void emit_move(unsigned reg, uint32_t value)
{
	emit_byte(0xb8 | reg);
	emit_word(value, 4);
}

uint32_t emit_here(void) { return sequence.base + sequence.bytes; }
void emit_hide_next_step(void) { hide_next = true; }

void emit_sensitive(void)
{
#ifdef DIFF_VMP
	if (!sequence.user)
		EMIT("\xcd\x82");
#endif
}

void emit_sensitive_end(void)
{
#ifndef DIFF_VMP
	if (sequence.user)
		return;
	EMIT("\x90\x90");
	sequence.canonical[sequence.bytes - 2] = sequence.canonical[sequence.bytes - 1] =
		(uint16_t)sequence.bytes;
	sequence.step_hidden[sequence.bytes - 1] = hide_next = true;
#endif
}

void emit_as_one(unsigned from, unsigned bytes)
{
	while (sequence.bytes < from + bytes)
		emit_byte(0x90);
	for (unsigned at = from + 1; at < sequence.bytes; at++) {
		sequence.canonical[at] = (uint16_t)sequence.bytes;
		sequence.step_hidden[at] = true;
	}
}

/* ---- values */

uint32_t random_pointer(void)
{
	uint32_t area = random_chance(sequence.user ? 85 : 40) ? USER_AREA : KERNEL_AREA;
	uint32_t at = area + (AREA_DATA + random_below(AREA_PAGES - AREA_DATA)) * 4096;

	if (sequence.user && random_chance(4))
		return random_word() | VMP_USER_LIMIT;
	return random_chance(70) ? at + random_below(24) - 12 : at + random_below(4096);
}

uint32_t allowed_flags(void)
{
	switch (sequence.flavour) {
	case FLAVOUR_KERNEL:
	case FLAVOUR_KERNEL_STRICT:
		return ~(uint32_t)(EFLAGS_NT /* iret would look for a task */ | EFLAGS_ID);
	case FLAVOUR_USER: return ~(uint32_t)(EFLAGS_NT | EFLAGS_ID | EFLAGS_AC);
	case FLAVOUR_USER_STRICT: return ~(uint32_t)(EFLAGS_NT | EFLAGS_ID);
	case FLAVOUR_USER_FLAGS: return ~(uint32_t)EFLAGS_AC;
	}
	return 0;
}

uint32_t random_value(void)
{
	static const uint32_t special[] = { 0,      1,      0x7f,       0x80,       0xff,
					    0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff };

	return random_chance(50) ? RANDOM_OF(special) : random_word();
}

uint32_t bad_selector(void)
{
	static const uint16_t bad[] = { 5 * 8 + 7,  8 * 8 + 7,  9 * 8 + 7,   13 * 8 + 3,
					10 * 8 + 7, 15 * 8 + 7, SEL_TSS | 4, SEL_LDT | 4,
					32 * 8 + 7, 0xfff8,     0xffff };

	return RANDOM_OF(bad);
}

/* QEMU checks neither limits nor types when a segment is used.  So the selectors of the second list
 * are only loaded, or used in strict flavours. */
uint32_t good_selector(bool used)
{
	static const uint16_t wide[] = { SEL_USER_DS, SEL_USER_DS, 12 * 8 + 3 };
	static const uint16_t narrow[] = { 6 * 8 + 7,  VMP_GDT_ESPFIX * 8 + 7, 7 * 8 + 7,
					   14 * 8 + 3, VMP_SEL_PERCPU,         SEL_USER_CS,
					   0 };
	uint16_t selector =
		(used && !is_strict()) || random_chance(50) ? RANDOM_OF(wide) : RANDOM_OF(narrow);

	/* user code that goes beyond the user's limit in it */
	return selector == VMP_SEL_PERCPU && sequence.user ? 0 : selector;
}

uint32_t any_selector(void) { return random_chance(40) ? bad_selector() : good_selector(false); }

/* ---- sequences */

enum { KERNEL = 1, USER = 2, BOTH = 3 };
static const struct kind {
	const char *name;
	void (*emit)(void);
	uint8_t modes, weight;
} kinds[] = {
#define X(name, modes, weight) { #name, kind_##name, modes, weight },
#include "tests/diff/kinds.def"
#undef X
};

static const struct kind *choose(void)
{
	uint32_t mode = sequence.user ? USER : KERNEL, sum = 0, at;
	const struct kind *k;

	for (k = kinds; k < kinds + ARRAY_LEN(kinds); k++)
		sum += k->modes & mode ? k->weight : 0;
	at = random_below(sum);
	for (k = kinds; !(k->modes & mode) || at >= k->weight; k++)
		at -= k->modes & mode ? k->weight : 0;
	return k;
}

static void drop(const struct slot *s)
{
	for (unsigned i = s->at; i < s->at + s->bytes; i++) {
		sequence.code[i] = 0x90;
		sequence.canonical[i] = (uint16_t)i;
		sequence.step_hidden[i] = i == s->at && sequence.step_hidden[i];
	}
	hide_next = false;
}

static void emit_slot(struct slot *s, bool dropped)
{
	const struct kind *k = choose();

	s->name = k->name;
	s->at = (uint16_t)sequence.bytes;
	k->emit();
	s->bytes = (uint16_t)(sequence.bytes - s->at);
	s->sleeps = k->emit == kind_halt;
	if (dropped)
		drop(s);
}

static void write_code(void)
{
	uint8_t *code =
		(uint8_t *)frame_words(FRAME_CODE) + (sequence.base & 0xfffffff) - AREA_CODE * 4096;

	for (unsigned i = 0; i < sequence.bytes; i++)
		code[i] = sequence.code[i];
}

void sequence_generate(uint32_t dropped)
{
	static const uint8_t flavours[] = {
		FLAVOUR_KERNEL,     FLAVOUR_KERNEL,        FLAVOUR_KERNEL,      FLAVOUR_KERNEL,
		FLAVOUR_KERNEL,     FLAVOUR_KERNEL_STRICT, FLAVOUR_USER,        FLAVOUR_USER,
		FLAVOUR_USER,       FLAVOUR_USER,          FLAVOUR_USER_STRICT, FLAVOUR_USER_STRICT,
		FLAVOUR_USER_FLAGS,
	};
	unsigned count = 3 + random_below(MAX_SLOTS - 2);

	sequence.flavour = RANDOM_OF(flavours);
	sequence.user =
		sequence.flavour != FLAVOUR_KERNEL && sequence.flavour != FLAVOUR_KERNEL_STRICT;
	sequence.stepped = random_chance(10);
	sequence.timer = !sequence.stepped && random_chance(40);
	sequence.spaces = false;
	sequence.base = (sequence.user ? USER_AREA : KERNEL_AREA) + (AREA_CODE + 1) * 4096 -
			random_below(100);
	fpu_start(sequence.fxsave_image);
	sequence.bytes = 0;
	sequence.last = false;
	hide_next = false;
	for (sequence.slots = 0; sequence.slots < count && !sequence.last; sequence.slots++)
		emit_slot(&sequence.slot[sequence.slots], dropped >> sequence.slots & 1);
	sequence.slot[sequence.slots] = (struct slot){ "end", (uint16_t)sequence.bytes, 2, false };
	emit_byte(0xcd);
	emit_byte(VECTOR_END);
	write_code();
}

int sequence_slot(uint32_t eip)
{
	for (unsigned n = 0; n <= sequence.slots; n++)
		if (eip - sequence.base - sequence.slot[n].at < sequence.slot[n].bytes)
			return (int)n;
	return -1;
}
