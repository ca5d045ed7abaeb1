/* flow.h - messages from end to end, for the layers above.  How it works: flow.c. */
#ifndef PHOENIX_FLOW_H
#define PHOENIX_FLOW_H

#include "phoenix/core/rmsg.h"
#include "phoenix/routing/routes.h"

/* Flags of a message.  UNORDERED: it need not keep the order; CUSTODY: the receiver is to send
 * it on; VOID: its time was up under way, only its number counts; INTERNAL: one of the library's
 * own, with a tag of enum internal_tag. */
enum { DATA_UNORDERED = 1, DATA_CUSTODY = 2, DATA_VOID = 4, DATA_INTERNAL = 8 };
enum internal_tag {
	TAG_MIGRATION = 1,
	TAG_MULTICAST,
	TAG_GATHER,
	TAG_VALUE,
	TAG_RESULT,
	TAG_DOUBT,
	TAG_CERTAINTY
};

/* ---- sending ---- */

/* Queues a message; takes its own reference of body.  deadline_us 0: none.  Returns 0 or an
 * error. */
int flow_send(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag,
	      unsigned flags, uint64_t deadline_us);
/* The same of the application's; PH_EAGAIN: the queue is full. */
int flow_send_own(struct phnx *ph, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags,
		  uint64_t deadline_us);
/* The same of the library's, with the bytes of w, which it frees; reports when memory is short. */
void flow_send_internal(struct phnx *ph, ph_vp_t to, int tag, struct writer *w,
			uint64_t deadline_us);
bool flow_has_room(struct phnx *ph, size_t len);	/* for one more message of this node's */
/* Returns whether every message of this node is resolved or in a message log. */
bool flow_idle(struct phnx *ph);
void flow_custody(struct phnx *ph);	/* hands messages that find no holder to a neighbour */

/* ---- receiving ---- */

/* Takes a message whose tag matches out of the queue, or returns NULL.  The caller frees it. */
struct rmsg *flow_receive(struct phnx *ph, int tag);
bool flow_has_received(const struct phnx *ph);		/* whether any message is there */
/* Has messages of this tag handled as they arrive; fn NULL: not any more.  Returns 0 or
 * PH_ENOMEM. */
int flow_set_handler(struct phnx *ph, int tag, ph_handler_fn fn, void *arg);
/* Returns whether there is room for one more message from this node to itself. */
bool receive_has_room(struct phnx *ph, int tag, size_t len);
/* Delivers this node's copy of a multicast to the application. */
void receive_multicast(struct phnx *ph, ph_vp_t dest, ph_vp_t source, int tag, const void *body,
		       size_t len);

/* ---- nodes that are gone, and the end of this one ---- */

/* What to do with messages under way to a node that is gone, and whom to tell. */
void flow_set_gone(struct phnx *ph, enum ph_gone_policy policy, ph_gone_fn fn, void *arg);
void flow_peer_gone(struct phnx *ph, ph_vp_t peer);	/* resolves those messages by that policy */
/* Tells the application that the node is gone. */
void flow_tell_gone(struct phnx *ph, ph_vp_t peer);
/* Returns whether every sender knows the outcomes of its messages; asks those that do not. */
bool flow_settled(struct phnx *ph);
void flow_farewell(struct phnx *ph);	/* sends the last acknowledgements */
uint64_t flow_forwarded(const struct phnx *ph);		/* count: frames passed on for others */
/* Unlocks the message logs that this node has loaded, for another process. */
void doubt_unlock(struct phnx *ph);

/* ---- for node/ ---- */

int flow_init(struct phnx *ph);				/* -1: out of memory */
void flow_free(struct phnx *ph);
void flow_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void flow_pump(struct phnx *ph);			/* sends what waits and can go */
void flow_catch_up(struct phnx *ph);	/* reads an acknowledgement that was put off */
/* Returns whether a frame may lead to a call of the application's functions. */
bool flow_calls_back(const struct phnx *ph);
int doubt_init(struct phnx *ph);			/* -1: out of memory */
void doubt_free(struct phnx *ph);

#endif
