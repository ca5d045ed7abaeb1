/* flow_private.h - the state of flow/: destinations, flows, received messages, message logs. */
#ifndef PHOENIX_FLOW_PRIVATE_H
#define PHOENIX_FLOW_PRIVATE_H

#include "phoenix/flow/flow.h"

struct doubt {	/* of a message in a message log: whether it had arrived already */
	ph_vp_t peer;	/* the node that it was under way to, which knows; 0: none */
	ph_vp_t name;			/* the name that its sender had then */
	uint64_t seq, last;	/* its number; of a question: the first and the last number */
	uint64_t until_us;		/* then it is sent all the same */
	bool asked;
};
struct smsg {				/* a message on its way out */
	struct smsg *next;
	ph_vp_t dest, origin;
	int tag;
	unsigned flags;
	uint64_t order;			/* its place among all that this node sends */
	uint64_t deadline_us;		/* 0: none */
	uint64_t seq;			/* its number in the flow */
	uint64_t sent_us;
	unsigned gen;	/* what was known of its receiver's bouncing when it was first sent */
	bool held;			/* the receiver has it */
	bool again;			/* it was sent more than once */
	bool logged;	/* it is in a message log, whose loader sends it: this node does not */
	struct doubt doubt;
	struct dest *to;
	struct pbuf *body;
};
struct dest {				/* a destination with messages on their way */
	struct dest *hash_next, *next, *prev;
	ph_vp_t vp;
	struct smsg *queue, **queue_end;	/* not yet given to a flow, in order */
	uint64_t newest;			/* the largest `order` that was ever in the queue */
	unsigned outstanding;	/* messages given to the flow `via` and unresolved */
	ph_vp_t via;
	bool active;
	bool fenced;				/* some came back: wait until all are resolved */
	uint64_t wait_us;			/* nothing goes before; 0: it may */
};
enum outcome { OUT_MISSING, OUT_HELD, OUT_CONSUMED, OUT_BOUNCED };
struct rslot {				/* a number of the peer's */
	uint8_t outcome;
	struct rmsg *early;		/* the message, if it arrived before its turn */
};
struct flow {				/* messages to and from another node */
	struct flow *next, *all_next;
	ph_vp_t peer;
	/* to the peer */
	uint64_t next_seq;
	uint64_t una;			/* all numbers below are resolved */
	struct smsg **ring;		/* the messages from una on, by number */
	unsigned ring_size;		/* a power of two, or 0 */
	size_t bytes;			/* of these messages */
	/* the peer is asked after rto_us of silence: at rto_at; 0: nothing is under way */
	uint64_t rto_us, rto_at;
	uint64_t credit;		/* bytes that the peer has room for */
	/* when it was first asked since it last answered; 0: it has answered */
	uint64_t asked_us;
	/* how long its answers take, and how much they vary; 0: not known */
	uint64_t srtt_us, rttvar_us;
	unsigned gen_seen;		/* its last gen that is known */
	uint64_t way;			/* serial of the link that was used last */
	/* from the peer */
	uint64_t recv_next;	/* the next number in order; UINT64_MAX: nothing has arrived yet */
	uint64_t r_una;			/* the peer has read the outcomes of all numbers below */
	uint64_t r_end;			/* no number from here on has arrived */
	struct rslot *slots;		/* the numbers from r_una on */
	unsigned n_slots;		/* a power of two, or 0 */
	/* gen counts bouncing; gen_acked: the last that the peer knew of */
	unsigned gen, gen_acked;
	/* messages to these bounce while their sender knows less than gen */
	ph_vp_t bounce_lo, bounce_hi;
	unsigned unacked;		/* messages and bytes since the last acknowledgement */
	size_t unacked_bytes;
	uint64_t ack_at;		/* when to acknowledge; 0: nothing to acknowledge */
	uint64_t confirm_us;	/* when the peer was last asked whether it knows all outcomes */
};
struct handler {			/* a function of the application's for a tag */
	struct handler *next;
	int tag;
	ph_handler_fn fn;
	void *arg;
};
enum { FLOW_TABLE = 256, LATE_ACK = 32, HANDLER_TABLE = 64 };
struct flows {
	struct flow *table[FLOW_TABLE], *all;
	unsigned n;
	unsigned n_timed;		/* messages with a deadline */
	struct dest *dests[FLOW_TABLE], *active;
	/* this node itself receives a message of it just now; or NULL */
	struct dest *delivering;
	bool handling;			/* the library or a handler is at work on a message */
	uint64_t order;			/* of the last message */
	size_t out_bytes;		/* of messages on their way out */
	size_t in_bytes;		/* of received messages */
	struct rmsg *received, **received_end;
	struct smsg *spare;
	struct dest *spare_dest;
	bool self_waits;		/* a message from this node to itself waits for room */
	bool stranded;	/* messages that wait here must go on, and there is no memory for that */
	bool logged;	/* a message log was written: nothing is kept for others any more */
	struct {	/* the last acknowledgement that came with a message, not read yet */
		ph_vp_t from;
		unsigned len;		/* 0: none */
		unsigned char bytes[LATE_ACK];
	} late;
	struct handler *handlers[HANDLER_TABLE];	/* by the tag's low bits */
	enum ph_gone_policy gone_policy;
	ph_gone_fn gone_fn;
	void *gone_arg;
	uint64_t sent, resent, delivered, bounced, forwarded, dropped;	/* counts */
	struct writer scratch;		/* for one frame that is built and sent at once */
	/* a body that was not aligned, for one call of a handler */
	_Alignas(BODY_ALIGN) unsigned char aligned[IN_BYTES];
};

