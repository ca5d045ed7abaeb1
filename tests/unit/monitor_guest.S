/* monitor_guest.S - a guest of one page for tests/unit/monitor_engine.c.  It has no operating
 * system, and each of its steps sets a bit.
 *
 * The test loads it at the physical address GUEST_BASE and starts it there with paging off.  It
 * ends the machine by a hypercall whose status is the mask of the steps that behaved as the
 * architecture says.
 */
#include "base/guest_abi.h"

#define GUEST_BASE 0x100000
#define AT(label) (label - monitor_guest_start + GUEST_BASE)
#define HIGH(label) (AT(label) + VMP_USER_LIMIT)
#define PAGE_DIRECTORY 0x200000
#define KERNEL_STACK 0x180000
#define USER_STACK 0x190000
#define PASSED(bit) orl $(1 << (bit)), AT(passed)
#define MARKER int $VMP_INT_MARKER
/* The system call as the vDSO holds it, but a jump skips its far call: this tests the trap. */
#define SYSCALL jmp 9f;	\
	.byte 0x9a; .long VMP_STUB_SYSCALL; .word VMP_SEL_HOST64;	\
	9: int $VMP_INT_SYSCALL
#define GATE(index, label, dpl)	\
	movl $(AT(label) & 0xffff | VMP_SEL_KERNEL_CS << 16), AT(idt) + (index) * 8;	\
	movl $(AT(label) & 0xffff0000 | 0x8e00 | (dpl) << 13), AT(idt) + (index) * 8 + 4

	.section .rodata
	.globl monitor_guest_start, monitor_guest_end
	.balign 16
monitor_guest_start:
	.code32
	movl	$KERNEL_STACK, %esp
	lgdt	AT(gdt_pointer)
	movl	$VMP_SEL_KERNEL_DS, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	ljmp	$VMP_SEL_KERNEL_CS, $AT(1f)
1:	PASSED(0)
	/* the virtual interrupt flag */
	cli
	MARKER
	pushf
	popl	%eax
	testl	$0x200, %eax
	jnz	1f
	sti
	nop
	MARKER
	pushf
	popl	%eax
	testl	$0x200, %eax
	jz	1f
	PASSED(1)
1:	cli
	/* %cs as the guest kernel sees it, %fs by the per-CPU segment */
	MARKER
	movl	%cs, %eax
	cmpl	$VMP_SEL_KERNEL_CS, %eax
	jne	1f
	movl	$VMP_SEL_PERCPU, %eax
	movl	%eax, %fs
	cmpl	$0x12345678, %fs:0
	jne	1f
	PASSED(2)
1:	/* paging: 4 MiB pages, the low 16 MiB at 0 (user) and at VMP_USER_LIMIT (kernel) */
	GATE(0, on_divide, 0)
	GATE(6, on_undefined, 0)
	GATE(14, on_page_fault, 0)
	GATE(0x80, on_syscall, 3)
	lidt	AT(idt_pointer)
	movl	$PAGE_DIRECTORY, %edi
	xorl	%eax, %eax
	movl	$1024, %ecx
	rep	stosl
	movl	$0x087, PAGE_DIRECTORY
	movl	$0x083, PAGE_DIRECTORY + (VMP_USER_LIMIT >> 22) * 4
	movl	%cr4, %eax
	orl	$0x10, %eax
	movl	%eax, %cr4
	movl	$PAGE_DIRECTORY, %eax
	movl	%eax, %cr3
	movl	%cr0, %eax
	orl	$0x80010000, %eax
	movl	%eax, %cr0
	cmpl	$0x12345678, HIGH(percpu)
	jne	1f
	PASSED(3)
1:	movl	$(VMP_GDT_TSS * 8), %eax
	ltr	%ax
	movl	$(VMP_HC_PRINT), %eax
	movl	$AT(greeting), %ebx
	movl	$(greeting_end - greeting), %ecx
	int	$VMP_INT_HYPERCALL
	/* to user mode */
	pushl	$VMP_SEL_USER_DS
	pushl	$USER_STACK
	pushl	$0x202
	pushl	$VMP_SEL_USER_CS
	pushl	$AT(user)
	movl	$VMP_SEL_USER_DS, %eax
	movl	%eax, %ds
	movl	%eax, %es
	MARKER
	iret

