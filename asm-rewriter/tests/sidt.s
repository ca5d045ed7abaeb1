# sidt
	.text
class_sidt:
	sidt	(%eax)
	sidtl	4(%esp)
	sidtw	%gs:0
	ret
