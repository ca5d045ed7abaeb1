/* bug.S - a guest kernel that dies, in broken(), called by worker().  How it dies is a macro:
 *   BUG_triple    an invalid instruction, without a handler for it
 *   BUG_nowhere   a jump to an address where nothing is mapped
 *   BUG_stack     an endless recursion
 *   BUG_fault     a handler that faults itself, without end
 *   BUG_halt      a hlt of the only processor, with interrupts disabled
 */
#include "base/guest_abi.h"

#define FUNCTION(name) .globl name; .type name, @function; name:
#define END(name) .size name, . - name

	.globl	vmp_abi_version
	.set	vmp_abi_version, VMP_ABI_VERSION

	.text
FUNCTION(entry)
	/* map the first 32 MiB to themselves, but for the page below the stack */
	mov	$table, %edi
	mov	$0x63, %eax
1:	mov	%eax, (%edi)
	add	$4, %edi
	add	$0x1000, %eax
	cmp	$0x2000063, %eax
	jne	1b
	mov	$guard, %eax
	shr	$12, %eax
	movl	$0, table(, %eax, 4)
	movl	$table + 0x63, directory
	.set	n, 1
	.rept	7
	movl	$table + 0x1000 * n + 0x63, directory + 4 * n
	.set	n, n + 1
	.endr
	mov	$directory, %eax
	mov	%eax, %cr3
	mov	%cr0, %eax
	or	$0x80000000, %eax
	mov	%eax, %cr0
	lgdt	gdtr
	mov	$handler, %eax			/* the same gate for all exceptions */
	mov	%ax, %bx
	mov	$gates, %edi
2:	movw	%bx, (%edi)
	movw	$VMP_SEL_BOOT_CS, 2(%edi)
	mov	%eax, 4(%edi)
	movw	$0x8e00, 4(%edi)
	add	$8, %edi
	cmp	$gates + 32 * 8, %edi
	jne	2b
#ifndef BUG_triple
	lidt	idtr
#endif
	mov	$guard + 0x2000, %esp
	call	worker
END(entry)

FUNCTION(worker)
	call	broken
	ret
END(worker)

FUNCTION(broken)
#if defined(BUG_nowhere)
	mov	$0xdead0000, %eax
	jmp	*%eax
#elif defined(BUG_stack)
	call	broken
#elif defined(BUG_fault)
	mov	0xdead0000, %eax
#elif defined(BUG_halt)
	movl	$handler, VMP_CPU_SYSCALL /* it is no longer as it began */
	hlt
#else
	ud2
#endif
	ret
END(broken)

FUNCTION(handler)
	mov	0xdead0000, %eax
	iret
END(handler)

	.data
	.balign	8
gdt:	.quad	0, 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdtr:	.word	31
	.long	gdt
idtr:	.word	32 * 8 - 1
	.long	gates

	.bss
	.balign	4096
directory: .skip 4096
table:	.skip	8 * 4096
guard:	.skip	4096
stack:	.skip	4096
gates:	.skip	32 * 8
	.section .note.GNU-stack, "", @progbits
