# xsetbv
	.text
class_xsetbv:
	xsetbv
	.byte 0x0f, 0x01, 0xd1
	ret
