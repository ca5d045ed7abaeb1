/* dsm_private.h - what dsm.c, dsm_node.c and home.c share. */
#ifndef DSM_DSM_PRIVATE_H
#define DSM_DSM_PRIVATE_H

#include "dsm/dsm.h"
#include "dsm/table.h"

enum { HOLD_UNIT_US = 100 };
_Static_assert(DSM_HOLD_MAX_US / HOLD_UNIT_US < 255, "held_for");

/* A page at this node: 16 bytes. */
struct node_page {
	uint8_t state;	 /* enum node_state */
	/* the highest right that local CPUs want and do not have: enum page_right */
	uint8_t wanted;
	/* outstanding acknowledgements; below 0: they arrived before the grant that has their
	 * number */
	int8_t acks_due;
	/* fault point: the invalidation in `held_*` is acknowledged, but the copy is still here */
	uint8_t delayed;
	uint8_t held_type; /* message held back by rule e: its type - MSG_DSM_READ + 1, or 0 */
	uint8_t held_requester, held_acks;
	uint8_t held_for; /* time held so far, in units of HOLD_UNIT_US, rounded up */
	uint32_t txn;	   /* transaction of our own request, known while acks_due is not 0 */
	uint32_t held_txn;
};

/* A page at its home: 16 bytes, all zero if never touched. */
struct home_page {
	uint32_t copyset; /* bit per node that may have the page, the owner among them */
	uint32_t txn;	  /* number of the last transaction */
	/* the last queued request: index in home_queue + 1; a ring, so its next is the first; 0:
	 * none */
	uint32_t queue;
	uint8_t state;	  /* enum home_state */
	uint8_t owner;
	uint8_t requester; /* of the running transaction */
	uint8_t reserved;
};
_Static_assert(sizeof(struct node_page) == 16 && sizeof(struct home_page) == 16, "memory per page");

/* A request that waits at its home. */
struct home_waiter {
	uint32_t next; /* index + 1: of the ring, or of the free list */
	uint16_t type;
	uint8_t from, target;
};

/* Work to do on this node, in order: messages to itself, and wants. */
struct dsm_work {
	uint16_t type; /* message type, or 0: a want of right `body.acks` */
	uint8_t to_home;
	uint8_t ahead; /* of a want: no CPU waits for it yet */
	struct msg_dsm body;
};

/* The pages that a leaving node has requested the homes to take, each with the number of steps
 * since.  Few are outstanding: the guest's CPUs need the hosts' processors and their pages at
 * the same time.  The number begun per millisecond adapts: a little more if all were taken by
 * the next step, half if not even half were. */
enum {
	LEAVE_WINDOW = 96, LEAVE_LEAST = 8, LEAVE_FIRST = 16, LEAVE_MOST = 48,
	LEAVE_PATIENCE = 1000,
};
struct dsm_leaving {
	bool on;
	gfn_t next; /* the next page to examine */
	unsigned pace;
	unsigned count, begun; /* outstanding; of those, begun in the last step */
	struct { gfn_t gfn; uint32_t steps; } asked[LEAVE_WINDOW];
};

struct dsm {
	unsigned node;
	uint32_t nodes; /* bit set: nodes that may own pages */
	uint32_t n_pages;
	struct home_place place[DSM_INTERVALS];
	uint32_t coming; /* pages in READING or WRITING */
	struct dsm_leaving leaving;
	struct dsm_host host;
	struct dsm_stats stats;
	struct node_page *pages;
	struct home_page *homes;
	struct home_waiter *waiters;
	uint32_t waiters_free, waiters_count, waiters_room;
	struct dsm_work *work; /* a ring of a power of two */
	uint32_t work_head, work_tail, work_room;
	bool working;
	bool broken; /* dsm_is_wrong(): nothing is served any more */
	_Alignas(8) uint8_t contents[PAGE_BYTES]; /* a page, or a part of a home, to be sent */
};

enum { NO_NODE = MAX_NODES }; /* a place that this node does not know */

static inline bool home_is_here(const struct dsm *dsm, gfn_t gfn)
{
	return dsm->place[dsm_interval(gfn, dsm->n_pages)].node == dsm->node;
}

/* Report that another node broke the protocol: struct dsm_host's wrong() for the first such
 * message, or bug().  The caller then returns. */
void dsm_is_wrong(struct dsm *dsm, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The page's state changes. */
static inline void dsm_enter(struct dsm *dsm, struct node_page *page, enum node_state state)
{
	dsm->coming -= page->state == NODE_READING || page->state == NODE_WRITING;
	dsm->coming += state == NODE_READING || state == NODE_WRITING;
	page->state = (uint8_t)state;
}

void homes_start(struct dsm *dsm, unsigned n_nodes);

/* Send one message to a node or a home; one to this node is queued as work. */
void dsm_send(struct dsm *dsm, vnode_t to, uint16_t type, const struct msg_dsm *body,
	      const void *payload);

/* Handle a message for this node as a holder or requester, and for the homes here; a message to
 * a home names the requester. */
void node_on_message(struct dsm *dsm, uint16_t type, const struct msg_dsm *body,
		     const void *payload);
void node_on_want(struct dsm *dsm, gfn_t gfn, enum page_right right);
void node_on_want_ahead(struct dsm *dsm, gfn_t gfn, enum page_right right);
void node_retry(struct dsm *dsm, gfn_t gfn);
bool node_drop(struct dsm *dsm, gfn_t gfn);
void node_hand_over(struct dsm *dsm, gfn_t gfn, unsigned to);
void home_on_message(struct dsm *dsm, uint16_t type, const struct msg_dsm *body);
/* Remove a page's queue, which moves with its home: store up to `room` requests, oldest first,
 * and return their number.  The queue is empty then. */
uint32_t home_take_queue(struct dsm *dsm, gfn_t gfn, struct home_item_waiting *waiting,
			 uint32_t room);
void home_put_queue(struct dsm *dsm, gfn_t gfn, const struct home_item_waiting *waiting,
		    uint32_t count);

#endif
