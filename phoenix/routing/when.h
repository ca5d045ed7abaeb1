/* when.h - when a node tells its neighbours of routes: the priorities of the thesis.
 *
 * Connections come first, as long as they make progress: then a node has fewer neighbours to tell
 * later, and can name all that it has.  Then other places (place.c) are told, before all have named
 * their neighbours; they go first, since updates have the longest way to them.  This place is told
 * of other places at a pause: that is much to send for a gateway, and a connection that comes
 * meanwhile would wait behind it.  A node names its neighbours when no connection was made for a
 * while, since nobody waits for that.  It tells what it knows of nodes of its own place when all
 * neighbours there have named theirs.
 *
 * None of this waits for ever, and it waits only shortly once somebody was told what is not true
 * any more, since messages go astray until that is corrected.  Everything waits longer while nodes
 * run late.
 *
 * These are decisions alone; times are in microseconds.  tell.c says what is told, and to whom.
 */
#ifndef PHOENIX_WHEN_H
#define PHOENIX_WHEN_H

#include <stdbool.h>
#include <stdint.h>

struct when_facts {
	uint64_t now;
	unsigned n_links;		/* those that are being made too */
	uint64_t lateness;		/* core_lateness() */
	uint64_t progress;		/* when a connection last came closer to being made */
	uint64_t slowest;		/* the longest time that a neighbour took to answer */
	bool proving;			/* some peer has yet to prove itself */
	bool hopeful;			/* some node is being dialed that has not failed */
	bool unnamed;	/* some neighbour of this place has yet to name its neighbours */
	uint64_t named;		/* when a neighbour last named its neighbours for the first time */
	uint64_t since;			/* since when there is something to tell */
	uint64_t urgent;		/* since when a neighbour knows what is not true; 0: none */
	uint64_t not_before;		/* the simulator's delay; 0: none */
};
struct when {				/* when to tell what */
	/* to other places; to this place of others; this node's neighbours; everything */
	uint64_t away, here, names, all;
};
struct when when_to_tell(const struct when_facts *f);
/* Returns when no connection will have been made for a while. */
uint64_t when_at_rest(uint64_t progress, unsigned n_links, uint64_t lateness);

#endif
