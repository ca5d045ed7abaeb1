# rdmsr: with the kernel's exception table entry.
	.text
class_rdmsr:
1: rdmsr
2:
 .pushsection "__ex_table","a"
 .balign 4
 .long (1b) - .
 .long (2b) - .
 .popsection
	ret
