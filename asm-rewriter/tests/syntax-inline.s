# Inline assembly as macros make it: many statements on one line, with labels and sections.
	.text
inline:
#APP
	661: cli; pushf; 662: popl %eax; .skip 3, 0x90; 663: popf ; nop;;
	1: cpuid; jmp 1b; 2: pushf; popf
	.pushsection .altinstructions,"a"; .long 661b - .; .byte 0x9c; .popsection; pushf
	771:	jmp 772f; .byte 0x9c; 772:
	movl $';', %eax; pushf
	movb $'"',%al;popf; movb $'\'',%al;popf;movb $'#',%al;cpuid
	.byte 'a'; pushf; .ascii "a;b" ; pushf
	 pushf;popf
#NO_APP
	ret