struct past {				/* what had arrived of a node that is gone */
	ph_vp_t name;
	uint64_t from;			/* all numbers below, and of those from here on these: */
	unsigned char bits[];
};
struct loaded {				/* a message log that this node has loaded */
	struct loaded *next;
	int fd;				/* its file, locked while this is open; or -1 */
	ph_vp_t writer;			/* the name of the node that wrote it */
	size_t n;
	uint64_t orders[];		/* the `order` of each of its messages, ascending */
};
struct doubts {
	struct past *past[MAX_PAST];
	struct loaded *loaded;
	unsigned next_past, n_asking;
	struct doubt asking[MAX_PAST];
};

enum {
	HEAD_LIMIT = 90,	/* bytes of a flow's own that fit into a frame's head */
	ACK_LIMIT = 24,		/* bytes of an acknowledgement that travels with a message */
};

static inline unsigned flow_bucket(ph_vp_t name)
{
	return (unsigned)((uint64_t)name * 0x9e3779b97f4a7c15ULL >> 56);
}

/* The place of a number; ring_size and n_slots are powers of two. */
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

static inline size_t rmsg_bytes(const struct rmsg *m)
{
	return m->room;
}

/* ---- flow.c ---- */

struct flow *flow_find(struct phnx *ph, ph_vp_t peer);
/* Returns the flow to a node, created if need be.  NULL: too many, or out of memory. */
struct flow *flow_get(struct phnx *ph, ph_vp_t peer);
/* Removes the flow to a node from all lists.  NULL: there is none. */
struct flow *flow_take(struct phnx *ph, ph_vp_t peer);
void flow_destroy(struct phnx *ph, struct flow *f);	/* f was taken */
/* Returns an empty writer for flow_send_frame(), valid until the next call. */
struct writer *flow_frame(struct phnx *ph);
/* Sends a frame to another node.  False: there is no way. */
bool flow_send_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, struct writer *w);

/* ---- send.c ---- */

/* flow_send() of a message whose place in the order of sending is known; it goes at the next
 * flow_pump().  NULL: out of memory. */
struct dest *send_enqueue(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag,
			  unsigned flags, uint64_t deadline_us, uint64_t order);
/* flow_send() of a message of a log, with what is in doubt of it; then doubt_ask(). */
int send_again(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag,
	       unsigned flags, uint64_t deadline_us, const struct doubt *doubt);
/* The peer has answered about n numbers of node `name`, from first on: those whose bits are set had
 * arrived. */
void send_certain(struct phnx *ph, ph_vp_t peer, ph_vp_t name, uint64_t first, uint64_t n,
		  const unsigned char *bits);
