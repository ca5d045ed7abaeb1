# out
	.text
class_out:
	out	%al, %dx
	outb	%al, $0x80
	outb	%al, (%dx)
	outw	%ax, %dx
	outl	%eax, %dx
	ret
