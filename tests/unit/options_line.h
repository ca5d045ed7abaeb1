/* options_line.h - a command line as one string, for tests of the command's options. */
#ifndef TESTS_UNIT_OPTIONS_LINE_H
#define TESTS_UNIT_OPTIONS_LINE_H

#include <stdio.h>
#include <string.h>

#include "vmm/cli/options.h"

/* As options_parse() on a computer of four processors; the words stay until the next call. */
static inline int parse_line(struct options *o, const char *line)
{
	static char words[512];
	static char *argv[32];
	int argc = 0;

	snprintf(words, sizeof words, "%s", line);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return options_parse(o, argc, argv, 4);
}

#endif
