# .byte: complete encodings of one instruction, in executable sections only; all others are kept.
	.text
bytes:
	.byte 0x9c
	.byte 0x0f, 0xa2	# cpuid
1:	.byte 0x0f,0xa2; .byte 0x9d
	.byte	0xf3,0x90
	.byte 0x90
	.byte 0x66, 0x90
	.byte 0x8d, 0x76, 0x00
	.byte 1b - 1b + 0x90
	.section .init.text, "ax"
init:
	.byte 0x9c
	.section .data.tables, "aw"
	.byte 0x9c
	.previous
	.byte 0x9c
	.data
	.byte 0x0f, 0xa2
	.word 0xa20f
	.long 0x9c9c9c9c
	.text
	.byte 0x9c
	.section .text.hot
	.byte 0x9c
	.section .data.tables
	.byte 0x9c
	.pushsection .exit.text
	.byte 0x9c
	.pushsection .discard
	.byte 0x9c
	.popsection
	.byte 0x9d
	.previous
	.byte 0x9c
	.popsection
	.byte 0x9c
	.section .rodata
	.pushsection .text
	.byte 0x9c
	.section .fixup, "ax"
	.byte 0x9d
	.previous
	.byte 0x9c
	.popsection
	.byte 0x9c
