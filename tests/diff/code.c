/* code.c - generates sequences: what may stand in a slot, and how it is encoded.
 *
 * EBX, ESI, EDI and EBP always point at an area (near a page's border, mostly), EAX, ECX and EDX hold data; in kernel mode
 * ESP stays in its stack.  So kernel code can touch nothing but the areas, whatever comes up.
 */
#include "tests/diff/diff.h"

struct sequence sequence;

enum { EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI };
enum { ES, CS, SS, DS, FS, GS };

/* ---- encoding */

static bool hide_next;

static void byte(uint32_t value)
{
	unsigned at = sequence.bytes++;

	sequence.code[at] = (uint8_t)value;
	sequence.canonical[at] = (uint16_t)at;
	sequence.step_hidden[at] = hide_next;
	hide_next = false;
}

static void word(uint32_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		byte(value >> i * 8);
}

static void bytes(const char *hex, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		byte((uint8_t)hex[i]);
}
#define BYTES(string) bytes(string, sizeof(string) - 1)

/* A sensitive instruction in kernel mode: behind a marker for vmp; elsewhere as much padding follows it, which counts as
 * what comes next.  A single step over the instruction ends at the padding, and those over the padding do not count. */
static void sensitive(void)
{
#ifdef DIFF_VMP
	if (!sequence.user)
		bytes("\xcd\x82", 2);
#endif
}

static void sensitive_end(void)
{
#ifndef DIFF_VMP
	if (sequence.user)
		return;
	BYTES("\x90\x90");
	sequence.canonical[sequence.bytes - 2] = sequence.canonical[sequence.bytes - 1] = (uint16_t)sequence.bytes;
	sequence.step_hidden[sequence.bytes - 1] = hide_next = true;
#endif
}

#define SENSITIVE(string) do { sensitive(); BYTES(string); sensitive_end(); } while (0)

/* ModRM with one of the pointers, and a small displacement. */
static void memory(unsigned reg)
{
	static const uint8_t pointers[] = { EBX, ESI, EDI, EBP };

	byte(0x40 | reg << 3 | RANDOM_OF(pointers));
	byte(random_below(32) - 16);
}

static unsigned data_register(void) { return random_below(3); }
static void registers(unsigned reg, unsigned rm) { byte(0xc0 | reg << 3 | rm); }
static void move_immediate(unsigned reg, uint32_t value) { byte(0xb8 | reg); word(value, 4); }

/* ---- values */

/* Near the border of a page of data, mostly; the code differs by build. */
uint32_t random_pointer(void)
{
	uint32_t area = random_chance(sequence.user ? 85 : 40) ? USER_AREA : KERNEL_AREA;
	uint32_t at = area + (AREA_DATA + random_below(AREA_PAGES - AREA_DATA)) * 4096;

	return random_chance(70) ? at + random_below(24) - 12 : at + random_below(4096);
}

uint32_t allowed_flags(void)
{
	switch (sequence.flavour) {
	case FLAVOUR_KERNEL: return ~(uint32_t)(EFLAGS_NT /* iret would look for a task */ | EFLAGS_ID);
	case FLAVOUR_USER: return ~(uint32_t)(EFLAGS_NT | EFLAGS_ID | EFLAGS_AC);
	case FLAVOUR_USER_STRICT: return ~(uint32_t)(EFLAGS_NT | EFLAGS_ID);
	case FLAVOUR_USER_FLAGS: return ~(uint32_t)EFLAGS_AC;
	}
	return 0;
}

static uint32_t value(void)
{
	static const uint32_t special[] = { 0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff };

	return random_chance(50) ? RANDOM_OF(special) : random_word();
}

/* TI is set as the ABI wants it, but for null selectors and those beyond the table. */
static uint32_t bad_selector(void)
{
	static const uint16_t bad[] = { 5 * 8 + 7, 8 * 8 + 7, 9 * 8 + 7, 13 * 8 + 3, 10 * 8 + 7, 15 * 8 + 7, SEL_TSS | 4, SEL_LDT | 4,
					32 * 8 + 7, 0xfff8, 0xffff };

	return RANDOM_OF(bad);
}

