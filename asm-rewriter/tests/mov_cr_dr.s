# mov_cr_dr: both ways.
	.text
class_mov_cr_dr:
	movl	%cr0, %eax
	mov	%eax, %cr3
	movl	%cr4, %ecx
	mov	%db7, %eax
	mov	%eax, %dr6
	ret
