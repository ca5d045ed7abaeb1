# in: ports in %dx and constant.
	.text
class_in:
	in	%dx, %al
	inb	%dx, %al
	inb	(%dx), %al
	inw	%dx, %ax
	inl	%dx, %eax
	inb	$0x61, %al
	in	$0x80, %eax
	ret
