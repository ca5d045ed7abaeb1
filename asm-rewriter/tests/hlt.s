# hlt
	.text
class_hlt:
1:	hlt
	jmp	1b
