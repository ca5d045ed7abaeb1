/* gate.S - the entry by which code of the CPU window (vcpu/window_code.S) calls the engine without
 * a signal: a hypercall then costs a tenth.  Also the way out to the guest, for signal handlers
 * too: it saves them the host's rt_sigreturn.
 *
 * At the entry r8d is the place in the window that identifies the request.  The guest's other
 * registers are unchanged, with its stack pointer in ESP and its DS, ES, FS and GS.  They are
 * stored as a signal would store them (struct gate_frame, gate.h).  The guest continues by iretq at
 * the address that the frame has then.
 *
 * Kicks are not blocked.  If one interrupts this program's text, its handler sets direct_kicked and
 * returns.  The way out checks direct_kicked last.  A kick between that check and the iretq makes
 * the handler return to direct_gate_check, so RSP must not change from the check to the iretq.
 */
#include "vmproc/gate.h"

	.text
	.globl	direct_gate, direct_gate_check, direct_gate_iretq, direct_gate_leave
	.hidden	direct_gate, direct_gate_check, direct_gate_iretq, direct_gate_leave
	.hidden	direct_gate_enter, direct_gate_again, direct_kicked
direct_gate:
	mov	%esp, %r9d
	movabs	$GATE_FRAME_ADDRESS, %r10
	mov	%r10, %rsp
	mov	%rax, GATE_RAX(%rsp)
	mov	%rcx, GATE_RCX(%rsp)
	mov	%rdx, GATE_RDX(%rsp)
	mov	%rbx, GATE_RBX(%rsp)
	mov	%rbp, GATE_RBP(%rsp)
	mov	%rsi, GATE_RSI(%rsp)
	mov	%rdi, GATE_RDI(%rsp)
	mov	%r9, GATE_RSP(%rsp)
	mov	%r8, GATE_RIP(%rsp)
	pushfq
	pop	%r9
	mov	%r9, GATE_EFLAGS(%rsp)
	mov	%cs, %r9d
	mov	%r9w, GATE_CS(%rsp)
	mov	%ss, %r9d
	mov	%r9w, GATE_SS(%rsp)
	pushq	$2				/* none of the guest's DF, TF, NT, AC */
	popfq
	mov	%rsp, %rdi
	call	direct_gate_enter
/* (TRICKS: kick-before-iretq) */
direct_gate_check:
	cmpl	$0, direct_kicked(%rip)
	jne	1f
	mov	GATE_RAX(%rsp), %rax
	mov	GATE_RCX(%rsp), %rcx
	mov	GATE_RDX(%rsp), %rdx
	mov	GATE_RBX(%rsp), %rbx
	mov	GATE_RBP(%rsp), %rbp
	mov	GATE_RSI(%rsp), %rsi
	mov	GATE_RDI(%rsp), %rdi
direct_gate_iretq:
	iretq
1:	mov	%rsp, %rdi
	call	direct_gate_again
	jmp	direct_gate_check

/* The end of a handler.  rdi: the frame; rsi: the guest's FPU and vector registers in the signal's
 * frame, which may be overwritten as soon as RSP is above it. (TRICKS: flags-by-iret) */
direct_gate_leave:
	mov	FPSTATE_COMPONENTS(%rsi), %eax
	mov	FPSTATE_COMPONENTS+4(%rsi), %edx
	xrstor64 (%rsi)
	pushq	$2
	popfq
	mov	%rdi, %rsp
	jmp	direct_gate_check
	.section .note.GNU-stack, "", @progbits
