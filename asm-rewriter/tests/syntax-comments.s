# A comment hides what stands in it: # pushf ; popf
	.text
comments:
	nop			# pushf; popf
	pushf			# save; "cpuid
	# it isn't "closed
	popf
	/* pushf; popf */
	cpuid /* iret; "lret */
	nop /* pushf
	popf ; cpuid
	iret */ ; pushf
	nop /* don't */ ; popf
	ret
# 12 "comments.c" 3 4
#pushf
