# pause in all spellings: the marker goes before the prefix, which may be a statement of its own.
	.text
class_pause:
	pause
#APP
	rep; nop
#NO_APP
1:	rep ; nop
	rep nop
	repz; nop
	repe
	nop
	.byte 0xf3, 0x90
	nop
	rep; movsb
	nop
	lock; incl (%eax)
	nop
	rep; ret
	nop
	.data
	.byte 0xf3, 0x90
