# ins: alone and repeated.
	.text
class_ins:
	ins	(%dx), %es:(%edi)
	insb
	rep; insb
	rep insw
	insw
	rep; insl
	insl
	ret
