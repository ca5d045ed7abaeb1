# lss
	.text
class_lss:
	lss	(%esp), %esp
	ret
