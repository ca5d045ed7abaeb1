# rsm
	.text
class_rsm:
	rsm
