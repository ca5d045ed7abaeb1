/* internal.h - what the files of vcpu/ share among themselves; nobody outside includes it.
 *
 * An instruction being emulated is a struct insn.  A helper that can fault returns true when it
 * did.  The fault is then recorded in the insn (the first one wins), and the handler returns
 * VCPU_RAISED at once, with no register changed.  So an instruction either completes or leaves
 * the registers as they were: faults are restartable by construction.  The exceptions are rep
 * ins/outs, which commit chunk by chunk as the processor does.
 */
#ifndef VCPU_INTERNAL_H
#define VCPU_INTERNAL_H

#include <stdarg.h>

#include "vcpu/vcpu.h"

/* -errno values: this folder takes no system header.  Pinned to the host's by
 * tests/unit/vcpu_hypercall.c. */
enum { ERR_FAULT = -14, ERR_INVALID = -22, ERR_RANGE = -34, ERR_NO_CALL = -38 };

/* ---- text.c: the only formatter here: %s %u %x %lx, with an optional zero-padded width */
struct text { char *at; unsigned room, used; };
void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_list(struct text *t, const char *format, va_list args);

/* Small copies become single moves: an aligned word of guest memory is never seen half-written
 * by another CPU. */
static inline void copy_bytes(void *to, const void *from, unsigned bytes)
{
	switch (bytes) {
	case 1: __builtin_memcpy(to, from, 1); return;
	case 2: __builtin_memcpy(to, from, 2); return;
	case 4: __builtin_memcpy(to, from, 4); return;
	case 8: __builtin_memcpy(to, from, 8); return;
	default: __builtin_memcpy(to, from, bytes);
	}
}

/* ---- segments.c */
struct descriptor { uint32_t low, high; };
enum { SELECTOR_RPL = 3, SELECTOR_TI = 4 };
/* Types of the access byte, bits 0-3 (SDM 3, 3.4.5.1 and 3.5). */
enum {
	TYPE_ACCESSED = 1, TYPE_WRITABLE = 2, TYPE_READABLE = 2, TYPE_CONFORMING = 4, TYPE_CODE = 8,
	SYSTEM_LDT = 2, SYSTEM_TASK_GATE = 5, SYSTEM_TSS = 9, SYSTEM_TSS_BUSY = 11,
	SYSTEM_CALL_GATE = 12, SYSTEM_INTERRUPT_GATE = 14, SYSTEM_TRAP_GATE = 15,
};
static inline bool selector_is_null(uint16_t selector) { return (selector & ~SELECTOR_RPL) == 0; }
/* Read a selector's descriptor.  Returns 0; ERR_RANGE: beyond the table; ERR_FAULT: page fault,
 * cr2 and *error are set. */
int segment_read(struct vcpu *v, uint16_t selector, struct descriptor *raw,
		 struct vcpu_segment *out, uint32_t *error);
void segments_announce(struct vcpu *v, unsigned first, unsigned count);

/* Check a selector for a data segment register, for the stack, and as the target of a far
 * transfer.  Each returns -1, or the vector to raise, with *error the selector (0 for a null
 * one). */
int segment_check_data(struct vcpu *v, uint16_t selector, uint32_t *error);
int segment_check_stack(struct vcpu *v, uint16_t selector, unsigned cpl, uint32_t *error);
int segment_check_code(struct vcpu *v, uint16_t selector, unsigned cpl, uint32_t *error);

/* ---- exception.c */
enum event_kind { EVENT_FAULT, EVENT_SOFTWARE, EVENT_EXTERNAL };
enum exception_class {
	CLASS_BENIGN, CLASS_CONTRIBUTORY, CLASS_PAGE_FAULT, CLASS_DOUBLE_FAULT, CLASS_COUNT,
};
enum nesting { NEST_SERIAL, NEST_DOUBLE, NEST_TRIPLE };
enum exception_class exception_class_of(unsigned vector);
enum nesting exception_nesting(enum exception_class first, enum exception_class second);
void exception_external(struct vcpu *v, unsigned vector);

