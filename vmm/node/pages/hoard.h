/* hoard.h - ends a machine of which hostile code takes memory from a host with a limit.
 *
 * A VM process maps all of the guest's RAM, so that code in it that has left the guest's segments
 * can touch pages that this host was never given.  The share (share.h) knows nothing of them, but
 * the memory file has their blocks.  So they are counted now and then.
 */
#ifndef VMM_NODE_PAGES_HOARD_H
#define VMM_NODE_PAGES_HOARD_H

#include <stdbool.h>
#include <stdint.h>
#include "vmm/node/pages/share.h"

enum {
	HOARD_LOOK_MS = 1000,
	/* a page that leaves may be read once more through another mapping, which makes an
	 * empty one (TRICKS: minor-faults-too); so this part of the share, and so many pages, are
	 * let be */
	HOARD_PART = 4,
	HOARD_PAGES = 1 << 14,
};

struct node;

/* Pure: whether the file has more pages than a host with that share can have come to. */
static inline bool hoard_is_seen(uint64_t file_pages, uint32_t share_pages)
{
	return file_pages > share_most(share_pages) + (uint64_t)share_pages / HOARD_PART +
				    HOARD_PAGES;
}

/* For a host with a limit; does nothing on another. */
void hoard_start(struct node *node);

#endif
