/* text.c - the formatter of reasons and dumps: %s %u %x %lx with a zero-padded width.  There is no
 * libc in this folder. */
#include "vcpu/internal.h"

static void add_char(struct text *t, char c)
{
	if (t->used + 1 >= t->room)
		return;
	t->at[t->used++] = c;
	t->at[t->used] = 0;
}

static void add_number(struct text *t, uint64_t value, unsigned radix, unsigned width)
{
	char digits[32];
	unsigned n = 0;

	do {
		digits[n++] = "0123456789abcdef"[value % radix];
		value /= radix;
	} while (value);
	while (n < width && n < sizeof digits)
		digits[n++] = '0';
	while (n)
		add_char(t, digits[--n]);
}

static void add_string(struct text *t, const char *s)
{
	while (*s)
		add_char(t, *s++);
}

void text_add_list(struct text *t, const char *format, va_list args)
{
	for (; *format; format++) {
		unsigned width = 0;

		if (*format != '%') {
			add_char(t, *format);
			continue;
		}
		for (format++; *format >= '0' && *format <= '9'; format++)
			width = width * 10 + (unsigned)(*format - '0');
		switch (*format) {
		case 's': add_string(t, va_arg(args, const char *)); break;
		case 'u': add_number(t, va_arg(args, unsigned), 10, width); break;
		case 'x': add_number(t, va_arg(args, unsigned), 16, width); break;
		case 'l': /* %lx: an address of 64 bits */
			format++;
			add_number(t, va_arg(args, unsigned long), 16, width);
			break;
		case 0: return;
		default: add_char(t, *format);
		}
	}
}

void text_add(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_add_list(t, format, args);
	va_end(args);
}
