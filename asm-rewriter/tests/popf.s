# popf: every form; the exception table names the label, so the label must stand on the marker.
	.text
class_popf:
	pushl	%eax ; popf
	popfl
	popfw
.Lfault:
	popf
	.byte 0x9d
	ret
	.section __ex_table, "a"
	.long .Lfault - .
	.byte 0x9d
	.previous
	.byte 0x9d
