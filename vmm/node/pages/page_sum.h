/* page_sum.h - a checksum of a page's contents, to see whether it has changed: a third of a
 * microsecond.  It is never 0.
 */
#ifndef VMM_NODE_PAGES_PAGE_SUM_H
#define VMM_NODE_PAGES_PAGE_SUM_H

#include "base/types.h"

static inline uint32_t page_sum(const uint8_t *contents)
{
	const uint64_t *word = (const uint64_t *)contents;
	uint64_t lane[4] = { 1, 2, 3, 4 };

	for (unsigned i = 0; i < PAGE_BYTES / sizeof *word; i += 4)
		for (unsigned k = 0; k < 4; k++)
			lane[k] = (lane[k] ^ word[i + k]) * 0x9e3779b97f4a7c15u;
	lane[0] ^= lane[1] >> 7 ^ lane[2] >> 13 ^ lane[3] >> 29;
	return (uint32_t)(lane[0] >> 32) | 1;
}

#endif
