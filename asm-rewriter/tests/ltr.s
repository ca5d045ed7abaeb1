# ltr
	.text
class_ltr:
	ltr	%ax
	ltr	(%esp)
	ret
