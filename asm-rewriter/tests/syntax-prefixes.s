# Prefixes, in the statement and as statements: the marker stands before the first one.
	.text
prefixes:
	data16 iret
	data16; pushf
	lock; addl $0, (%esp)
	lock addl $1, (%eax)
	rep; stosb
	repne scasb
	rep
	# a comment between
	nop
	rep /* and one of C */; nop
	cs; movl (%eax), %eax
	ds movl (%eax), %eax
	notrack jmp *%eax
	{disp32} movl (%eax), %eax
	{load} sidt (%eax)
	addr16 sgdt (%bx)
	rep; ret
	nop
4:	rep
5:	nop
