# far_jump: through memory, the selector is not known.
	.text
class_far_jump:
	ljmp	*pointer
	ljmpl	*(%eax)
	ljmpw	*%cs:(%eax)
	jmp	*pointer
	.data
pointer:
	.long 0
	.word 0x84
