/* group.c - see group.h. */
#include "vpg/shell/group.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool group_is_one(const char *name)
{
	return !strcmp(name, "all") || strchr(name, '[');
}

bool group_is_valid(const char *name)
{
	struct group g = { 0 };
	bool valid = group_is_one(name) && (!strcmp(name, "all") || !group_expand(&g, name));

	group_free(&g);
	return valid;
}

int group_add(struct group *g, const char *nick)
{
	char (*more)[NICK_BYTES];

	if (!nick_is_valid(nick) || g->n == GROUP_MAX)
		return -EINVAL;
	more = realloc(g->nicks, (g->n + 1) * sizeof *more);
	if (!more)
		return -ENOMEM;
	g->nicks = more;
	snprintf(more[g->n++], NICK_BYTES, "%s", nick);
	return 0;
}

/* Takes a number of at most six digits; *digits gets how many there are. */
static int take_number(const char **at, unsigned *number, int *digits)
{
	*number = 0;
	for (*digits = 0; isdigit((unsigned char)**at) && *digits < 7; ++*at, ++*digits)
		*number = 10 * *number + (unsigned)(**at - '0');
	return *digits > 0 && *digits < 7 ? 0 : -EINVAL;
}

/* Takes FIRST or FIRST-LAST.  Numbers are as wide as FIRST is written. */
static int take_range(struct group *g, const char *name, const char **at, const char *rest)
{
	int width, ignored, before = (int)(strchr(name, '[') - name);
	unsigned first, last;
	char nick[2 * NICK_BYTES];

	if (take_number(at, &first, &width))
		return -EINVAL;
	last = first;
	if (**at == '-') {
		++*at;
		if (take_number(at, &last, &ignored))
			return -EINVAL;
	}
	if (last < first || last - first >= GROUP_MAX)
		return -EINVAL;
	for (unsigned i = first; i <= last; i++) {
		snprintf(nick, sizeof nick, "%.*s%0*u%s", before, name, width, i, rest);
		int error = group_add(g, nick);
		if (error)
			return error;
	}
	return 0;
}

int group_expand(struct group *g, const char *name)
{
	const char *at = strchr(name, '['), *end = at ? strchr(at, ']') : NULL;
	int error;

	if (!end || strlen(name) > 2 * NICK_BYTES || strchr(end, '['))
		return -EINVAL;
	do {
		at++;
		error = take_range(g, name, &at, end + 1);
	} while (!error && *at == ',');
	return error ? error : at == end ? 0 : -EINVAL;
}

void group_free(struct group *g)
{
	free(g->nicks);
	*g = (struct group){ 0 };
}
