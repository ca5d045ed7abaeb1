/* kinds_plain.c - instructions that run natively unless they fault: arithmetic, memory, strings,
 * the stack. */
#include "tests/diff/emit.h"

/* All flags are defined: add adc sbb sub cmp. */
static uint32_t operation(void)
{
	static const uint8_t operations[] = { 0x00, 0x10, 0x18, 0x28, 0x38 };

	return RANDOM_OF(operations);
}

void kind_alu(void)
{
	emit_byte(operation() | (random_chance(20) ? 0 : 1));
	emit_registers(data_register(), data_register());
}

/* Only strict flavours write to memory: when a read-modify-write faults, QEMU reports a read. */
void kind_alu_memory(void)
{
	uint32_t opcode = operation(), to_memory = is_strict() && random_chance(50) ? 0 : 2;

	if (random_chance(20))
		emit_byte(0x66);
	if (!to_memory && opcode != 0x38 /* cmp */ && random_chance(30))
		emit_byte(0xf0);
	emit_byte(opcode | to_memory | random_below(2));
	emit_memory(data_register());
}

void kind_data(void) { emit_move(data_register(), random_value()); }

void kind_pointer(void)
{
	static const uint8_t pointers[] = { EBX, ESI, EDI, EBP };

	emit_move(RANDOM_OF(pointers), random_pointer());
}

void kind_load(void) { emit_byte(random_chance(30) ? 0x8a : 0x8b); emit_memory(data_register()); }
void kind_store(void) { emit_byte(random_chance(30) ? 0x88 : 0x89); emit_memory(data_register()); }

void kind_rewrite(void)
{
	static const char *const opcodes[] = { "\xf0\x01",     "\xf0\x29", "\xf0\x0f\xb1",
					       "\xf0\x0f\xc1", "\x87",     "\x0f\xb1",
					       "\x0f\xc1" };

	if (!is_strict()) {
		kind_load();
	} else if (random_chance(20)) {
		EMIT("\xf0\x0f\xc7"); /* cmpxchg8b */
		emit_memory(1);
	} else if (random_chance(20)) {
		EMIT("\xf7"); /* neg */
		emit_memory(3);
	} else {
		emit_text(RANDOM_OF(opcodes));
		emit_memory(data_register());
	}
}

/* Through fs or gs, by an address in the instruction: near the beginning of based segments, and
 * near limits. */
void kind_override(void)
{
	uint32_t page = AREA_DATA + random_below(4);

	if (!is_strict()) {
		emit_move(EAX, good_selector(true));
		EMIT("\x8e\xe0"); /* mov %eax, %fs */
	}
	emit_byte(is_strict() ? 0x64 | random_below(2) : 0x64);
	emit_byte(0xa0 | random_below(4));
	emit_word((random_chance(50) ? USER_AREA : 0) + page * 4096 + random_below(120) - 12, 4);
}

/* Copy from one pointer to a place near it, but not so near that bytes are read which were just
 * written, whatever the pages are mapped to.  A processor does not notice such an overlap by
 * another address, and copies many bytes at a time. */
static void emit_repeated_copy(uint8_t opcode)
{
	enum { FAR = 128 };

	emit_byte(0x8d); /* lea N(%esi), %edi */
	emit_byte(0x80 | EDI << 3 | ESI);
	emit_word((random_below(5) - 2) * 0x1000 + FAR + random_below(0x1000 - 2 * FAR), 4);
	emit_byte(0xf3);
	emit_byte(opcode);
}

/* Each repetition ends at a page that is not present.  QEMU reads the second operand of cmps
 * first. */
void kind_string(void)
{
	static const uint8_t opcodes[] = { 0xa4, 0xa5, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf };
	static const uint8_t strict[] = { 0xa6, 0xa7 };
	uint8_t opcode = is_strict() && random_chance(30) ? RANDOM_OF(strict) : RANDOM_OF(opcodes);
	bool copies = opcode == 0xa4 || opcode == 0xa5, repeats = random_chance(70);

	if (random_chance(60))
		emit_move(ECX,
			  random_chance(80) ? random_below(40) : 0x2000 + random_below(0x1000));
	else
		/* its single steps end where it begins, which must not be behind padding */
		emit_byte(0x90);
	if (copies && repeats && !is_strict())
		return emit_repeated_copy(opcode);
	if (repeats)
		emit_byte(random_chance(70) ? 0xf3 : 0xf2);
	if (random_chance(15))
		emit_byte(0x66);
	emit_byte(opcode);
}

