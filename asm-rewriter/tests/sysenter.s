# sysenter: 32-bit user code's and AMD's call; kept, the filter refuses them.
	.text
class_sysenter:
	sysenter
	syscall
	ret
