# lmsw
	.text
class_lmsw:
	lmsw	%ax
	ret
