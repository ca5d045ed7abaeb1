# monitor
	.text
class_monitor:
	monitor
	monitor	%eax, %ecx, %edx
	.byte 0x0f, 0x01, 0xc8
	ret
