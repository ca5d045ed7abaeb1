# lsl: the kernel's CPU number trick.
	.text
class_lsl:
#APP
	lsl %eax,%ecx
#NO_APP
	lsll	%eax, %edx
	lslw	4(%esp), %dx
	ret