void kind_push(void) { emit_byte(0x50 | data_register()); }
void kind_pop(void) { emit_byte(0x58 | data_register()); }

/* The stack of user code may be anywhere. */
void kind_stack(void)
{
	emit_move(ESP, random_pointer());
}

void kind_stack_operation(void)
{
	switch (random_below(is_strict() ? 7 : 5)) {
	/* pusha, popa: QEMU begins at the other end */
	case 6: emit_byte(0x60); break;
	case 5: emit_byte(0x61); break;
	case 0: EMIT("\x6a\x55\x66\x6a\x33"); break; /* push, pushw */
	case 1: emit_byte(0xff); emit_memory(6); break; /* push memory */
	case 2: emit_byte(0x8f); emit_memory(0); break; /* pop memory */
	case 3: EMIT("\xc8\x00\x00\x00"); break;     /* enter $0, $0 */
	case 4: EMIT("\xe8\x00\x00\x00\x00"); break; /* call */
	}
}

void kind_divide(void)
{
	static const uint8_t forms[] = { 0xf0, 0xf8 };
	static const uint8_t values[] = { 0, 1, 3, 0xff };

	emit_move(ECX, RANDOM_OF(values));
	if (random_chance(50))
		emit_move(EDX, random_below(2));
	emit_byte(random_chance(30) ? 0xf6 : 0xf7);
	emit_byte(RANDOM_OF(forms) | ECX);
	emit_hide_next_step(); /* it has left no flag defined: cmp */
	EMIT("\x39\xc8");
}

/* followed by a nop: a tracer can distinguish #OF from a #GP only if the next instruction is
 * harmless */
void kind_into(void) { EMIT("\xce\x90"); }
/* Aligned: of a pair of bounds of which only the first one can be read, a processor may compare
 * that one before it misses the other. */
void kind_bound(void)
{
	emit_move(EBX, random_pointer() & ~7u);
	emit_byte(0x62);
	emit_byte((uint8_t)(data_register() << 3 | EBX));
}

/* Jump to an address where nothing is mapped, or into the kernel. */
void kind_jump(void)
{
	static const uint32_t targets[] = { USER_AREA,
					    USER_AREA + 3 * 4096 + 5,
					    USER_AREA + 8 * 4096,
					    KERNEL_AREA,
					    KERNEL_AREA + AREA_DATA * 4096,
					    DIRECT + 0x100000,
					    0xffffffff,
					    0xf0000000,
					    0 };
	uint32_t target = RANDOM_OF(targets);

	sequence.last = true;
	if (random_chance(50)) {
		emit_move(EAX, target);
		emit_byte(0xff);
		emit_byte(0xd0 | random_below(2) << 4); /* call or jump: d0 or e0 */
	} else {
		emit_byte(0x68);
		emit_word(target, 4);
		emit_byte(0xc3);
	}
}

/* Instructions that are invalid, or too long. */
void kind_undefined(void)
{
	static const char *const codes[] = { "\x0f\x0b", "\xf0\x90", "\x8e\xc8", "\x0f\xff\xc0",
					     "\xff\xff" };
	/* QEMU does not mind all of them */
	static const char *const locked[] = { "\xf0\xfa", "\xf0\x89\xc1", "\xf0\x0f\x20\xc0" };

	if (random_chance(25)) {
		for (unsigned i = 0; i < 15; i++)
			emit_byte(0x2e);
		emit_byte(sequence.user ? 0x90 : 0xfa);
		return;
	}
	emit_text(is_strict() && random_chance(50) ? RANDOM_OF(locked) : RANDOM_OF(codes));
}

/* The counter differs every time. */
void kind_counter(void)
{
	unsigned from = sequence.bytes;

	EMIT("\x90\x0f\x31"); /* behind sti an interrupt comes before the counter is read */
	emit_move(EAX, random_value());
	emit_move(EDX, random_value());
	emit_as_one(from, 0);
}
