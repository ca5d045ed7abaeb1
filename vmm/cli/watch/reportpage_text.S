/* reportpage_text.S - the file reportpage.html, as bytes of the program. */
	.section .rodata
	.globl reportpage_begin, reportpage_end
reportpage_begin:
	.incbin "vmm/cli/watch/reportpage.html"
reportpage_end:
	.section .note.GNU-stack, "", @progbits
