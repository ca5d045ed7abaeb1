/* emit.h - for the files that generate code (kinds_*.c): encoding, and the operands' values.
 *
 * EBX, ESI, EDI and EBP always point into an area, mostly near a page's border; EAX, ECX and EDX
 * hold data.  In kernel mode ESP stays in its stack.  So kernel code can access nothing but the
 * areas, whatever the random numbers are.
 */
#ifndef TESTS_DIFF_EMIT_H
#define TESTS_DIFF_EMIT_H

#include "tests/diff/diff.h"

enum { EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI };
enum { ES, CS, SS, DS, FS, GS };

/* ---- encoding */
void emit_byte(uint32_t value);
void emit_word(uint32_t value, unsigned bytes);
void emit_bytes(const char *bytes, unsigned count);
#define EMIT(string) emit_bytes(string, sizeof(string) - 1)
void emit_text(const char *bytes); /* up to a zero */
void emit_memory(unsigned reg); /* ModRM with one of the pointers, and a small displacement */
static inline void emit_registers(unsigned reg, unsigned rm) { emit_byte(0xc0 | reg << 3 | rm); }
void emit_move(unsigned reg, uint32_t value);
uint32_t emit_here(void); /* the linear address of what comes next */

/* A sensitive instruction in kernel mode.  For vmp a marker precedes it; on other machines padding
 * of the same length follows it, and counts as the next instruction.  A single step over the
 * instruction ends at the padding; steps over the padding are not recorded. */
void emit_sensitive(void);
void emit_sensitive_end(void);
#define EMIT_SENSITIVE(string) \
	do { \
		emit_sensitive(); \
		EMIT(string); \
		emit_sensitive_end(); \
	} while (0)
/* Treat the code from this offset on as one instruction, and pad it with nops to `bytes`. */
void emit_as_one(unsigned from, unsigned bytes);
void emit_hide_next_step(void);

/* ---- values */
static inline unsigned data_register(void) { return random_below(3); }
static inline bool is_strict(void)
{
	return sequence.flavour == FLAVOUR_USER_STRICT || sequence.flavour == FLAVOUR_KERNEL_STRICT;
}
uint32_t random_value(void);
/* Return a random selector.  TI is set as the ABI requires, except in null selectors and those
 * beyond the table.  `used`: a memory operand will use it. */
uint32_t bad_selector(void);
uint32_t good_selector(bool used);
uint32_t any_selector(void);

#define X(name, modes, weight) void kind_##name(void);
#include "tests/diff/kinds.def"
#undef X

#endif
