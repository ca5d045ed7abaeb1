# sldt: to a register of both sizes and to memory.
	.text
class_sldt:
	sldt	%eax
	sldt	%ax
	sldtl	%ecx
	sldtw	2(%edx)
	ret
