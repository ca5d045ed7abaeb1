/* room.c - see room.h. */
#include "vmm/node/pages/room.h"

void room_told(struct room *room, unsigned host, uint32_t share, uint32_t kept, uint32_t offered)
{
	room->of[host] = (struct room_of){ true, share, kept, offered };
}

void room_forget(struct room *room, unsigned host)
{
	room->of[host] = (struct room_of){ 0 };
}

void room_sent(struct room *room, unsigned host, uint32_t pages)
{
	room->of[host].sent += pages;
}

uint32_t room_of(const struct room *room, unsigned host, uint32_t own_share)
{
	const struct room_of *of = &room->of[host];
	uint64_t share = of->told ? of->share : own_share, used = (uint64_t)of->kept + of->sent;

	return used < share && share - used > share / ROOM_LEAST_PART ? (uint32_t)(share - used)
								     : 0;
}

unsigned room_choose(const struct room *room, uint32_t hosts, unsigned first, uint32_t own_share)
{
	unsigned best = ROOM_NOBODY;
	uint32_t most = 0;

	if (first < MAX_NODES && hosts >> first & 1 && room_of(room, first, own_share))
		return first;
	for (unsigned host = 0; host < MAX_NODES; host++) {
		uint32_t has = hosts >> host & 1 ? room_of(room, host, own_share) : 0;

		if (has > most) {
			most = has;
			best = host;
		}
	}
	return best;
}

bool room_must_tell(uint32_t share, uint32_t told, uint32_t kept, uint32_t adopted)
{
	uint32_t differ = told < kept ? kept - told : told - kept;

	if (differ < adopted)
		differ = adopted;
	return differ && differ >= share / ROOM_TOLD_PART;
}
