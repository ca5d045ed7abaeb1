# push_cs: a constant stands in its place; the other segments and a %cs override are not its business.
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
