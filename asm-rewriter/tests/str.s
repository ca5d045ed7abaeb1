# str; a symbol of the same name is no instruction.
	.text
class_str:
	str	%ax
	strl	%eax
	strw	(%ecx)
	movl	str, %eax
	leal	str(,%eax,2), %eax
	ret
	.data
str:
	.asciz "str %ax"
