# push_cs: a constant takes its place; other segments and a %cs override are left unchanged.
	.text
class_push_cs:
	push	%cs
	pushl	%cs
	pushl %cs ; pushl $1f
1:	push	%cs			# a comment
	pushl	%ds
	pushl	%cs:4(%ecx)
	push	%cs:(%eax)
	ret
