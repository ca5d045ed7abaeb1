# far_call: direct and indirect; near calls are kept.
	.text
class_far_call:
	lcall	$0x84, $class_far_call
	lcalll	$0x84, $class_far_call
	lcall	*pointer
	lcalll	*4(%esp)
	lcallw	*(%eax)
	call	class_far_call
	call	*pointer
	ret
	.data
pointer:
	.long 0
	.word 0x84
