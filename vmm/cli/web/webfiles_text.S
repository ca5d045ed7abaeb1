/* webfiles_text.S - the files of the page of `vmp web`, as bytes of the program. */
	.macro text_of name, file
	.globl \name\()_begin, \name\()_end
\name\()_begin:
	.incbin "\file"
\name\()_end:
	.endm
	.section .rodata
	text_of page_html, "vmm/cli/web/page.html"
	text_of charts_css, "vmm/cli/watch/charts.css"
	text_of charts_js, "vmm/cli/watch/charts.js"
	text_of web_css, "vmm/cli/web/web.css"
	text_of web_js, "vmm/cli/web/web.js"
	.section .note.GNU-stack, "", @progbits
