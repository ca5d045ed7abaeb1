# vmx
	.text
class_vmx:
	vmcall
	vmmcall
	vmlaunch
	vmresume
	vmxoff
	vmxon	(%eax)
	vmread	%eax, %ecx
	vmwrite	%eax, %ecx
	ret
