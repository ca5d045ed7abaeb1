# swapgs: 64-bit code alone has it.
	.text
class_swapgs:
	ret
	.code64
	swapgs
	.byte 0x0f, 0x01, 0xf8
	pushfq
	cpuid
	.code32
