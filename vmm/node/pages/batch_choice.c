/* batch_choice.c - the pure part of batch.h. */
#include "vmm/node/pages/batch.h"

bool batch_is_request(uint16_t type, enum page_right *left)
{
	switch (type) {
	case MSG_DSM_READ:
	case MSG_DSM_FORWARD_READ:
		*left = PAGE_READ;
		return true;
	case MSG_DSM_WRITE:
	case MSG_DSM_UPGRADE:
	case MSG_DSM_FORWARD_WRITE:
	case MSG_DSM_INVALIDATE:
		*left = PAGE_NONE;
		return true;
	case MSG_DSM_HANDOVER:
	case MSG_DSM_ADOPT:
		*left = PAGE_WRITE;
		return true;
	}
	return false;
}

unsigned batch_choose(const struct batch_wish *wish, unsigned wishes,
		      struct staged page[EXTRACT_MOST])
{
	unsigned n = 0;

	for (unsigned i = 0; i < wishes && n < EXTRACT_MOST; i++) {
		unsigned at = n;

		if (wish[i].held || wish[i].has <= wish[i].left)
			continue;
		while (at && page[at - 1].gfn > wish[i].gfn)
			at--;
		if (at && page[at - 1].gfn == wish[i].gfn)
			continue;
		for (unsigned k = n; k > at; k--)
			page[k] = page[k - 1];
		page[at] = (struct staged){ wish[i].gfn, wish[i].has, wish[i].left, NULL };
		n++;
	}
	return n;
}