/* QEMU looks at neither limits nor types when a segment is used: those of the second list are only loaded, or strict. */
static uint32_t good_selector(bool used)
{
	static const uint16_t wide[] = { SEL_USER_DS, SEL_USER_DS, 12 * 8 + 3 };
	static const uint16_t narrow[] = { 6 * 8 + 7, VMP_GDT_ESPFIX * 8 + 7, 7 * 8 + 7, 14 * 8 + 3, VMP_SEL_PERCPU, SEL_USER_CS, 0 };

	if (used && sequence.flavour != FLAVOUR_USER_STRICT)
		return RANDOM_OF(wide);
	return random_chance(50) ? RANDOM_OF(wide) : RANDOM_OF(narrow);
}

static uint32_t selector(void) { return random_chance(40) ? bad_selector() : good_selector(false); }

/* ---- kinds */

static void kind_alu(void)
{
	static const uint8_t operations[] = { 0x00, 0x10, 0x18, 0x28, 0x38 }; /* add adc sbb sub cmp: all flags are defined */

	byte(RANDOM_OF(operations) | (random_chance(20) ? 0 : 1));
	registers(data_register(), data_register());
}

static void kind_data(void) { move_immediate(data_register(), value()); }

static void kind_pointer(void)
{
	static const uint8_t pointers[] = { EBX, ESI, EDI, EBP };

	move_immediate(RANDOM_OF(pointers), random_pointer());
}

static void kind_load(void) { byte(random_chance(30) ? 0x8a : 0x8b); memory(data_register()); }
static void kind_store(void) { byte(random_chance(30) ? 0x88 : 0x89); memory(data_register()); }
static void kind_cli(void) { byte(0xfa); }
static void kind_sti(void)
{
	byte(0xfb);
	hide_next = true; /* not all machines have a single step end behind it */
}


static void kind_pushf(void)
{
	SENSITIVE("\x9c");
	byte(0x58 | data_register());
}

static void kind_popf(void)
{
	uint32_t flags = random_word() & allowed_flags();

	byte(0x68);
	word(random_chance(70) ? flags & ~(uint32_t)EFLAGS_TF : flags, 4);
	SENSITIVE("\x9d");
}

static void kind_int(void)
{
	static const uint8_t kernel[] = { 0, 5, 6, 7, VECTOR_PLAIN, VECTOR_TRAP, VECTOR_KERNEL, VECTOR_SYSCALL };
	static const uint8_t user[] = { 0, 6, 13, 14, VECTOR_PLAIN, VECTOR_TRAP, VECTOR_KERNEL, VECTOR_SYSCALL, 0x82, 0x83, 0xff };

	byte(0xcd);
	byte(sequence.user ? RANDOM_OF(user) : RANDOM_OF(kernel));
}

static void kind_int3(void) { byte(0xcc); }
static void kind_into(void) { BYTES("\xce\x90"); } /* a tracer tells it from a #GP of what follows by that being harmless */
static void kind_bound(void) { byte(0x62); memory(data_register()); }

static void kind_load_segment(void)
{
	static const uint8_t segments[] = { ES, DS, FS, GS, FS, GS, SS, CS };
	static const char *const own[] = { [ES] = "\x16\x07", [SS] = "\x16\x17\x90", [DS] = "\x16\x1f" }; /* push %ss; pop */
	unsigned segment = RANDOM_OF(segments);
	bool used = segment <= DS, fixed = used && !sequence.user;
	uint32_t value;

	if (fixed && own[segment] && random_chance(50)) {
		for (const char *b = own[segment]; *b; b++) /* a sti must not follow the load of SS: which shadow counts is open */
			byte((uint8_t)*b);
		return;
	}
	/* vmp's kernel runs at level 3: nothing stops it when it takes a user's segment for its stack, and user segments end
	 * at 3 GiB. */
	if (fixed || random_chance(40))
		value = fixed && segment == SS ? 9 * 8 + 7 : bad_selector();
	else
		value = good_selector(used);
	move_immediate(EAX, value);
	byte(0x8e);
	registers(segment, EAX);
}

static void kind_question(void)
{
	move_immediate(EAX, selector());
	sensitive();
	byte(0x0f);
	if (random_chance(50)) { /* lar, lsl */
		byte(2 + random_below(2));
		registers(data_register(), EAX);
	} else { /* verr, verw */
		byte(0);
		registers(4 + random_below(2), EAX);
	}
	sensitive_end();
}

