# Quoted arguments of a macro are code, those of a directive are text.
	.macro ALTERNATIVE oldinstr, newinstr, feature
140:
	\oldinstr
141:
	.pushsection .altinstr_replacement,"ax"
143:
	\newinstr
144:
	.popsection
	.endm
	.text
alternative:
	ALTERNATIVE "", "stac", (9*32+20)
	ALTERNATIVE "pushf", "cli; popf", 1
	ALTERNATIVE "jmp .Lquoted", "movl %cr4, %eax; cpuid", 2
	ALTERNATIVE "rep; nop", "pause ; ret", 3
.Lquoted:
	ALTERNATIVE "661: iret", "pushl %cs", 4
	.warning_text = 0
	.section .rodata
	.ascii "pushf", "iret"
	.string "a \"quoted\" pushf; popf"
