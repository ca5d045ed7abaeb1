# far_jump_direct: kept, the kernel's own selectors load at CPL 3.
	.text
class_far_jump_direct:
	ljmp	$0x84, $1f
1:	ljmpl	$(0x14), $1b
	ljmpw	$0x84, $0
