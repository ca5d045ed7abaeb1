# pushf: every form, in compiler output, behind labels, joined with `;`.
	.text
	.globl	class_pushf
	.type	class_pushf, @function
class_pushf:
	pushl	%ebx
#APP
# 10 "./arch/x86/include/asm/irqflags.h" 1
	# __raw_save_flags
	pushf ; pop %eax
# 0 "" 2
#NO_APP
	pushfl
	pushfw
	popl	%ebx
1:	pushf
	2: 3: pushfl; popl %ecx
	.byte 0x9c
	ret
	.size	class_pushf, .-class_pushf
	.data
table:
	.byte 0x9c
	.byte 0x9c, 0x9c
