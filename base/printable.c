/* printable.c - see printable.h. */
#include "base/printable.h"

#include <stdbool.h>
#include <string.h>

/* Returns the bytes of the character of UTF-8 that begins here, or 0 if none does. */
static size_t character(const unsigned char *at, size_t left)
{
	size_t bytes = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 :
		       *at < 0xf5 ? 4 : 0;

	if (bytes > left)
		return 0;
	for (size_t n = 1; n < bytes; n++)
		if ((at[n] & 0xc0) != 0x80)
			return 0;
	return bytes;
}

static bool is_control(const unsigned char *at, size_t left)
{
	if (*at == '\n' || *at == '\t' || (*at == '\r' && left > 1 && at[1] == '\n'))
		return false;
	return *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0);
}

void printable_text(char *text, size_t bytes)
{
	unsigned char *at = (unsigned char *)text;

	while (bytes) {
		size_t n = character(at, bytes);

		if (!n || is_control(at, bytes)) {
			n = n ? n : 1;
			memset(at, '?', n);
		}
		at += n;
		bytes -= n;
	}
}

void printable_line(char *line)
{
	printable_text(line, strlen(line));
	for (; *line; line++)
		if (*line == '\n' || *line == '\t' || *line == '\r')
			*line = '?';
}
