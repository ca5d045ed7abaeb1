# sysexit
	.text
class_sysexit:
	sysexit
