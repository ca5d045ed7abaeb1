# sysret
	.text
class_sysret:
	sysret
	sysretl
