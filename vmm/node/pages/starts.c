/* starts.c - see starts.h; which pages are named is starts_choice.c's. */
#include "vmm/node/pages/starts.h"

#include <string.h>
#include "base/mechanisms.h"
#include "dsm/dsm.h"
#include "vmm/node/node.h"

static uint32_t copies(const void *ctx, gfn_t gfn)
{
	return dsm_copies(ctx, gfn);
}

void starts_name(struct node *node, unsigned host)
{
	const struct msg_start_pages body = { .from = node->o.node };
	gfn_t named[STARTS_MOST];
	uint32_t n;

	if (!node->dsm || host == node->o.node ||
	    !mechanism_on(node->o.machine.without, MECHANISM_START))
		return;
	n = starts_choose(&node->starts, host, copies, node->dsm, named);
	if (n)
		net_send(node->net, VNODE_DAEMON(host), MSG_START_PAGES, &body, sizeof body, named,
			 n * (uint32_t)sizeof *named);
}

/* Another host has named pages. */
void starts_on_pages(struct node *node, const struct message *m)
{
	gfn_t gfn;

	node->outside->cork(node);
	for (uint32_t at = 0; at + sizeof gfn <= m->payload_bytes; at += sizeof gfn) {
		memcpy(&gfn, (const uint8_t *)m->payload + at, sizeof gfn);
		if (ram_has(node->ram_pages, gfn))
			pagestore_want_ahead(node, gfn, PAGE_READ);
	}
	node->outside->uncork(node);
}
