/* user_stub.S - the loop of a user process (user.h): report, wait for an order, carry it out, run
 * the program.
 *
 * The program can jump to any instruction here with registers and flags of its own.  So each
 * `syscall` is followed by what must follow it, and nothing between uses memory but the two
 * mailboxes, by their constant addresses.
 */
#include "vmproc/gate.h"
#include "vmproc/user.h"

	.text
	.globl	user_report, user_report_at, user_order_at, user_call_at, user_permit_at
	.globl	user_check, user_iretq, user_resume
	.hidden	user_report, user_report_at, user_order_at, user_call_at, user_permit_at
	.hidden	user_check, user_iretq, user_resume, user_kicked, user_was_kicked, user_done
	.hidden	user_byte
user_report:
	pushq	$2			/* none of the program's DF, TF, NT, AC */
	popfq
1:	mov	$1, %eax		/* write */
	mov	$USER_REPORT_FD, %edi
	lea	user_byte(%rip), %rsi
	mov	$1, %edx
	syscall
user_report_at:
	cmp	$1, %rax
	jne	1b
2:	xor	%eax, %eax		/* read */
	mov	$USER_ORDER_FD, %edi
	movabs	$(USER_REPORT_ADDRESS + USER_REPORT_BYTE), %rsi
	mov	$1, %edx
	syscall
user_order_at:
	cmp	$1, %rax
	jne	2b
	movabs	$USER_ORDER_ADDRESS, %r12
	mov	USER_ORDER_CALLS(%r12), %r13d
	add	$USER_ORDER_CALL, %r12
3:	test	%r13d, %r13d
	jz	7f
	mov	(%r12), %rax
	mov	8(%r12), %rdi
	cmp	$USER_SET_THREAD_AREA, %eax
	je	5f
	mov	16(%r12), %rsi
	mov	24(%r12), %rdx
	mov	32(%r12), %r10
	mov	40(%r12), %r8
	mov	48(%r12), %r9
	syscall
/* Behind a call that was not ordered, the permit never comes. */
user_call_at:
	mov	%rax, %r15
4:	xor	%eax, %eax
	mov	$USER_ORDER_FD, %edi
	movabs	$(USER_REPORT_ADDRESS + USER_REPORT_BYTE), %rsi
	mov	$1, %edx
	syscall
user_permit_at:
	cmp	$1, %rax
	jne	4b
	test	%r15, %r15
	jns	6f
	movabs	$USER_REPORT_ADDRESS, %rcx
	mov	%r15, USER_REPORT_FAILED(%rcx)
6:	add	$64, %r12
	dec	%r13d
	jmp	3b
5:	mov	%edi, %ebx
	int	$0x80
	jmp	user_call_at
7:	movabs	$USER_ORDER_ADDRESS, %r12
	cmpl	$0, USER_ORDER_RUN(%r12)
	je	8f
	mov	USER_ORDER_SEGMENTS(%r12), %ds
	mov	USER_ORDER_SEGMENTS+2(%r12), %es
	mov	USER_ORDER_SEGMENTS+4(%r12), %fs
	mov	USER_ORDER_SEGMENTS+6(%r12), %gs
	mov	$-1, %eax
	mov	%eax, %edx
	xrstor64 USER_ORDER_XSAVE(%r12)
/* As in gate.S: a kick that arrives between here and the iretq comes back to user_check. */
user_check:
	movabs	$USER_ORDER_ADDRESS, %r12
	cmpl	$0, user_kicked(%rip)
	jne	9f
	mov	USER_ORDER_GPR(%r12), %rax
	mov	USER_ORDER_GPR+8(%r12), %rcx
	mov	USER_ORDER_GPR+16(%r12), %rdx
	mov	USER_ORDER_GPR+24(%r12), %rbx
	mov	USER_ORDER_GPR+40(%r12), %rbp
	mov	USER_ORDER_GPR+48(%r12), %rsi
	mov	USER_ORDER_GPR+56(%r12), %rdi
	lea	USER_ORDER_IRET(%r12), %rsp
user_iretq:
	iretq
8:	movabs	$GATE_FRAME_ADDRESS, %rsp
	call	user_done
9:	movabs	$GATE_FRAME_ADDRESS, %rsp
	call	user_was_kicked

/* rdi: r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, then iretq's five words; rsi: FPU and vector
 * registers.  Back to where a signal interrupted this program. */
user_resume:
	mov	FPSTATE_COMPONENTS(%rsi), %eax
	mov	FPSTATE_COMPONENTS+4(%rsi), %edx
	xrstor64 (%rsi)
	mov	%rdi, %rsp
	pop	%r8
	pop	%r9
	pop	%r10
	pop	%r11
	pop	%r12
	pop	%r13
	pop	%r14
	pop	%r15
	pop	%rdi
	pop	%rsi
	pop	%rbp
	pop	%rbx
	pop	%rdx
	pop	%rax
	pop	%rcx
	iretq

	.section .rodata
	.globl	user_byte
user_byte:
	.byte	1
	.section .note.GNU-stack, "", @progbits
