/* rmsg.h - a received message, and the block of memory that holds it.
 *
 * link/ reads a frame into a block that leaves room for a struct rmsg before it.  If the frame
 * turns out to be a message, the block becomes the message, and its body is not copied.
 */
#ifndef PHOENIX_RMSG_H
#define PHOENIX_RMSG_H

#include <stdint.h>
#include "phnx/phnx.h"
#include "phoenix/core/block.h"
#include "phoenix/core/bounds.h"

struct rmsg {
	struct ph_msg pub;		/* what the application sees; must be the first member */
	struct rmsg *next;
	ph_vp_t source;			/* resource name of the sender */
	ph_vp_t peer;			/* the node whose flow brought it; 0: this node itself */
	/* its number in that flow.  From this node to itself: its `order`; a multicast: 0 */
	uint64_t seq;
	uint64_t deadline_us;		/* 0: none */
	unsigned flags;			/* DATA_* of flow.h */
	unsigned gen;	/* what its sender knew of the receiver's bouncing (flow.c) */
	/* bytes of the whole block; 0: not a block, valid during one call of a handler */
	size_t room;
	/* pub.body lies in it, where the frame had it */
	_Alignas(BODY_ALIGN) unsigned char block[];
};

/* Returns a message with a block of `bytes` bytes, and one more for a terminator; NULL: out of
 * memory. */
static inline struct rmsg *rmsg_block(size_t bytes)
{
	size_t room;
	struct rmsg *m = block_get(sizeof *m + bytes + 1, &room);

	if (m)
		*m = (struct rmsg){ .room = room };
	return m;
}

/* Bytes of its block, without the terminator's. */
static inline size_t rmsg_room(const struct rmsg *m)
{
	return m->room - sizeof *m - 1;
}

static inline void rmsg_free(struct rmsg *m)
{
	if (m && m->room)
		block_put(m, m->room);
}

#endif
