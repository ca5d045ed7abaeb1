/* diff.h - the test kernel's own declarations.
 *
 * A slot is one instruction and its preparation.  A sequence is some slots in the code page of one
 * of the areas, run in user or kernel mode from a random state.  Its results are recorded
 * (record.c) and become a line of two digests.  A sequence is a pure function of the seed and its
 * number, so all machines must print the same line.
 */
#ifndef TESTS_DIFF_DIFF_H
#define TESTS_DIFF_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/diff/platform.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum {
	EFLAGS_STATUS = 0x8d5,
	EFLAGS_TF = 0x100,
	EFLAGS_IF = 0x200,
	EFLAGS_DF = 0x400,
	EFLAGS_OF = 0x800,
	EFLAGS_NT = 0x4000,
	EFLAGS_RF = 0x10000,
	EFLAGS_AC = 0x40000,
	EFLAGS_ID = 0x200000,
	EFLAGS_FIXED = 2,
};

/* The stack frame of an entry (entry.S).  After an entry from kernel mode esp and ss are absent. */
struct frame {
	uint32_t edi, esi, ebp, pusha_esp, ebx, edx, ecx, eax, gs, fs, es, ds, vector, error, eip,
		cs, eflags, esp, ss;
};
static inline bool from_user(const struct frame *f) { return f->cs & 3; }

/* ---- entry.S */
extern uint32_t return_by_window;
extern const char vectors[];
void *memcpy(void *to, const void *from, unsigned bytes);
void *memset(void *to, int value, unsigned bytes);
void load_tables(const void *gdtr, const void *idtr);
void run_sequence(struct frame *f, const void *fxsave_image);
void end_sequence(void) __attribute__((noreturn));
void trap(struct frame *f);
void kernel_main(const uint32_t *multiboot);

/* ---- random.c: the same numbers everywhere */
void random_seed(uint32_t seed, uint32_t number);
uint32_t random_word(void);
static inline uint32_t random_below(uint32_t n)
{
	return (uint32_t)((uint64_t)random_word() * n >> 32);
}
static inline bool random_chance(uint32_t percent) { return random_below(100) < percent; }
#define RANDOM_OF(table) ((table)[random_below(ARRAY_LEN(table))])

/* ---- machine.c */
/* The pages of each area, which stands at USER_AREA and at KERNEL_AREA. */
enum area_page {
	AREA_CODE = 1,
	AREA_DATA = 4,
	AREA_READ_ONLY = 6,
	AREA_DATA2 = 7,
	AREA_STACK = 9,
	AREA_ALIAS = 12,
	AREA_PAGES = 14,
};
#define CR0_START 0x80050033 /* PG AM WP NE ET MP PE */
enum { CR4_START = 0x690 };  /* OSXMMEXCPT OSFXSR PGE PSE */
enum { FRAME_CODE = 0, FRAME_FIRST = 2, FRAMES = 7 }; /* FRAME_FIRST and up are data */
static inline void *physical(uint32_t address) { return (void *)(address + DIRECT); }
static inline uint32_t *frame_words(unsigned frame) { return physical(PHYS_FRAMES + frame * 4096); }
enum { ENTRY_ACCESSED = 0x20 };
uint32_t *area_entry(uint32_t area, unsigned page);
void machine_init(void);
void areas_reset(void); /* entries and contents as at the beginning of every sequence */
void machine_reset(void); /* reset the processor state that sequences may have changed */
void apic_end(void);
void apic_timer(uint32_t count); /* 0: off */
void apic_post_self(uint32_t vector);
void apic_post_nmi(void);
void write_text(const char *text, uint32_t bytes);
void machine_end(void) __attribute__((noreturn));

/* ---- spaces.c */
void spaces_init(void);
/* Load the first directory; reset the others if the sequence needs them. */
void spaces_reset(void);
void spaces_switch(uint32_t choice);
void spaces_record(void);

/* ---- text.c */
void text(const char *format, ...); /* %s %u %x %08x %02x */
void text_flush(void);

/* ---- code.c: what a sequence is made of */
enum { MAX_SLOTS = 10, MAX_CODE = 400 };
struct slot { const char *name; uint16_t at, bytes; bool sleeps; };
/* What a sequence may do, and so which machines have to agree on it. */
enum flavour {
	FLAVOUR_KERNEL,	      /* kernel mode: all three */
	/* with floating-point exceptions: both engines; QEMU lacks some of them */
	FLAVOUR_KERNEL_STRICT,
	FLAVOUR_USER,	      /* user mode: all three */
	/* also with alignment checks and segment limits: both engines; QEMU has neither */
	FLAVOUR_USER_STRICT,
	/* with ID and NT: direct engine and QEMU; a tracer can neither set nor clear them */
	FLAVOUR_USER_FLAGS,
};
struct sequence {
	uint32_t number;
	enum flavour flavour;
	bool user, timer;
	bool stepped; /* single steps, with an interrupt behind each: at every point */
	bool spaces;  /* there is a change of address space among the slots */
	bool last; /* nothing may follow */
	uint32_t base;	      /* linear address of the code */
	unsigned slots, bytes; /* the last slot ends the sequence */
	struct slot slot[MAX_SLOTS + 1];
	uint8_t fxsave_image[512] __attribute__((aligned(16)));
	uint8_t code[MAX_CODE];
	/* the offset that is recorded for this one: padding counts as the instruction behind it */
	uint16_t canonical[MAX_CODE];
	bool step_hidden[MAX_CODE];   /* a single step that ends here is not recorded */
};
extern struct sequence sequence;
void sequence_generate(uint32_t dropped /* slots that become nops */);
uint32_t allowed_flags(void); /* what EFLAGS may have set at the start, and by popf */
uint32_t random_pointer(void);
int sequence_slot(uint32_t eip); /* its number, or -1 */

/* ---- kinds_fpu.c */
void fpu_start(uint8_t image[512]); /* make the image that fxrstor loads at the start */
void fpu_record(const uint8_t image[512]);

/* ---- record.c: a sequence's results */
void record_begin(bool verbose);
/* Record a value.  The bits in `same` must agree on all machines, the others only on those that run
 * on the same processor. */
void record(const char *name, uint32_t value, uint32_t same);
void record_heading(const char *text, uint32_t value); /* heading of the values behind it */
void record_memory(const char *name, const void *at, uint32_t words);
extern uint32_t record_exact, record_same;

/* ---- trap.c */
extern bool draining; /* interrupts that are left over do not count */
extern uint8_t final_fxsave[512];
void traps_begin(void);
void record_final(void);

#endif
