/* user_stub.S - the loop of a user process (user.h): report, wait for an order, carry it out, run
 * the program; and what a program's system calls enter.
 *
 * The program can jump to any instruction here with registers and flags of its own.  So each
 * `syscall` is followed by what must follow it, and nothing between uses memory but the two
 * mailboxes, by their constant addresses.
 */
#include "base/guest_abi.h"
#include "vmproc/gate.h"
#include "vmproc/user.h"

#define SIGSEGV 11

/* Report by one byte, until that has succeeded.  The filter allows the call from `place` alone. */
.macro	report byte, place
1:	mov	$1, %eax		/* write */
	mov	$USER_REPORT_FD, %edi
	lea	\byte(%rip), %rsi
	mov	$1, %edx
	syscall
\place:
	cmp	$1, %rax
	jne	1b
.endm

	.text
	.globl	user_window, user_window_end, user_report, user_report_even_at, user_report_odd_at
	.globl	user_order_at, user_call_at, user_permit_at, user_check, user_iretq, user_resume
	.hidden	user_window, user_window_end, user_report, user_report_even_at, user_report_odd_at
	.hidden	user_order_at, user_call_at, user_permit_at, user_check, user_iretq, user_resume
	.hidden	user_kicked, user_was_kicked, user_done, user_bytes
/* A copy of this stands at VMP_STUB_SYSCALL, where the window's code is in other processes.  A
 * signal here is a stop in the window, as window_settle() knows it: behind the first instruction
 * the program's stack pointer is in r8d, and its flags are still in RFLAGS up to offset 16. */
user_window:
	mov	%esp, %r8d
	movabs	$user_called, %r9
	jmp	*%r9
user_window_end:
	.if	user_window_end - user_window > 16
	.error	"window_syscall_flags"
	.endif

/* A system call: report what a fault at the far call's target would report. */
user_called:
	movabs	$USER_REPORT_ADDRESS, %r9
	mov	%rax, USER_REPORT_GPR(%r9)
	mov	%rcx, USER_REPORT_GPR+8(%r9)
	mov	%rdx, USER_REPORT_GPR+16(%r9)
	mov	%rbx, USER_REPORT_GPR+24(%r9)
	mov	%r8, USER_REPORT_GPR+32(%r9)
	mov	%rbp, USER_REPORT_GPR+40(%r9)
	mov	%rsi, USER_REPORT_GPR+48(%r9)
	mov	%rdi, USER_REPORT_GPR+56(%r9)
	movabs	$GATE_FRAME_ADDRESS, %rsp
	pushfq
	pop	USER_REPORT_RFLAGS(%r9)
	mov	$VMP_STUB_SYSCALL, %eax
	mov	%rax, USER_REPORT_RIP(%r9)
	movl	$SIGSEGV, USER_REPORT_SIGNAL(%r9)
	mov	%cs, USER_REPORT_CS(%r9)
	mov	%ss, USER_REPORT_CS+2(%r9)
	mov	%ds, USER_REPORT_CS+4(%r9)
	mov	%es, USER_REPORT_CS+6(%r9)
	mov	%fs, USER_REPORT_CS+8(%r9)
	mov	%gs, USER_REPORT_CS+10(%r9)
	mov	$-1, %eax
	mov	%eax, %edx
	xsave64	USER_REPORT_XSAVE(%r9)
	movl	$0, user_kicked(%rip)
/* (TRICKS: even-and-odd) */
user_report:
	pushq	$2			/* none of the program's DF, TF, NT, AC */
	popfq
	movabs	$USER_ORDER_ADDRESS, %r12
	testb	$1, USER_ORDER_SERIAL(%r12)
	jnz	2f
	report	user_bytes, user_report_even_at
	mov	$1, %ebp
	jmp	10f
2:	report	user_bytes+1, user_report_odd_at
	xor	%ebp, %ebp
/* Wait for the next order: its number's last bit is that of ebp.  Mostly it is there, since the
 * kernel process has taken the processor at the report. (TRICKS: order-without-byte) */
10:	movabs	$USER_ORDER_ADDRESS, %r12
	mov	USER_ORDER_SERIAL(%r12), %eax
	xor	%ebp, %eax
	test	$1, %al
	jz	12f
11:	movabs	$USER_REPORT_ADDRESS, %rcx
	mov	$1, %eax
	xchg	%eax, USER_REPORT_SLEEPS(%rcx)	/* before the order is looked at */
	mov	USER_ORDER_SERIAL(%r12), %eax
	xor	%ebp, %eax
	test	$1, %al
	jz	13f
	xor	%eax, %eax		/* read */
	mov	$USER_ORDER_FD, %edi
	movabs	$(USER_REPORT_ADDRESS + USER_REPORT_BYTE), %rsi
	mov	$1, %edx
	syscall
user_order_at:
	movabs	$USER_ORDER_ADDRESS, %r12
	jmp	11b
13:	movl	$0, USER_REPORT_SLEEPS(%rcx)
12:	mov	USER_ORDER_CALLS(%r12), %r13d
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
	movabs	$USER_REPORT_ADDRESS, %rcx
	cmpb	$USER_PERMIT, USER_REPORT_BYTE(%rcx)
	jne	4b			/* a byte that woke nobody */
	test	%r15, %r15
	jns	6f
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
	.globl	user_bytes
user_bytes:
	.byte	USER_EVEN, USER_ODD
	.section .note.GNU-stack, "", @progbits
