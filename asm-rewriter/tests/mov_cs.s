# mov_cs: from %cs alone; an override and the other segments are kept.
	.text
class_mov_cs:
	mov	%cs, %eax
	mov	%cs, 60(%esp)
	movw	%cs,%ax
	movw	%cs, (%ecx)
	mov	%cs:4(%ecx), %eax
	movl	%cs:table(,%eax,4), %eax
	movl	%ds, %eax
	movl	%eax, %es
	ret
	.section .rodata
table:
	.long 0
