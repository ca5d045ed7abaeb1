/* gate.h - the engine's second entry, and its way out: where gate.S stores the guest's
 * registers. */
#ifndef VMPROC_GATE_H
#define VMPROC_GATE_H

/* The signals' stack, and above it the gate's frame: the frame of a signal during a gate lies
 * below, and does not overlap it. */
#define GATE_STACK_ADDRESS 0x700300000000
#define GATE_STACK_BYTES (0x10000 - GATE_FRAME_BYTES)
#define GATE_FRAME_BYTES 304
#define GATE_FRAME_ADDRESS (GATE_STACK_ADDRESS + GATE_STACK_BYTES)

/* struct gate_frame: iretq's five words and one unused, then struct sigcontext */
#define GATE_CONTEXT 48
#define GATE_RDI (GATE_CONTEXT + 64)
#define GATE_RSI (GATE_CONTEXT + 72)
#define GATE_RBP (GATE_CONTEXT + 80)
#define GATE_RBX (GATE_CONTEXT + 88)
#define GATE_RDX (GATE_CONTEXT + 96)
#define GATE_RAX (GATE_CONTEXT + 104)
#define GATE_RCX (GATE_CONTEXT + 112)
#define GATE_RSP (GATE_CONTEXT + 120)
#define GATE_RIP (GATE_CONTEXT + 128)
#define GATE_EFLAGS (GATE_CONTEXT + 136)
#define GATE_CS (GATE_CONTEXT + 144)
#define GATE_SS (GATE_CONTEXT + 150)

/* struct _fpstate: the set of components that the kernel has stored in a signal's frame.  xrstor
 * asks for these alone: it may touch the memory of each component that it is asked for, also of
 * one that is not present, and the tiles of AMX would lie 8 KiB beyond the frame's end. */
#define FPSTATE_COMPONENTS 472

#ifndef __ASSEMBLER__
#include <asm/sigcontext.h>
#include <stddef.h>
#include <stdint.h>

struct gate_frame {
	uint64_t rip, cs, eflags, rsp, ss, unused;
	struct sigcontext context;
};
#define GATE_FIELD(field, offset) \
	_Static_assert(offsetof(struct gate_frame, context.field) == (offset), #field)
GATE_FIELD(rdi, GATE_RDI);
GATE_FIELD(rsi, GATE_RSI);
GATE_FIELD(rbp, GATE_RBP);
GATE_FIELD(rbx, GATE_RBX);
GATE_FIELD(rdx, GATE_RDX);
GATE_FIELD(rax, GATE_RAX);
GATE_FIELD(rcx, GATE_RCX);
GATE_FIELD(rsp, GATE_RSP);
GATE_FIELD(rip, GATE_RIP);
GATE_FIELD(eflags, GATE_EFLAGS);
GATE_FIELD(cs, GATE_CS);
GATE_FIELD(ss, GATE_SS);
_Static_assert(offsetof(struct _fpstate_64, sw_reserved.xfeatures) == FPSTATE_COMPONENTS, "xrstor");
_Static_assert(sizeof(struct gate_frame) == GATE_FRAME_BYTES, "a multiple of 16");

extern __attribute__((visibility("hidden"))) const char direct_gate[], direct_gate_check[],
	direct_gate_iretq[];
void direct_gate_leave(struct gate_frame *frame, const uint8_t *fpstate)
	__attribute__((noreturn, visibility("hidden")));
#endif
#endif
