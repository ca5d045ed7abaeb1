/* entry.S - the way from the loader to C, into and out of sequences, and an entry for each
 * vector. */
#include "tests/diff/platform.h"

	.section .multiboot, "ax"
	.balign	4
	.long	0x1badb002, 0, -0x1badb002

#ifdef DIFF_VMP
	.globl	vmp_abi_version
	.set	vmp_abi_version, VMP_ABI_VERSION
#endif

/* Paging off.  %ebx: multiboot's information (QEMU). */
	.globl	vmp_abi_version
	.set	vmp_abi_version, VMP_ABI_VERSION
	.globl	entry
entry:
	mov	$PHYS_PT_DIRECT, %edi		/* the first 4 MiB: present, writable, accessed, */
	mov	$0x163, %eax			/* dirty, global */
1:	mov	%eax, (%edi)
	add	$4, %edi
	add	$0x1000, %eax
	cmp	$0x400163, %eax
	jne	1b
	/* mapped where they are, until paging is on; and at DIRECT */
	movl	$PHYS_PT_DIRECT + 0x63, PHYS_PAGE_DIR
	movl	$PHYS_PT_DIRECT + 0x63, PHYS_PAGE_DIR + (DIRECT >> 20)
	mov	$PHYS_PAGE_DIR, %eax
	mov	%eax, %cr3
	mov	%cr0, %eax
	or	$0x80010000, %eax		/* PG, WP */
	mov	%eax, %cr0
	mov	$(DIRECT + PHYS_RUNNER_TOP), %esp
	mov	$1f, %eax
	jmp	*%eax
1:	push	%ebx
	call	kernel_main

/* void run_sequence(struct frame *, void *fxsave_image): comes back by end_sequence(). */
	.globl	run_sequence, end_sequence
run_sequence:
	push	%ebp
	push	%ebx
	push	%esi
	push	%edi
	mov	%esp, runner_esp
	mov	24(%esp), %eax
	fxrstor	(%eax)
	mov	20(%esp), %esp
	jmp	trap_return
end_sequence:
	mov	runner_esp, %esp
	pop	%edi
	pop	%esi
	pop	%ebx
	pop	%ebp
	ret

/* void load_tables(const void *gdtr, const void *idtr) */
	.globl	load_tables
load_tables:
	mov	4(%esp), %eax
	lgdt	(%eax)
	mov	8(%esp), %eax
	lidt	(%eax)
	mov	$SEL_LDT, %eax
	lldt	%ax
	ljmp	$SEL_KERNEL_CS, $1f
1:	mov	$SEL_KERNEL_DS, %eax
	mov	%eax, %ss
	mov	%eax, %ds
	mov	%eax, %es
	xor	%eax, %eax
	mov	%eax, %fs
	mov	%eax, %gs
	mov	$SEL_TSS, %eax
	ltr	%ax
	ret

/* One entry of 16 bytes for each vector: pushes an error code (0 if the vector has none) and the
 * vector. */
	.globl	vectors
	.balign	16
vectors:
	.set	vector, 0
	.rept	256
	.balign	16
	.if	!(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17)
	push	$0
	.endif
	push	$vector
	jmp	trap_entry
	.set	vector, vector + 1
	.endr

trap_entry:
	push	%ds
	push	%es
	push	%fs
	push	%gs
	pusha
	cld
	mov	$SEL_KERNEL_DS, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%esp, %eax
	push	%eax
	call	trap
	add	$4, %esp
trap_return:
	testl	$1, %ss:return_by_window
	popa
	pop	%gs
	pop	%fs
	pop	%es
	pop	%ds
	lea	8(%esp), %esp
	jnz	1f
	MARKER iret
1:
#ifdef DIFF_VMP
	jmp	VMP_STUB_IRET
#else
	iret
#endif

	.bss
	.globl	return_by_window
runner_esp: .long 0
return_by_window: .long 0	/* which way out of a handler: the same to everybody but vmp */
	.section .note.GNU-stack, "", @progbits
