# What gcc writes: directives, sections, debugging information, strings, local labels, a jump table.
	.file	"process.c"
	.file	1 "process.c"
	.text
.Ltext0:
	.section	.rodata.str1.1,"aMS",@progbits,1
.LC0:
	.string	"pushf; popf\n\tcpuid \"iret\" # not a comment ; cli"
	.section	.text.unlikely,"ax",@progbits
	.p2align 4
	.type	flags_of, @function
flags_of:
.LFB0:
	.loc 1 10 1 view -0
	.cfi_startproc
	pushl	%ebp
	.cfi_def_cfa_offset 8
#APP
# 26 "irqflags.h" 1
	# __raw_save_flags
	pushf ; pop %eax
# 0 "" 2
#NO_APP
	cmpl	$3, %eax
	ja	.L2
	jmp	*.L4(,%eax,4)
	.section	.rodata
	.align 4
.L4:
	.long	flags_of
	.byte	15
	.byte	162
	.byte	0x0f, 0xa2
	.section	.text.unlikely
.L2:
	movl	$.LC0, (%esp)
	popl	%ebp
	ret
	.cfi_endproc
.LFE0:
	.size	flags_of, .-flags_of
	.comm	in,4,4
	.local	cli
	.comm	cli,4,4
	.section	.debug_str,"MS",@progbits,1
	.string	"pushf"
	.ident	"GCC: (Debian 12.2.0-14) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
