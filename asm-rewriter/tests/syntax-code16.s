# 16-bit and 64-bit code is not the guest kernel's; what follows .code32 is again.
	.text
	.code16
real_mode:
	pushf
	cli
	.byte 0x9c
	pushl	%cs
	.code16gcc
	popf
	.code64
	cpuid
	.code32
protected_mode:
	pushf
	ret
