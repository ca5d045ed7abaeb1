/* rules.c - see rules.h. */
#include "vpg/peer/rules.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN = 256 };

static bool fits(const char *pattern, const char *program)
{
	const char *slash = strrchr(program, '/');

	if (!strchr(pattern, '/') && slash)
		program = slash + 1;
	return !fnmatch(pattern, program, FNM_PATHNAME);
}

/* Reads one line.  Returns 0 if it says nothing, 1 if it is a rule, -1 if it is damaged. */
static int read_line(const char *line, size_t n, char verb[8], char pattern[PATTERN])
{
	char text[PATTERN + 16], rest[2];
	int found;

	if (n >= sizeof text)
		return -1;
	memcpy(text, line, n);
	text[n] = 0;
	found = sscanf(text, " %7s %255s %1s", verb, pattern, rest);
	if (found <= 0 || *verb == '#')
		return 0;
	return found == 2 && (!strcmp(verb, "allow") || !strcmp(verb, "deny")) ? 1 : -1;
}

enum rules_answer rules_ask(const char *text, const char *program)
{
	bool some_allowed = false, allowed = false, denied = false;
	char verb[8], pattern[PATTERN];

	while (*text) {
		size_t n = strcspn(text, "\n");
		int kind = read_line(text, n, verb, pattern);

		if (kind < 0)
			return RULES_DAMAGED;
		if (kind > 0 && *verb == 'a') {
			some_allowed = true;
			allowed |= fits(pattern, program);
		} else if (kind > 0) {
			denied |= fits(pattern, program);
		}
		text += n + (text[n] == '\n');
	}
	return denied || (some_allowed && !allowed) ? RULES_DENY : RULES_ALLOW;
}
