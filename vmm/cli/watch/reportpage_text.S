/* reportpage_text.S - the page of a report, as bytes of the program: reportpage.html with
 * charts.css and charts.js put into it (module.mk). */
	.section .rodata
	.globl reportpage_begin, reportpage_end
reportpage_begin:
	.incbin "vmm/cli/watch/report.html"
reportpage_end:
	.section .note.GNU-stack, "", @progbits
