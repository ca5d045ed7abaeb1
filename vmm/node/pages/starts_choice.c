/* starts_choice.c - the pure part of starts.h. */
#include "vmm/node/pages/starts.h"

void starts_note(struct starts *starts, unsigned host, gfn_t gfn)
{
	if (starts->started && starts->host == host && starts->n < STARTS_MOST)
		starts->gfn[starts->n++] = gfn;
}

uint32_t starts_choose(struct starts *starts, unsigned host,
		       uint32_t (*copies)(const void *ctx, gfn_t gfn), const void *ctx,
		       gfn_t named[STARTS_MOST])
{
	uint32_t n = 0;

	if (starts->started && starts->host == host)
		return 0;
	for (uint32_t i = 0; i < starts->n; i++) {
		uint32_t who = copies(ctx, starts->gfn[i]);

		if (who >> starts->host & 1 && !(who >> host & 1))
			named[n++] = starts->gfn[i];
	}
	starts->started = true;
	starts->host = host;
	starts->n = 0;
	return n;
}
