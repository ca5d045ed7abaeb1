/* nick.c - see nick.h. */
#include "vpg/wire/nick.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool may_stand(char c, bool first)
{
	return isalnum((unsigned char)c) || (!first && c && strchr("-_.", c));
}

bool nick_is_valid(const char *nick)
{
	size_t n = strlen(nick);

	for (size_t i = 0; i < n; i++)
		if (!may_stand(nick[i], i == 0) || (unsigned char)nick[i] > 126)
			return false;
	return n && n < NICK_BYTES && strcmp(nick, "all");
}

void nick_of_host(const char *host, char nick[NICK_BYTES])
{
	size_t n = 0;

	for (; *host && *host != '.' && n < NICK_BYTES - 1; host++)
		if (may_stand(*host, n == 0))
			nick[n++] = *host;
	nick[n] = 0;
	if (!nick_is_valid(nick))
		snprintf(nick, NICK_BYTES, "here");
}
