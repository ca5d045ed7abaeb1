# lar
	.text
class_lar:
	lar	%ecx, %eax
	larl	%eax, %eax
	larw	(%edx), %ax
	ret
