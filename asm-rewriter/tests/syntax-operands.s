# Operands of every AT&T form stay as they are.
	.text
operands:
	sgdt	%cs:(%eax)
	sgdt	%ss:-4(%ebp)
	sidt	symbol+4(%ebx, %esi, 2)
	sidt	symbol - 8
	str	  %ax
	movl	%cs , %eax
	mov	%cs,%ecx
	pushl	%cs 
	push	 %cs
	pushl	$0x82
	lcall	*%ds:symbol(,%ecx,8)
	ljmp	*symbol(%eax)
	lar	symbol, %eax
	movl	$pushf, %eax
	call	popf
	jmp	cpuid
	jmp	*iret(,%eax,4)
	ret
popf:
	nop
cpuid:	nop
pushf: pushf
	ret
	.data
symbol:
	.long 0, 0
iret:	.long operands
