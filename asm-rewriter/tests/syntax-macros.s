# A .S file: bodies of macros are rewritten where they stand, expansions and conditionals follow.
	.macro SAVE_FLAGS to=%eax
	pushf
	popl	\to
	.endm
	.macro FRAME name:req, code=0
\name:
	.Lstart_\@: pushl %cs
	.if \code
	iret
	.else
	lret
	.endif
.Lend\@:
	.endm
	.macro LABELLED name
\name\()_label: pushf
	popf
	.endm
	.text
macros:
	SAVE_FLAGS
	SAVE_FLAGS to=%ecx
	FRAME first code=1
	FRAME second
	LABELLED third
	.irp	register, %eax, %ecx
	pushf
	popl	\register
	.endr
	.rept	2
	cpuid
	.endr
	.ifdef	NEVER
	popf
	.endif
	.set	cpuid_leaf, 5
	leaf = 7
	movl	$cpuid_leaf, %eax
	ret
