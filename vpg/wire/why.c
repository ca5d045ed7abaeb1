/* why.c - see why.h. */
#include "vpg/wire/why.h"

#include <stdarg.h>
#include <stdio.h>

int why_set(struct why *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->line, sizeof why->line, format, args);
	va_end(args);
	return -1;
}
