/* window_code.S - the code page of the CPU window (base/guest_abi.h): it enters and leaves the
 * guest kernel without a trap.
 *
 * An engine copies the bytes from window_code to window_code_end into each virtual CPU's page at
 * VMP_STUB_SYSCALL.  The guest may be interrupted at every instruction of it; window.c then
 * brings the virtual CPU back to a state that a processor could have.  So the guest's registers
 * do not change before the last instruction, which commits; r8-r14 are free, since 32-bit code
 * cannot see them.
 *
 * The code calls the engine by a jump to its gate; r8d holds the stub's address, which names the
 * request.  For an engine in another process the gate is a hlt: #GP, the cheapest trap on the
 * host.  A system call that needs the engine always uses a hlt, because that is rare.
 */
#include "base/guest_abi.h"
#include "vcpu/window.h"

#define EFLAGS_TF_NT_AC 0x44100
#define FIELD(name) (VMP_CPU_##name - VMP_WINDOW)

	.section .rodata
	.globl	window_code, window_syscall_flags, window_syscall_end, window_iret_marked
	.globl	window_iret_slow, window_trap, window_code_end
	.hidden	window_code, window_syscall_flags, window_syscall_end, window_iret_marked
	.hidden	window_iret_slow, window_trap, window_code_end
	.balign	16

/* Entered from guest user mode by lcall: the return address and CS are on the user's stack. */
	.code64
window_code:
	mov	%esp, %r8d
	mov	$VMP_WINDOW, %r9d
	mov	FIELD(SP0)(%r9), %esp
	pushfq
	pop	%r10
window_syscall_flags:				/* from here on the user's flags are in r10 */
	test	$EFLAGS_TF_NT_AC, %r10d		/* a gate would clear them */
	jnz	1f
	cmpl	$0, FIELD(SYSCALL_CS)(%r9)
	je	1f
	mov	(%r8), %r11d
	add	$2, %r11d			/* behind the int that follows the lcall */
	lea	8(%r8), %r12d
	sub	$20, %esp
	mov	%r11d, (%rsp)
	movl	$VMP_SEL_USER_CS, 4(%rsp)
	/* in user mode interrupts are enabled, so the host's IF is the guest's */
	mov	%r10d, 8(%rsp)
	mov	%r12d, 12(%rsp)
	movl	$VMP_SEL_USER_DS, 16(%rsp)
	movl	$0, FIELD(IFLAG)(%r9)
	mov	$VMP_SEL_KERNEL_DS, %r13d
	mov	%r13d, %ss
	ljmp	*FIELD(SYSCALL)(%r9)
1:	hlt
window_syscall_end:

	.org	window_code + VMP_STUB_IRET - VMP_STUB_SYSCALL
/* Entered from the guest kernel by jmp, with interrupts disabled.  DS may be the user's; no
 * register but the flags is free. */
	.code32
	cmpl	$0, %ss:WINDOW_SLOW_RETURN
	jne	window_iret_slow
	testb	$0x30, 9(%esp)			/* EFLAGS_IOPL, which the host does not keep */
	jnz	window_iret_slow
	cmpw	$VMP_SEL_USER_CS, 4(%esp)
	jne	1f
	testb	$2, 9(%esp)			/* EFLAGS_IF */
	jz	window_iret_slow
	movl	$0x200, %ss:VMP_CPU_IFLAG
	ljmp	$VMP_SEL_HOST64, $(VMP_STUB_SYSCALL + window_iret64 - window_code)
1:	cmpw	$VMP_SEL_KERNEL_CS, 4(%esp)
	jne	window_iret_slow
	/* EFLAGS_AC: on a processor it does nothing in kernel mode */
	testb	$4, 10(%esp)
	jnz	window_iret_slow
	orb	$3, 4(%esp)			/* the host would refuse RPL 0 */
/* from here on the frame's CS differs from what the guest pushed */
window_iret_marked:
	testb	$2, 9(%esp)
	jz	2f
	movl	$0x200, %ss:VMP_CPU_IFLAG
2:	iret
/* (TRICKS: slow-frames) */
window_iret_slow:
	ljmp	$VMP_SEL_HOST64, $(VMP_STUB_SYSCALL + window_iret_gate - window_code)
	.code64
/* (TRICKS: iretl-64) */
window_iret64:
	mov	%esp, %esp			/* the upper half is undefined until now */
	/* in 64-bit mode it takes ESP and SS from the frame always */
	iretl
window_iret_gate:
	mov	$VMP_STUB_IRET, %r8d
	mov	$VMP_WINDOW, %r9d
	jmp	*(WINDOW_GATE - VMP_WINDOW)(%r9)

	.org	window_code + VMP_STUB_HYPERCALL - VMP_STUB_SYSCALL
/* Entered from the guest kernel by call: all registers and flags are preserved. */
	.code32
	ljmp	$VMP_SEL_HOST64, $(VMP_STUB_SYSCALL + window_hypercall64 - window_code)
	.code64
window_hypercall64:
	mov	$VMP_STUB_HYPERCALL, %r8d
	mov	$VMP_WINDOW, %r9d
	jmp	*(WINDOW_GATE - VMP_WINDOW)(%r9)
window_trap:
	hlt
window_code_end:
	.section .note.GNU-stack, "", @progbits
