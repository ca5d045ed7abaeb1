# wrmsr
	.text
class_wrmsr:
	wrmsr
	ret