/* Puts a message that came back from its flow into the queue of its destination, in its old
 * place. */
void send_requeue(struct phnx *ph, struct smsg *m);
/* Forgets a message that was under way: nothing needs to be done for it any more. */
void send_resolved(struct phnx *ph, struct smsg *m);
void send_logged(struct phnx *ph);	/* everything that is unresolved is in a message log now */
void send_free(struct phnx *ph, struct smsg *m);		/* frees one message */
void send_dest_free(struct phnx *ph, struct dest *d);

/* ---- send_window.c ---- */

/* Returns whether f takes this message now; makes room for its number. */
bool window_has_room(struct flow *f, const struct smsg *m);
/* Gives a message its number in f, and sends it; window_has_room() has said that it may. */
void window_add(struct phnx *ph, struct flow *f, struct smsg *m);
/* Returns the first message under way in f with the number *seq or a later one, and sets *seq to
 * the number behind its own.  NULL: there is none. */
struct smsg *window_next(const struct flow *f, uint64_t *seq);
int window_on_ack(struct phnx *ph, ph_vp_t from, struct reader *r);
/* Puts a short acknowledgement off until flow_catch_up(); reads a long one at once. */
int window_keep_ack(struct phnx *ph, ph_vp_t from, struct reader *r);
/* Asks the peer what has not arrived. */
void window_ask(struct phnx *ph, struct flow *f, uint64_t now);
/* Tells each receiver whose outcomes are all known that it may forget them. */
void window_settle(struct phnx *ph);
void window_expire(struct phnx *ph, struct flow *f, uint64_t now);
void window_free(struct phnx *ph, struct flow *f);	/* everything that is under way in f */

/* ---- receive.c ---- */

int receive_on_data(struct phnx *ph, ph_vp_t from, struct reader *r);
/* Of n numbers of a node's, from first on, those whose bits are not set have not arrived: they
 * are refused from now on. */
void receive_deny(struct phnx *ph, ph_vp_t name, uint64_t first, uint64_t n,
		  const unsigned char *bits);
void receive_expire(struct phnx *ph, uint64_t now);
/* Copies a message from this node to itself.  NULL: out of memory. */
struct rmsg *receive_copy(const struct smsg *s);
void receive_local(struct phnx *ph, struct rmsg *m);	/* delivers such a copy */
/* Virtual nodes were released: sends messages that wait for them here on. */
void flow_release(struct phnx *ph);

/* ---- ack.c ---- */

/* Acknowledges then, or earlier. */
static inline void ack_within(struct phnx *ph, struct flow *f, uint64_t at)
{
	soon(&f->ack_at, at);
	if (f->ack_at < ph->ack_due)
		ph->ack_due = f->ack_at;
}

/* Makes room for the outcome of a number.  False: out of memory. */
bool ack_room(struct flow *f, uint64_t seq);
/* Records the outcome of a message, to be told to its sender. */
void ack_resolve(struct phnx *ph, struct rmsg *m, enum outcome outcome);
/* The sender has read the outcomes of all numbers below una. */
void ack_forget(struct flow *f, uint64_t una);
void ack_send(struct phnx *ph, struct flow *f);
/* Acknowledges, and says of each number below `sent` whether it is missing. */
void ack_answer(struct phnx *ph, struct flow *f, uint64_t sent);
/* Writes an acknowledgement of at most ACK_LIMIT bytes. */
void ack_put(struct phnx *ph, struct flow *f, struct writer *w);

/* ---- doubt.c ---- */

/* The peer of f is gone: keeps what had arrived of it. */
void doubt_keep(struct phnx *ph, const struct flow *f);
void doubt_ask(struct phnx *ph);	/* asks about all messages of logs that are in doubt */
void doubt_on_message(struct phnx *ph, const struct rmsg *m);	/* TAG_DOUBT, TAG_CERTAINTY */
/* Returns whether this message was loaded already, from whatever log. */
bool doubt_is_loaded(const struct phnx *ph, ph_vp_t writer, uint64_t order);
void doubt_note_loaded(struct phnx *ph, struct loaded *log);	/* takes log over */

#endif
