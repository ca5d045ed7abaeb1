/* dumptext.c - see dumptext.h. */
#include "vmm/cli/query/dumptext.h"

#include <string.h>

enum { NAME_BYTES = 160 };

/* Prints a line for each word that points into a function, once if words are equal.  Such a word
 * need not be a return address: it may be an old one, or a pointer to a function. */
static void print_functions(FILE *out, const char *words, size_t bytes,
			    const struct symbols *symbols, gva_t *last)
{
	char name[NAME_BYTES];
	gva_t word;

	for (int taken;
	     bytes && sscanf(words, " %8x%n", &word, &taken) == 1 && (size_t)taken <= bytes;
	     words += taken, bytes -= taken) {
		pageheat_function(symbols, word, name, sizeof name);
		if (*name && word != *last)
			fprintf(out, "  %08x %s\n", word, name);
		*last = *name ? word : *last;
	}
}

void dump_print(FILE *out, const char *text, const struct symbols *symbols)
{
	static const char stack[] = "stack";
	gva_t last = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");
		char name[NAME_BYTES];
		gva_t eip;

		fprintf(out, "%.*s", (int)n, text);
		if (sscanf(text, "eip %8x -", &eip) == 1 && !strncmp(text + 12, " ->", 3)) {
			pageheat_symbol_name(symbols, eip, name, sizeof name);
			fprintf(out, "%s%s", *name ? " " : "", name);
		}
		fputc('\n', out);
		if (!strncmp(text, stack, sizeof stack - 1))
			print_functions(out, text + sizeof stack - 1, n - (sizeof stack - 1),
					symbols, &last);
		text += n + (text[n] == '\n');
	}
}
