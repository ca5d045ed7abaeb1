# mwait
	.text
class_mwait:
	mwait
	mwait	%eax, %ecx
	.byte 0x0f, 0x01, 0xc9
	ret
