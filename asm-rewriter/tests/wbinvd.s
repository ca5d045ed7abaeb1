# wbinvd
	.text
class_wbinvd:
	wbinvd
	wbnoinvd
	ret
