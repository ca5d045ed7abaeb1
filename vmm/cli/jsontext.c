/* jsontext.c - see jsontext.h. */
#include "vmm/cli/jsontext.h"

void json_put_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '\n')
			fprintf(out, "\\n");
		else if (c < 0x20 || c >= 0x7f || c == '<')
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}
