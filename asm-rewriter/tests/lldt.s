# lldt
	.text
class_lldt:
	lldt	%ax
	lldt	(%esp)
	ret
