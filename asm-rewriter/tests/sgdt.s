# sgdt: memory operands of every AT&T form.
	.text
class_sgdt:
	sgdt	descriptor
	sgdtl	-8(%ebp)
	sgdtw	(%esp)
	sgdt	%fs:8(%eax,%ecx,4)
	sgdt	(,%eax,8)
	{load} sgdt (%eax)
	ret
	.data
descriptor:
	.word 0
	.long 0
