/* gate.S - the engine called from the CPU window's code (vcpu/window_code.S) instead of by a signal: a hypercall costs a tenth;
 * and the way out to the guest, of handlers too, which saves them the host's rt_sigreturn.
 *
 * In: r8d: the place in the window that stands for what is wanted; the guest's other registers, DS, ES, FS and GS as they
 * were, and its stack pointer in ESP.  They are laid down as a signal would have it (struct gate_frame, direct_env.h), and
 * the guest goes on by iretq, where the frame then says.
 *
 * Kicks are not blocked.  The handler finds them in this program's text, sets direct_kicked and returns; the way out looks at
 * that last, and a kick between the look and the iretq sends it back to gate_check.  So RSP stays the same from the look to
 * the iretq.
 */
#include "vmproc/gate.h"

	.text
	.globl	direct_gate, direct_gate_check, direct_gate_iretq, direct_gate_leave
	.hidden	direct_gate, direct_gate_check, direct_gate_iretq, direct_gate_leave, direct_gate_enter, direct_gate_again, direct_kicked
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

/* The end of a handler: rdi: the frame, laid down; rsi: the guest's FPU and vector registers, as the host put them into the
 * signal's frame, which is gone as soon as RSP is above it. (TRICKS: flags-by-iret) */
direct_gate_leave:
	mov	$-1, %eax
	mov	%eax, %edx
	xrstor64 (%rsi)
	pushq	$2
	popfq
	mov	%rdi, %rsp
	jmp	direct_gate_check
	.section .note.GNU-stack, "", @progbits
