# smsw
	.text
class_smsw:
	smsw	%eax
	smswl	%ebx
	smsww	(%esp)
	ret
