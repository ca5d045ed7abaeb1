# far_return
	.text
class_far_return:
	lret
	lretl
	lretw
	retf
	lret	$8
	ret
	ret	$8
