# cli
	.text
class_cli:
	cli
	cli ; nop
	ret
