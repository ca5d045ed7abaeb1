/* room.h - how much of the guest's RAM the other hosts can still take: what each has said of its
 * share, and which one is to take pages.  Pure.
 *
 * A host tells the others what it holds when that has changed by a part of its share, or when it
 * has adopted so many pages.  Until it has said anything, it counts as empty, with a share as large
 * as this host's: if that is wrong, it refuses the first page, and says so.
 */
#ifndef VMM_NODE_PAGES_ROOM_H
#define VMM_NODE_PAGES_ROOM_H

#include "base/limits.h"
#include "base/types.h"

enum {
	ROOM_TOLD_PART = 64,	/* a host tells what it holds when this part of its share changed */
	ROOM_LEAST_PART = 256,	/* a host with less room than this part of its share gets none */
	ROOM_NOBODY = MAX_NODES,
};

/* All zero: no host has said anything. */
struct room {
	struct room_of {
		bool told;
		uint32_t share, kept, sent; /* sent: pages offered since it said that */
	} of[MAX_NODES];
};

/* Host `host` says that it holds `kept` pages of its share.  `offered`: the pages that were offered
 * to it and are not there yet. */
void room_told(struct room *room, unsigned host, uint32_t share, uint32_t kept, uint32_t offered);
/* The host is gone; the next one with its number is another. */
void room_forget(struct room *room, unsigned host);
void room_sent(struct room *room, unsigned host, uint32_t pages);

/* Returns for how many pages a host has room; 0 if it is too little to count. */
uint32_t room_of(const struct room *room, unsigned host, uint32_t own_share);
/* Returns `first` if it is in the set and has room, else the host in the set that has the most
 * room, or ROOM_NOBODY. */
unsigned room_choose(const struct room *room, uint32_t hosts, unsigned first, uint32_t own_share);

/* Returns whether a host must tell what it holds: it has said `told` last, and has adopted so many
 * pages since.  Those count by themselves: as many may have gone, and whoever offers pages counts
 * what it has offered until it hears more. */
bool room_must_tell(uint32_t share, uint32_t told, uint32_t kept, uint32_t adopted);

#endif
