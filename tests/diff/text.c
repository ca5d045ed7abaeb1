/* text.c - formatted output, collected in a buffer. */
#include <stdarg.h>
#include "tests/diff/diff.h"

static char buffer[65536];
static uint32_t used;

void text_flush(void)
{
	write_text(buffer, used);
	used = 0;
}

static void character(char c)
{
	if (used == sizeof buffer)
		text_flush();
	buffer[used++] = c;
}

static void number(uint32_t value, uint32_t base, unsigned width)
{
	char digits[10];
	unsigned n = 0;

	do
		digits[n++] = "0123456789abcdef"[value % base];
	while (value /= base);
	while (width > n)
		digits[n++] = '0';
	while (n)
		character(digits[--n]);
}

void text(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	for (; *format; format++) {
		unsigned width = 0;

		if (*format != '%') {
			character(*format);
			continue;
		}
		for (format++; *format >= '0' && *format <= '9'; format++)
			width = width * 10 + (unsigned)(*format - '0');
		if (*format == 's')
			for (const char *s = va_arg(args, const char *); *s; s++)
				character(*s);
		else
			number(va_arg(args, uint32_t), *format == 'x' ? 16 : 10, width);
	}
	va_end(args);
}