user:	movl	$1, %eax
	int	$0x80		/* the way old programs call: caught by seccomp */
	movl	$2, %eax
	SYSCALL
	movl	VMP_USER_LIMIT, %eax	/* five bytes; the handler skips them */
	movl	$0, %ecx
	movl	$1, %eax
	xorl	%edx, %edx
	divl	%ecx		/* two bytes */
	ud2
	movl	$VMP_USER_LIMIT + 64, %eax
	call	*%eax		/* the handler returns for us */
	movl	$3, %eax
	SYSCALL
	jmp	.

on_syscall:
	movl	$VMP_SEL_KERNEL_DS, %ecx
	movl	%ecx, %ds
	cmpl	$VMP_SEL_USER_CS, 4(%esp)
	jne	2f
	cmpl	$1, %eax
	jne	1f
	PASSED(4)
1:	cmpl	$2, %eax
	jne	1f
	PASSED(5)
1:	cmpl	$3, %eax
	je	finish
2:	jmp	to_user

on_page_fault:
	movl	$VMP_SEL_KERNEL_DS, %ecx
	movl	%ecx, %ds
	movl	%cr2, %ecx
	popl	%edx		/* the error code */
	cmpl	$VMP_USER_LIMIT, %ecx
	jne	1f
	cmpl	$5, %edx	/* present, by a user, a read */
	jne	to_user
	PASSED(6)
	addl	$5, (%esp)
	jmp	to_user
1:	cmpl	$VMP_USER_LIMIT + 64, %ecx
	jne	finish
	cmpl	%ecx, (%esp)	/* the fetch faulted where it jumped to */
	jne	finish
	PASSED(7)
	movl	12(%esp), %ecx
	movl	(%ecx), %edx	/* return address that the call pushed */
	addl	$4, 12(%esp)
	movl	%edx, (%esp)
	jmp	to_user

on_divide:
	movl	$VMP_SEL_KERNEL_DS, %ecx
	movl	%ecx, %ds
	PASSED(8)
	addl	$2, (%esp)
	jmp	to_user

on_undefined:
	movl	$VMP_SEL_KERNEL_DS, %ecx
	movl	%ecx, %ds
	PASSED(9)
	addl	$2, (%esp)
to_user:
	movl	$VMP_SEL_USER_DS, %ecx
	movl	%ecx, %ds
	MARKER
	iret

finish:	movl	$VMP_HC_EXIT, %eax
	movl	$VMP_EXIT_POWEROFF, %ebx
	movl	AT(passed), %ecx
	int	$VMP_INT_HYPERCALL
	jmp	.

	.balign 16
greeting:
	.ascii	"hello from the guest\n"
greeting_end:
	.balign 16
percpu:	.long	0x12345678
passed:	.long	0
gdt_pointer:
	.word	32 * 8 - 1
	.long	AT(gdt)
idt_pointer:
	.word	129 * 8 - 1
	.long	AT(idt)
	.balign 8
#define FLAT(access) .quad 0x00cf00000000ffff | (access) << 40
gdt:	.quad	0, 0
	FLAT(0x9b)
	FLAT(0x93)
	.fill	12, 8, 0
	FLAT(0x9b)
	FLAT(0x93)
	FLAT(0xfb)
	FLAT(0xf3)
	/* per-CPU data: base AT(percpu), which is below 16 MiB */
	.word	0xffff
	.word	(0x100000 + (percpu - monitor_guest_start)) & 0xffff
	.byte	0x10, 0x93, 0xcf, 0
	.fill	3, 8, 0
	/* task state: base AT(tss) */
	.word	103
	.word	(0x100000 + (tss - monitor_guest_start)) & 0xffff
	.byte	0x10, 0x89, 0, 0
	.fill	7, 8, 0
	.balign 8
tss:	.long	0, KERNEL_STACK, VMP_SEL_KERNEL_DS
	.fill	23, 4, 0
	.balign 8
idt:	.fill	129, 8, 0
monitor_guest_end:
	.code64
	.section .note.GNU-stack, "", @progbits
