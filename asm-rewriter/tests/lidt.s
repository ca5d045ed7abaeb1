# lidt
	.text
class_lidt:
	lidt	(%eax)
	lidtl	8(%esp)
	lidtw	(%eax)
	ret
