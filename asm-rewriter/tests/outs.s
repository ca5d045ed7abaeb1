# outs
	.text
class_outs:
	outs	%ds:(%esi), (%dx)
	outsb
	rep; outsb
	outsw
	rep outsl
	outsl
	ret
