# rdpmc
	.text
class_rdpmc:
2:	rdpmc
	.byte 0x0f, 0x33
	ret
	.data
	.byte 0x0f, 0x33
