/* problem.c - see problem.h. */
#include "vmm/shared/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include "base/printable.h"

int problem(struct problem *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->line, sizeof p->line, format, args);
	va_end(args);
	printable_line(p->line);
	return -1;
}
