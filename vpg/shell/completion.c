/* completion.c - see completion.h. */
#include "vpg/shell/completion.h"

#include <string.h>

const char *completion_start(const char *text, size_t n)
{
	size_t at = n;

	while (at > 0 && !strchr(" \t@|&;<>'\"", text[at - 1]))
		at--;
	return at > 0 && text[at - 1] == '@' ? text + at : NULL;
}

size_t completion_match(const struct group *g, const char *begin, size_t n, const char **first,
			size_t *common)
{
	size_t found = 0;

	*first = NULL;
	*common = 0;
	for (size_t i = 0; i < g->n; i++) {
		const char *nick = g->nicks[i];
		size_t same = 0;

		if (strncmp(nick, begin, n))
			continue;
		if (!found++) {
			*first = nick;
			*common = strlen(nick);
			continue;
		}
		while (same < *common && nick[same] == (*first)[same])
			same++;
		*common = same;
	}
	return found;
}