static void kind_store_table(void) /* sgdt, sidt; sldt, str; smsw */
{
	static const uint8_t forms[][2] = { { 1, 0 }, { 1, 1 }, { 0, 0 }, { 0, 1 }, { 1, 4 } };
	const uint8_t *form = RANDOM_OF(forms);

	move_immediate(EBX, random_pointer() & ~7u); /* half of it may be written before the other half faults */
	sensitive();
	byte(0x0f);
	byte(form[0]);
	byte(form[1] << 3 | EBX);
	sensitive_end();
}

static void kind_control(void)
{
	static const uint8_t numbers[] = { 0, 2, 3, 4 };

	BYTES("\x0f\x20");
	registers(RANDOM_OF(numbers), data_register());
}

static void kind_invlpg(void) { BYTES("\x0f\x01"); memory(7); }
static void kind_undefined(void) { BYTES("\x0f\x0b"); }
static void kind_privileged(void)
{
	static const uint8_t user[] = { 0xf4, 0xfa, 0xfb, 0xec, 0xee, 0x6c, 0x6e };

	byte(RANDOM_OF(user));
}

/* Posted to ourselves; the jump has QEMU look for interrupts. */
static void kind_ipi(void)
{
	BYTES("\x36\xc7\x05");
	word(APIC_AREA + 0x300, 4);
	word(0x40000 | VECTOR_IPI, 4);
	BYTES("\xeb\x00");
	sequence.canonical[sequence.bytes - 2] = (uint16_t)sequence.bytes;
	sequence.canonical[sequence.bytes - 1] = (uint16_t)sequence.bytes;
}

static void kind_halt(void)
{
	byte(0xfa);
	kind_ipi();
	BYTES("\xfb\xf4");
}

enum { KERNEL = 1, USER = 2, BOTH = 3 };
static const struct kind { const char *name; void (*emit)(void); uint8_t modes, weight; } kinds[] = {
#define X(name, modes, weight) { #name, kind_##name, modes, weight },
#include "tests/diff/kinds.def"
#undef X
};

/* ---- sequences */

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

void sequence_generate(uint32_t dropped)
{
	static const uint8_t flavours[] = {
		FLAVOUR_KERNEL, FLAVOUR_KERNEL, FLAVOUR_KERNEL, FLAVOUR_KERNEL, FLAVOUR_KERNEL, FLAVOUR_USER, FLAVOUR_USER, FLAVOUR_USER,
		FLAVOUR_USER_STRICT, FLAVOUR_USER_FLAGS,
	};
	unsigned count = 3 + random_below(MAX_SLOTS - 2);

	sequence.flavour = RANDOM_OF(flavours);
	sequence.user = sequence.flavour != FLAVOUR_KERNEL;
	sequence.timer = random_chance(25);
	sequence.bytes = 0;
	hide_next = false;
	for (sequence.slots = 0; sequence.slots < count; sequence.slots++) {
		struct slot *s = &sequence.slot[sequence.slots];
		const struct kind *k = choose();

		s->name = k->name;
		s->at = (uint16_t)sequence.bytes;
		k->emit();
		s->bytes = (uint16_t)(sequence.bytes - s->at);
		s->sleeps = k->emit == kind_halt;
		if (dropped >> sequence.slots & 1)
			drop(s);
	}
	sequence.slot[count] = (struct slot){ "end", (uint16_t)sequence.bytes, 2, false };
	byte(0xcd);
	byte(VECTOR_END);
	sequence.base = (sequence.user ? USER_AREA : KERNEL_AREA) + (AREA_CODE + 1) * 4096 - random_below(sequence.bytes + 8);
	for (unsigned i = 0; i < sequence.bytes; i++)
		((uint8_t *)frame_words(FRAME_CODE))[(sequence.base + i) - (sequence.base & 0xf0000000) - AREA_CODE * 4096] = sequence.code[i];
}

int sequence_slot(uint32_t eip)
{
	for (unsigned n = 0; n <= sequence.slots; n++)
		if (eip - sequence.base - sequence.slot[n].at < sequence.slot[n].bytes)
			return (int)n;
	return -1;
}
