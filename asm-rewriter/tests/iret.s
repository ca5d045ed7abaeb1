# iret: the exit path of a .S file, after the preprocessor.
	.section .entry.text, "ax"
class_iret:
	popl	%eax
.Lirq_return:
	iret
	iretl
	iretw
	.byte 0xcf
	.pushsection .rodata
	.byte 0xcf
	.popsection
	.byte 0xcf
