# sti: nothing may come between it and the next instruction.
	.text
class_sti:
	sti
	sti; hlt
	ret
