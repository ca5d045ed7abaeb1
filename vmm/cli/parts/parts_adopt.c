/* parts_adopt.c - see parts.h: what another owner must know of the parts. */
#include "vmm/cli/parts/parts.h"

#include <stdio.h>
#include <string.h>

uint32_t parts_print(const struct parts *parts, char *text, size_t bytes)
{
	size_t n = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < parts->is.n && n < bytes; i++)
		n += (size_t)snprintf(text + n, bytes - n, "%s\n",
				      parts->holder[parts->is.holder[i]].host.name);
	return parts->is_number;
}

void parts_adopt(struct parts *parts, uint32_t number, const char *text)
{
	parts->is_number = number;
	for (const char *end; (end = strchr(text, '\n')) && parts->is.n < MAX_NODES;
	     text = end + 1) {
		struct holder *h = &parts->holder[parts->is.n];

		snprintf(h->host.name, sizeof h->host.name, "%.*s", (int)(end - text), text);
		parts->is.holder[parts->is.n] = (uint8_t)parts->is.n;
		parts->is.n++;
	}
}
