# cpuid: in inline assembly and as bytes; a table of the same bytes is data.
	.text
class_cpuid:
#APP
# 212 "./arch/x86/include/asm/processor.h" 1
	cpuid
# 0 "" 2
#NO_APP
	xchgl	%ebx, %esi; cpuid; xchgl %ebx, %esi
	.byte 0x0f, 0xa2
	.byte 0x0f,0xa2
	.byte 15, 162
	.byte 017, 0242
	ret
	.section .rodata.cst, "a", @progbits
	.byte 0x0f, 0xa2
