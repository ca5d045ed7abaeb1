# clts
	.text
class_clts:
	clts
	ret
