# invlpg
	.text
class_invlpg:
	invlpg	(%eax)
	ret
