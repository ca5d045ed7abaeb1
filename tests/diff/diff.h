/* diff.h - the test kernel's own declarations.
 *
 * One instruction of a sequence, with what prepares it, is a slot.  A sequence is some slots in the code page of one of the
 * areas, run in user or kernel mode from a random state; everything that comes of it is recorded (record.c) and becomes a
 * line of two digests.  A pure function of the seed and the sequence's number: what one machine does, all must do.
 */
#ifndef TESTS_DIFF_DIFF_H
#define TESTS_DIFF_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/diff/platform.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum {
	EFLAGS_STATUS = 0x8d5, EFLAGS_TF = 0x100, EFLAGS_IF = 0x200, EFLAGS_DF = 0x400, EFLAGS_OF = 0x800, EFLAGS_NT = 0x4000,
	EFLAGS_RF = 0x10000, EFLAGS_AC = 0x40000, EFLAGS_ID = 0x200000, EFLAGS_FIXED = 2,
};

/* What an entry leaves on the stack (entry.S). From the kernel there is no esp and ss. */
struct frame {
	uint32_t edi, esi, ebp, pusha_esp, ebx, edx, ecx, eax, gs, fs, es, ds, vector, error, eip, cs, eflags, esp, ss;
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
static inline uint32_t random_below(uint32_t n) { return (uint32_t)((uint64_t)random_word() * n >> 32); }
static inline bool random_chance(uint32_t percent) { return random_below(100) < percent; }
#define RANDOM_OF(table) ((table)[random_below(ARRAY_LEN(table))])

/* ---- machine.c */
/* The pages of each area, which stands at USER_AREA and at KERNEL_AREA. */
enum area_page {
	AREA_CODE = 1, AREA_DATA = 4, AREA_READ_ONLY = 6, AREA_DATA2 = 7, AREA_STACK = 9, AREA_ALIAS = 12, AREA_PAGES = 14,
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
void machine_reset(void); /* what sequences may have changed of the processor */
void apic_end(void);
void apic_timer(uint32_t count); /* 0: off */
void apic_post_self(uint32_t vector);
void apic_post_nmi(void);
void write_text(const char *text, uint32_t bytes);
void machine_end(void) __attribute__((noreturn));

/* ---- spaces.c */
void spaces_init(void);
void spaces_reset(void); /* to the first directory; the others as at the beginning of a sequence that has need of them */
void spaces_switch(uint32_t choice);
void spaces_record(void);

/* ---- text.c */
void text(const char *format, ...); /* %s %u %x %08x %02x */
void text_flush(void);

/* ---- code.c: what a sequence is made of */
enum { MAX_SLOTS = 10, MAX_CODE = 400 };
struct slot { const char *name; uint16_t at, bytes; bool sleeps; };
/* What a sequence may do, and so who has to agree on it. */
enum flavour {
	FLAVOUR_KERNEL,	      /* kernel mode: all three */
	FLAVOUR_KERNEL_STRICT, /* with floating-point exceptions: both engines. QEMU has not all of them. */
	FLAVOUR_USER,	      /* user mode: all three */
	FLAVOUR_USER_STRICT,  /* with alignment checks and segment limits too: both engines. QEMU has neither. */
	FLAVOUR_USER_FLAGS,   /* with ID and NT: direct engine and QEMU. A tracer can neither set nor clear them. */
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
	uint16_t canonical[MAX_CODE]; /* the offset that stands for this one: padding belongs to what comes after it */
	bool step_hidden[MAX_CODE];   /* a single step that ends here is none of the test's */
};
extern struct sequence sequence;
void sequence_generate(uint32_t dropped /* slots that become nops */);
uint32_t allowed_flags(void); /* what EFLAGS may have set at the start, and by popf */
uint32_t random_pointer(void);
int sequence_slot(uint32_t eip); /* its number, or -1 */

/* ---- kinds_fpu.c */
void fpu_start(uint8_t image[512]); /* what fxrstor loads, and so which instructions go well */
void fpu_record(const uint8_t image[512]);

/* ---- record.c: what came of it */
void record_begin(bool verbose);
/* `same` are the bits that have to be the same on every machine; the rest only on those that run on the same processor. */
void record(const char *name, uint32_t value, uint32_t same);
void record_heading(const char *text, uint32_t value); /* what follows belongs to it */
void record_memory(const char *name, const void *at, uint32_t words);
extern uint32_t record_exact, record_same;

/* ---- trap.c */
extern bool draining; /* interrupts that are left over do not count */
extern uint8_t final_fxsave[512];
void traps_begin(void);
void record_final(void);

#endif
