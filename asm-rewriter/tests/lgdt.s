# lgdt
	.text
class_lgdt:
	lgdt	descriptor
	lgdtl	(%eax)
	lgdtw	2(%esp)
	ret
	.data
descriptor:
	.word 0
	.long 0