/* ---- decode.c */
enum { NO_SEGMENT_OVERRIDE = -1 };
enum repeat { REPEAT_NONE, REPEAT_NE = 0xf2, REPEAT_E = 0xf3 };
/* How an opcode is encoded and who may run it: the flags of opcodes.def. */
enum insn_form {
	FORM_PLAIN = 0,
	FORM_MODRM = 1 << 0,
	FORM_IMM8 = 1 << 1,
	FORM_IMM16 = 1 << 2,
	FORM_IMM = 1 << 3,	 /* as wide as the operand */
	FORM_FAR = 1 << 4,	 /* offset, then selector */
	FORM_MOFFS = 1 << 5,	 /* address in the instruction */
	FORM_REGISTERS = 1 << 6, /* mod is taken as 3 (mov cr, mov dr) */
	FORM_CPL0 = 1 << 7,	 /* privileged: #GP(0) at CPL 3 */
	FORM_IOPL = 1 << 8,	 /* #GP(0) when CPL > IOPL */
	FORM_MARKED = 1 << 9,	 /* emulated only behind a marker */
	FORM_GROUP = 1 << 10,	 /* several instructions, selected by ModRM; not all are emulated */
};
struct insn {
	struct vcpu *v;
	/* EIP of the instruction, or of the marker before it: where a fault points */
	uint32_t start;
	uint32_t next;	   /* EIP behind what has been decoded */
	uint8_t window[16]; /* bytes fetched ahead, never across a page's end */
	uint32_t window_at, window_bytes;
	uint32_t first;	   /* EIP of the first prefix, for the length limit */
	uint8_t operand_bytes; /* 2 or 4 */
	bool address16, lock, marked;
	bool loads_rf; /* an iret, which takes RF from its frame; others clear it */
	bool steps; /* TF was set at the start: #DB follows, unless an interrupt shadow does */
	enum repeat repeat;
	int override;	   /* enum vcpu_seg, or NO_SEGMENT_OVERRIDE */
	uint16_t opcode;   /* 0x000-0x0ff one byte, 0x100-0x1ff behind 0F */
	uint8_t mod, reg, rm;
	bool memory;	   /* the ModRM operand is in memory, at segment:offset */
	enum vcpu_seg segment;
	uint32_t offset;
	uint32_t imm;
	uint16_t selector; /* of FORM_FAR */
	int vector;	   /* recorded fault, or -1 */
	int64_t error;
};
void decode_start(struct insn *i, struct vcpu *v);
bool decode_fetch(struct insn *i, void *to, unsigned bytes);
bool decode_opcode(struct insn *i); /* prefixes and opcode */
bool decode_operands(struct insn *i, unsigned form);

enum vcpu_result decode_raise(struct insn *i, unsigned vector, int64_t error);
/* Finish an instruction.  Emulated: advance EIP.  Raised: deliver the recorded fault, with EIP
 * at the instruction. */
enum vcpu_result decode_finish(struct insn *i, enum vcpu_result result);

/* ---- operand.c: registers and memory operands */
uint32_t register_read(const struct vcpu *v, unsigned number, unsigned bytes);
void register_write(struct vcpu *v, unsigned number, unsigned bytes, uint32_t value);
bool operand_linear(struct insn *i, gva_t *out);
bool segment_linear(struct insn *i, enum vcpu_seg segment, uint32_t offset, gva_t *out);
bool memory_read(struct insn *i, gva_t gva, void *to, unsigned bytes);
bool memory_write(struct insn *i, gva_t gva, const void *from, unsigned bytes);
bool operand_read(struct insn *i, unsigned bytes, uint32_t *value);
bool operand_write(struct insn *i, unsigned bytes, uint32_t value);
bool stack_read(struct insn *i, uint32_t above, unsigned bytes, uint32_t *value);
bool stack_push(struct insn *i, unsigned bytes, uint32_t value);

/* ---- handlers; opcodes.def names them */
typedef enum vcpu_result insn_handler(struct insn *i);
#define X(opcode, form, handler) insn_handler handler;
#define G(group, reg, form, handler) insn_handler handler;
#define R(modrm, form, handler) insn_handler handler;
#include "vcpu/opcodes.def"

/* Return EFLAGS after popf or iret at this CPL (SDM 2, POPF and IRET): protected bits keep their
 * value. */
uint32_t transfer_merge_eflags(const struct vcpu *v, uint32_t value, unsigned bytes, bool iret);
bool msr_read(struct vcpu *v, uint32_t msr, uint64_t *value);
bool msr_write(struct vcpu *v, uint32_t msr, uint64_t value);
uint64_t cpuid_xcr0_allowed(const struct vcpu *v);
void hypercall(struct vcpu *v);
/* The one call that programs have (base/barrier.h). */
void hypercall_barrier(struct vcpu *v);
void yield(struct vcpu *v);
/* True if the instruction at EIP would trap at once in the kernel.  Its first bytes go to
 * `insn`. */
bool emulate_traps_next(struct vcpu *v, uint8_t insn[2]);
/* system.c: false: the entries that CR3 would name have reserved bits, and nothing has changed. */
bool system_write_cr3(struct vcpu *v, uint32_t value);

/* ---- paging.c, mmio.c: physical memory within one page, RAM or not; device memory: the local
 * APIC, or env */
/* Read the four entries of PAE's top level that this CR3 names, and check them.  They begin a page:
 * the low bits of CR3 are VMP_CR3_SPACE and VMP_CR3_KEEP. */
enum pdptes { PDPTES_LOADED, PDPTES_RESERVED, PDPTES_NO_RAM };
enum pdptes paging_load_pdptes(struct vcpu *v, uint32_t cr3, uint64_t pdpte[4]);
void paging_copy_physical(struct vcpu *v, gpa_t gpa, void *data, unsigned bytes, bool write);
uint32_t mmio_device_read(struct vcpu *v, gpa_t gpa, unsigned bytes);
void mmio_device_write(struct vcpu *v, gpa_t gpa, unsigned bytes, uint32_t value);

#endif
