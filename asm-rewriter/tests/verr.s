# verr
	.text
class_verr:
	verr	%ax
	verr	(%esp)
	ret
