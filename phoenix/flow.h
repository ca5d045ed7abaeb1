/* flow.h - what flow.c, send.c and receive.c have in common; nobody else includes it. */
#ifndef PHOENIX_FLOW_H
#define PHOENIX_FLOW_H

#include "phoenix/core.h"

enum {
	HEAD_LIMIT = 90,	/* bytes of a flow's own that fit into a frame's head */
	ACK_LIMIT = 24,		/* bytes of an acknowledgement that travels with a message */
};

static inline unsigned flow_bucket(ph_vp_t name)
{
	return (unsigned)((uint64_t)name * 0x9e3779b97f4a7c15ULL >> 56);
}

/* Where a number stands; both tables are powers of two. */
static inline struct smsg **ring_at(const struct flow *f, uint64_t seq)
{
	return f->ring + (seq & (f->ring_size - 1));
}

static inline struct rslot *slot_at(const struct flow *f, uint64_t seq)
{
	return f->slots + (seq & (f->n_slots - 1));
}

/* Brings a time (0: none) forward. */
static inline void soon(uint64_t *at, uint64_t when)
{
	if (!*at || when < *at)
		*at = when;
}

/* flow.c */
struct flow *flow_find(struct phnx *ph, ph_vp_t peer);
struct flow *flow_get(struct phnx *ph, ph_vp_t peer);	/* makes it if need be; NULL: too many, or out of memory */
void flow_destroy(struct phnx *ph, struct flow *f);	/* one that is in no table any more */
uint64_t flow_way(struct phnx *ph, ph_vp_t peer);	/* serial of the link towards peer, or 0 */
/* An empty writer for flow_send_frame(), good until the next one is asked for. */
struct writer *flow_frame(struct phnx *ph);
/* A frame through the overlay. false: no way. */
bool flow_send_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, struct writer *w);

/* doubt.c */
void doubt_keep(struct phnx *ph, const struct flow *f);	/* its peer is gone */

/* send.c */
/* flow_send() of a message that has its place in the order of sending already; it goes when flow_pump() is called.  NULL: out of
 * memory. */
struct dest *send_enqueue(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag, unsigned flags,
			  uint64_t deadline_us, uint64_t order);
/* A message of the library's own; frees w's bytes. */
void flow_send_internal(struct phnx *ph, ph_vp_t to, int tag, struct writer *w, uint64_t deadline_us);
/* Of the numbers from first on, those whose bits are set had arrived at peer; the others are in doubt no more. */
void send_certain(struct phnx *ph, ph_vp_t peer, ph_vp_t name, uint64_t first, uint64_t n, const unsigned char *bits);
int send_on_ack(struct phnx *ph, ph_vp_t from, struct reader *r);
int send_keep_ack(struct phnx *ph, ph_vp_t from, struct reader *r);	/* the same, but read later, if it is short */
void send_ask(struct phnx *ph, struct flow *f, uint64_t now);	/* what of all that is under way has not come; that is sent again */
uint64_t send_patience(const struct flow *f);			/* how long to wait before asking, the first time */
void send_settled(struct phnx *ph);				/* to all of whose outcomes it knows, before it ends */
void send_expire(struct phnx *ph, struct flow *f, uint64_t now);
void send_free(struct phnx *ph, struct flow *f);		/* everything that is under way in f */
void send_dest_free(struct phnx *ph, struct dest *d);
void smsg_free(struct phnx *ph, struct smsg *m);

/* receive.c */
int receive_on_data(struct phnx *ph, ph_vp_t from, struct reader *r);
void receive_forget(struct flow *f, uint64_t una);		/* the sender has read the outcomes of all below una */
/* Of a node's numbers from first on, those whose bits are not set have not arrived; if they do, they come too late. */
void receive_deny(struct phnx *ph, ph_vp_t name, uint64_t first, uint64_t n, const unsigned char *bits);
void receive_expire(struct phnx *ph, uint64_t now);
void receive_ack(struct phnx *ph, struct flow *f);
void receive_answer(struct phnx *ph, struct flow *f, uint64_t sent);	/* the same; and of all below `sent`, what has not come */
void receive_put_ack(struct phnx *ph, struct flow *f, struct writer *w);	/* at most ACK_LIMIT bytes */
struct rmsg *receive_copy(const struct smsg *s);		/* of one from this node to itself; NULL: out of memory */
void receive_local(struct phnx *ph, struct rmsg *m);		/* such a copy */
size_t rmsg_bytes(const struct rmsg *m);

#endif
