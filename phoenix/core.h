/* core.h - the inside of the library: one node as a protocol machine.
 *
 * `struct phnx` is a whole node.  It does no input or output of its own: a transport (net.c with libevent; the simulator
 * in tests/sim) opens links, brings bytes, takes bytes, tells the time through `struct phnx_ops`, and calls phnx_tick().
 * Not thread-safe: runtime.c holds one lock around everything.
 *
 *   link.c    frames and the handshake       route.c, tell.c   the routing table (DSDV), who is told of it
 *   flow.c    messages, end to end           send.c, receive.c   its two sides
 *   contact.c whom to connect to             node.c    timers, life
 *   migrate.c moving virtual nodes           detect.c  who is gone
 *   collective.c multicast and reduction
 *
 * A message is the sender's until a receiver has consumed it: a virtual node that moves away takes nothing along, its
 * messages bounce to their senders, who send them to the next holder.  So no message is ever in two hands, and a node
 * that dies takes only what its application had already consumed.
 */
#ifndef PHOENIX_CORE_H
#define PHOENIX_CORE_H

#include "phoenix/block.h"
#include "phoenix/config.h"
#include "phoenix/limits.h"
#include "phoenix/vps.h"
#include "phoenix/wire.h"

struct phnx;

/* ---- shared bytes ---- */

struct pbuf {
	unsigned refs;
	size_t len, room;		/* room: of the whole block */
	const unsigned char *data;
	void (*release)(void *arg);	/* of bytes that are the application's */
	void *arg;
	unsigned char own[];
};
struct pbuf *pbuf_new(const void *data, size_t len);	/* a copy; NULL: out of memory */
struct pbuf *pbuf_lent(const void *data, size_t len);	/* a copy, but only once pbuf_keep() is called */
void pbuf_keep(struct pbuf *b);
struct pbuf *pbuf_of(const void *data, size_t len, void (*release)(void *arg), void *arg);	/* without a copy */
void pbuf_put(struct pbuf *b);

/* ---- links ---- */

enum link_state { LINK_HELLO = 1, LINK_AUTH = 2, LINK_UP = 4, LINK_CLOSING = 8, LINK_ANY = 15 };
enum { FRAME_HEAD_MAX = 120, SMALL_BODY = 136, SECRET_BYTES = 32, IN_BYTES = 16384, HANDLER_TABLE = 64 };

struct outframe {
	struct outframe *next;
	unsigned head_len;
	size_t done;			/* bytes that the transport has taken */
	struct pbuf *body;		/* or NULL */
	unsigned char head[FRAME_HEAD_MAX + SMALL_BODY];	/* and behind it a body that is small: one piece costs a socket less than two */
};
struct rmsg;
struct rentry;
struct plink {
	struct plink *next;
	struct phnx *ph;
	void *transport;
	struct contact *contact;	/* that led here; NULL: accepted */
	enum link_state state;
	uint64_t serial;
	unsigned slot;			/* its bit in the sets of the routing table */
	ph_vp_t peer;			/* 0 until the peer has proved itself */
	ph_vp_t claimed;		/* the name in its HELLO */
	char from[64];			/* the other side's address as this side sees it, if it dialed */
	int port;			/* that it listens on, as it says; 0: none */
	unsigned char nonce[32], binding[32];
	struct writer my_hello, peer_hello;
	struct outframe *out, **out_end;
	size_t out_bytes;
	unsigned n_out;
	bool unread;			/* the peer reads too little: it is to be closed */
	struct rmsg *in;		/* the beginning of a frame that has not come whole, or of one that is expected */
	size_t in_len, in_room;
	size_t last_frame;		/* bytes: the next may be like it */
	bool has_spoken;		/* since bytes came last */
	uint64_t opened_us, heard_us, ping_us, rtt_us;
	bool measured;			/* by a ping; until then rtt_us is the greeting's */
	bool owes_proof;		/* the peer has greeted, */
	struct plink *next_owing;
	bool greeted;			/* the proof said what this node is: */
	bool greeted_all;		/* and named all neighbours */
	uint64_t greeting_seq, greeting_names;	/* its number and their digest then */
	bool told;			/* the peer has named its neighbours, */
	uint64_t *named;		/* these (by slot) */
	unsigned named_words;
	ph_vp_t some[SOME_NAMES];	/* of those that it had when the link was new */
	unsigned n_some;
	bool unsure;			/* hardly any of these are this node's: perhaps it is elsewhere */
	unsigned digest_misses;
};

enum contact_state { CONTACT_IDLE, CONTACT_DIALING, CONTACT_LINKED, CONTACT_SELF };
struct contact {
	struct phnx_contact at;
	ph_vp_t name;			/* learned from routing messages; 0: configured */
	ph_vp_t peer;			/* whom it led to last */
	enum contact_state state;
	uint64_t due_us, backoff_us;	/* IDLE: when to try it */
	unsigned place;			/* in the heap */
	unsigned index;			/* among the configured ones */
	bool fresh;			/* configured, and never tried */
	uint64_t awaited_until;		/* its node should come to be linked otherwise; 0: no, or not any more */
	char *complaint;		/* why it was not reached, as reported; or NULL */
	void *transport;
};
struct contacts {
	struct contact **heap;		/* by due_us */
	unsigned n, room, n_learned, n_configured;
	unsigned dialing, hopeful;	/* hopeful: of those the ones that have not failed since they last succeeded */
	bool failed;			/* one of them, ever */
	bool fresh;			/* some are: their order has to be settled */
};

struct phnx_ops {
	uint64_t (*now)(void *ctx);				/* microseconds, never back */
	void (*random)(void *ctx, void *buf, size_t n);
	void (*dial)(void *ctx, struct contact *c);		/* then phnx_link_open() or phnx_dial_failed() */
	void (*undial)(void *ctx, struct contact *c);		/* give up, or forget */
	void (*kick)(void *ctx, struct plink *l);		/* there is something to send */
	void (*close)(void *ctx, struct plink *l);		/* after this the link is freed */
	void (*report)(void *ctx, int error, const char *text);
	void (*arrived)(void *ctx);				/* the receive queue is not empty any more, or was drained */
};

/* The transport's side. */
struct plink *phnx_link_open(struct phnx *ph, void *transport, struct contact *c, const unsigned char binding[32]);
unsigned char *phnx_link_space(struct plink *l, size_t *room);	/* where to put received bytes */
int phnx_link_input(struct plink *l, size_t n);			/* n bytes were put there; -1: the link is closed and freed */
void phnx_link_taken(struct plink *l, size_t n);		/* n bytes of the out queue were sent */
void phnx_link_lost(struct plink *l);				/* the transport's connection is gone; frees the link */
void phnx_dial_failed(struct phnx *ph, struct contact *c);
uint64_t phnx_handshake_timeout(const struct phnx *ph, uint64_t now);	/* a connection that is not a link's by then is closed */
uint64_t phnx_poll(struct phnx *ph);				/* all input was given; returns when to call at the latest */
uint64_t phnx_tick(struct phnx *ph);				/* the same, and looks at every timer */
bool phnx_can_wait(struct phnx *ph);				/* phnx_poll() can, until the application has answered a message */

/* Inside. */
void link_send(struct plink *l, enum frame_type type, const struct writer *head, struct pbuf *body);
/* The same of a head that is written where it is sent from: to w, FRAME_HEAD_MAX - FRAME_HEAD bytes at most. NULL: out of memory. */
struct outframe *link_frame(struct plink *l, struct writer *w);
void link_commit(struct plink *l, struct outframe *f, enum frame_type type, const struct writer *w, struct pbuf *body);
void link_close(struct plink *l, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
void link_tick(struct phnx *ph, uint64_t now, uint64_t *next);
struct plink *link_find(struct phnx *ph, ph_vp_t peer);
void link_prove(struct phnx *ph);		/* to all whose greetings have come */

/* ---- contact points ---- */

void contact_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void contact_learn(struct phnx *ph, struct rentry *e);
void contact_linked(struct phnx *ph, struct contact *c, ph_vp_t peer);
void contact_doubled(struct phnx *ph, struct contact *c, ph_vp_t peer);	/* there is another link: look again soon */
void contact_is_self(struct phnx *ph, struct contact *c);
/* Reports why it is not reached, if that is not why it was not the last time. */
void contact_complain(struct phnx *ph, struct contact *c, int error, const char *format, ...) __attribute__((format(printf, 4, 5)));
void contact_link_down(struct phnx *ph, ph_vp_t peer);			/* no link leads to it any more */
/* Whether a neighbour has connected to this node from there already; then c counts as linked. (host: numeric) */
bool contact_is_neighbour(struct phnx *ph, struct contact *c, const char *host);
enum { WHERE_ROOM = 160 };
/* Where a peer is: of one that was dialed, c as the user named it; else (NULL) `from`, its address as far as that is known. */
void contact_where(const struct contact *c, const char *from, char where[WHERE_ROOM]);
void contact_alive(struct phnx *ph, ph_vp_t peer);
void contact_free_all(struct phnx *ph);

/* ---- routing ---- */

struct address {
	char host[64];
	int port;
	enum phnx_protocol protocol;
};
struct payload {			/* what a node announces of itself */
	bool leaving, gone;
	uint64_t stamp;			/* when it last assumed something: the newer claim of two wins */
	unsigned n_addrs;
	struct address addrs[MAX_ADDRS];
	struct ph_vps vps;
};
enum { UNREACHABLE = 255 };
struct rentry {
	ph_vp_t name;
	uint64_t seq;			/* even: the node's own; odd: somebody lost it */
	unsigned nhops;
	struct plink *fwd;		/* NULL: unreachable, or this node itself */
	struct plink *direct;		/* its own link, if there is one */
	struct payload payload;
	uint64_t *has;			/* trans united with rcpt: neighbours (by slot) that have this entry or will get it */
	unsigned has_words;
	uint64_t lost_us;		/* since when it is unreachable */
	uint64_t request_us;		/* the last SEQREQ passed on */
	uint64_t heartbeat, heard_us;	/* failure detector */
	uint64_t overlap_us;		/* since when it claims what we assume */
	bool reported;
	bool dirty;			/* some neighbour may lack it */
	bool told;			/* some neighbour was told of it */
	bool disputed;			/* a neighbour has lost the way to it, and this node has not */
	bool learned;			/* its addresses are contact points already */
};
struct claim {
	ph_vp_t lo, hi, max_hi;		/* max_hi: of all claims up to this one */
	struct rentry *by;
};
enum routing {				/* only the first outside of bench/phoenix_routing.c, which compares them */
	ROUTING_OPTIMISED, ROUTING_NAIVE, ROUTING_SILENT
};
struct routes {
	enum routing algorithm;
	struct rentry **slots;		/* hash table, linear probing, power of two */
	unsigned n_slots, n;
	struct rentry **list;
	unsigned room;
	struct rentry *self;
	struct rentry **dirty_list;	/* what must be told to a neighbour */
	unsigned n_dirty;
	uint64_t dirty_us, urgent_us;	/* since when; urgent: somebody knows it as it was before; or 0 */
	uint64_t told_us;		/* when a neighbour last named its neighbours for the first time */
	uint64_t silent[MAX_LINKS / 64];	/* the slots of those that have not */
	uint64_t here[MAX_LINKS / 64];	/* of those that have, who are of the same place (tell.c) */
	uint64_t away[MAX_LINKS / 64];	/* of those that have not, who seem to be elsewhere */
	uint64_t owed[MAX_LINKS / 64];	/* whom this node has yet to name all its neighbours */
	unsigned n_owed;
	ph_vp_t last[LAST_NAMES];	/* those that greeted last, as they say: for a guess at places, no more */
	uint64_t n_last;
	unsigned n_unsure;		/* neighbours that are `unsure` */
	bool news, far_news;		/* since the neighbours were last told; something of other places is among them */
	bool new_neighbours;		/* since then, too: they may lack anything */
	bool claims_dirty;
	struct claim *claims;
	unsigned n_claims, room_claims;
	uint64_t version;		/* changes whenever a message might now find its way */
	uint64_t clock;			/* the largest stamp seen */
	uint64_t tardy_us, tardy_until;	/* the simulator's: news waits so much longer than it need, at random */
	uint64_t digest;
	uint64_t up[MAX_LINKS / 64];	/* the slots of the neighbours */
	unsigned up_words;
	uint64_t neighbours;		/* digest of their names */
	uint64_t sweep_us;		/* when an entry is due to be forgotten or reported */
};
struct rentry *route_find(struct phnx *ph, ph_vp_t name);
ph_vp_t route_holder(struct phnx *ph, ph_vp_t vp);	/* whom to send a message for vp to, or 0 */
void route_greet(struct plink *l, struct writer *w);	/* what this node is, for its proof to l */
uint64_t route_rests_at(const struct phnx *ph, uint64_t now);	/* when no connection was made for a while */
void route_link_up(struct phnx *ph, struct plink *l);
void route_link_down(struct phnx *ph, struct plink *l);
int route_on_update(struct phnx *ph, struct plink *l, struct reader *r);
int route_on_seqreq(struct phnx *ph, struct plink *l, struct reader *r);
void route_self_changed(struct phnx *ph);
void route_clock(struct phnx *ph, uint64_t seen);	/* a stamp, or somebody's clock of them: this node's next claim is newer */
void route_tell(struct phnx *ph);		/* tells the neighbours what is to be told now, however long it could be held */
void route_resend_all(struct phnx *ph, struct plink *l);
void route_gone(struct phnx *ph, struct rentry *e);
void route_tick(struct phnx *ph, uint64_t now, uint64_t *next);
int route_init(struct phnx *ph);
void route_free(struct phnx *ph);

/* ---- flows ---- */

enum { DATA_UNORDERED = 1, DATA_CUSTODY = 2, DATA_VOID = 4, DATA_INTERNAL = 8 };
struct doubt {				/* of a log: whether a message had arrived */
	ph_vp_t peer, name;		/* whom it was under way to; 0: none. The name that its sender had then */
	uint64_t seq, last;
	uint64_t until_us;		/* then it is sent all the same */
	bool asked;
};
struct smsg {				/* a message on its way out */
	struct smsg *next;
	ph_vp_t dest, origin;
	int tag;
	unsigned flags;
	uint64_t order;			/* of sending, over all destinations */
	uint64_t deadline_us;		/* 0: none */
	uint64_t seq, sent_us;
	unsigned gen;			/* of its receiver's bouncing, as far as was known when it was first sent */
	bool held;			/* the receiver has it */
	bool again;			/* it was sent more than once */
	bool logged;			/* it stands in a message log: the log's loader sends it, this node does not */
	struct doubt doubt;
	struct dest *to;
	struct pbuf *body;
};
struct dest {				/* a destination with messages on their way */
	struct dest *hash_next, *next, *prev;
	ph_vp_t vp;
	struct smsg *queue, **queue_end;	/* not yet given to a flow, in order */
	uint64_t newest;			/* of all that were ever in the queue, in order of sending */
	unsigned outstanding;			/* given to the flow `via` and unresolved */
	ph_vp_t via;
	bool active;
	bool fenced;				/* some came back: wait until all have */
	uint64_t wait_us;
};
struct rmsg {				/* a received message; `pub` is what the application sees */
	struct ph_msg pub;
	struct rmsg *next;
	ph_vp_t source, peer;		/* peer 0: sent by this node to itself */
	uint64_t seq, deadline_us;	/* seq: of its flow; of one from this node to itself its `order`, of a multicast 0 */
	unsigned flags;
	unsigned gen;
	size_t room;			/* of the whole block; 0: it lies where its frame arrived, for one handler's call */
	_Alignas(BODY_ALIGN) unsigned char block[];	/* pub.body lies in it, where the frame had it */
};
enum outcome { OUT_MISSING, OUT_HELD, OUT_CONSUMED, OUT_BOUNCED };
struct rslot {
	uint8_t outcome;
	struct rmsg *early;		/* arrived before its turn */
};
struct flow {
	struct flow *next, *all_next;
	ph_vp_t peer;
	/* to the peer */
	uint64_t next_seq, una;		/* una: everything below is resolved */
	struct smsg **ring;
	unsigned ring_size;
	size_t bytes;
	uint64_t rto_us, rto_at, credit;	/* after rto_us, at rto_at, the peer is asked */
	uint64_t asked_us;		/* when it was first asked without having answered since; 0: it has */
	uint64_t srtt_us, rttvar_us;	/* how long its answers take, and how far they differ; 0: not known */
	unsigned gen_seen;
	uint64_t way;			/* serial of the link that it was last sent over */
	/* from the peer */
	uint64_t recv_next, r_una, r_end;	/* r_end: nothing from there on has come */
	struct rslot *slots;
	unsigned n_slots;
	unsigned gen, gen_acked;	/* counts bouncing; messages of an older one to [bounce_lo, bounce_hi) bounce too */
	ph_vp_t bounce_lo, bounce_hi;
	unsigned unacked;
	size_t unacked_bytes;
	uint64_t ack_at;		/* 0: nothing to acknowledge */
	uint64_t confirm_us;		/* when the peer was last asked whether it knows all outcomes */
};
enum { FLOW_TABLE = 256, LATE_ACK = 32 };
struct flows {
	struct flow *table[FLOW_TABLE], *all;
	unsigned n, n_timed;
	struct dest *dests[FLOW_TABLE], *active;
	struct dest *delivering;	/* of which this node itself receives a message just now; or NULL */
	bool handling;			/* the library or a handler is at a message just now */
	uint64_t order, version_seen;
	size_t out_bytes, in_bytes;
	struct rmsg *received, **received_end;
	struct smsg *spare;
	struct dest *spare_dest;
	bool pump;			/* something may move now */
	bool self_waits;		/* a message from this node to itself, for room */
	bool stranded;			/* messages that wait here must go on, and there is no memory for that */
	bool logged;			/* a log was written: what others give this node to keep now would be in none */
	uint64_t ack_soonest;		/* UINT64_MAX: no acknowledgement waits */
	struct {			/* the last acknowledgement that came with a message: read when nobody waits for that any more */
		ph_vp_t from;
		unsigned len;		/* 0: none */
		unsigned char bytes[LATE_ACK];
	} late;
	uint64_t sent, resent, delivered, bounced, forwarded, dropped;	/* counts */
};
struct handler {
	struct handler *next;
	int tag;
	ph_handler_fn fn;
	void *arg;
};
/* Takes its own reference of body. 0 or an error. */
int flow_send(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag, unsigned flags, uint64_t deadline_us);
struct rmsg *flow_receive(struct phnx *ph, int tag);	/* consumes; free with rmsg_free() or free() */
struct rmsg *rmsg_block(size_t bytes);			/* with a block of so many, and one more; NULL: out of memory */
size_t rmsg_room(const struct rmsg *m);			/* of its block, without that one */
void rmsg_free(struct rmsg *m);
struct handler **flow_handler(struct phnx *ph, int tag);	/* where the handler of this tag stands, or would stand */
void flow_handle(struct phnx *ph);			/* gives what waits to a newly set handler */
bool flow_has_room(struct phnx *ph, size_t len);	/* for one more of its own messages */
bool receive_has_room(struct phnx *ph, int tag, size_t len);	/* for one more from this node itself */
bool flow_waiting(struct phnx *ph, int tag);
void flow_pump(struct phnx *ph);
void flow_catch_up(struct phnx *ph);			/* reads the acknowledgement that was kept for later, if there is one */
void flow_release(struct phnx *ph);			/* virtual nodes of this node's have been released */
bool flow_idle(struct phnx *ph);			/* nothing that we sent is unresolved, but for what stands in a log */
void flow_logged(struct phnx *ph);			/* all that is unresolved stands in a log now */
void flow_custody(struct phnx *ph);			/* hand what finds no holder to a neighbour */
void flow_peer_gone(struct phnx *ph, ph_vp_t peer);
int flow_on_frame(struct phnx *ph, struct plink *l, enum frame_type type, const unsigned char *frame, size_t len);
void flow_farewell(struct phnx *ph);			/* the last that others hear of this node's flows */
bool flow_settled(struct phnx *ph);			/* every sender knows what became of its messages; if not, asks */
void flow_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void flow_free(struct phnx *ph);

struct loaded;
/* A message of a log, with what is in doubt of it; then doubt_ask(). */
int flow_send_again(struct phnx *ph, ph_vp_t dest, ph_vp_t origin, struct pbuf *body, int tag, unsigned flags,
		    uint64_t deadline_us, const struct doubt *doubt);
void doubt_ask(struct phnx *ph);
void doubt_on_message(struct phnx *ph, const struct rmsg *m);
bool doubt_is_loaded(const struct phnx *ph, ph_vp_t writer, uint64_t order);	/* such a message, from whatever log */
void doubt_note_loaded(struct phnx *ph, struct loaded *log);			/* which becomes the node's */
void doubt_unlock(struct phnx *ph);						/* the files of these logs are another process's */
void doubt_free(struct phnx *ph);

struct plink *route_way(struct phnx *ph, ph_vp_t to);	/* the link towards a node; NULL: none */
/* A frame with a routing header (source, destination, hops), to be written and given to link_commit(); NULL: it cannot go there. */
struct outframe *route_begin(struct plink *l, ph_vp_t to, enum frame_type type, struct writer *w);
/* Sends one towards a node; false: no way. */
bool route_frame(struct phnx *ph, ph_vp_t to, enum frame_type type, const struct writer *head, struct pbuf *body);

/* ---- migration ---- */

enum { TAG_MIGRATION = 1, TAG_MULTICAST, TAG_GATHER, TAG_VALUE, TAG_RESULT, TAG_DOUBT, TAG_CERTAINTY };	/* of messages with DATA_INTERNAL */
struct unsaid {				/* a message for which there was no memory */
	ph_vp_t to, lo, hi, count;
	int kind, wish, side;
	uint32_t attempt;
};
struct migration {
	bool locked, trying;
	ph_vp_t holder;			/* who holds this node's lock, if locked */
	ph_vp_t partner;		/* of the transaction under way */
	ph_vp_t asked;			/* who owes an answer to lock2 or cleanup; 0: nobody */
	uint32_t attempt;
	uint64_t tried_us;
	bool moving;			/* this node has released [lo, hi) and waits for the taker */
	ph_vp_t lo, hi;
	void *state;
	size_t state_len;
	struct ph_migration app;
	bool reported;			/* that there is too much state for whoever asks */
	/* the wish of a call of the application */
	enum wish { WISH_NONE, WISH_JOIN, WISH_LEAVE, WISH_TAKE, WISH_HAND, WISH_FORMER } wish;
	enum wish unwanted;		/* what the attempt under way is for, whose call has given up: what comes goes back. FORMER: there was
					 * a call for something else since */
	ph_vp_t count;
	int side;
	int result;			/* > 0: still under way */
	uint64_t retry_us;
	struct unsaid unsaid[8];	/* in their order */
	unsigned n_unsaid;
	uint64_t done, refused;		/* counts */
};
void migrate_on_message(struct phnx *ph, const struct rmsg *m);
void migrate_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void migrate_peer_gone(struct phnx *ph, ph_vp_t peer);
int migrate_begin(struct phnx *ph, enum wish wish, ph_vp_t count, int side);
void migrate_cancel(struct phnx *ph);

/* ---- messages of a log ---- */

struct past {				/* of a node that is gone */
	ph_vp_t name;
	uint64_t from;			/* all below had arrived, and of those from here on: */
	unsigned char bits[];
};
struct loaded {				/* a log that this node has loaded */
	struct loaded *next;
	int fd;				/* its file, locked as long as this is open; or -1 */
	ph_vp_t writer;			/* whose name is nobody else's */
	size_t n;
	uint64_t orders[];		/* of its messages among all that the writer has sent, the least first */
};
struct doubts {
	struct past *past[MAX_PAST];
	struct loaded *loaded;
	unsigned next_past, n_asking;
	struct doubt asking[MAX_PAST];
};

/* ---- failure detector ---- */

struct detector {
	uint64_t timeout_us, next_us;
	enum ph_gone_policy policy;
	ph_gone_fn fn;
	void *arg;
	unsigned round;
	uint64_t beat;
};
/* The node to gossip to in round r (0-based) as the s-th of n: P2P-MPI's double binary round-robin, equation 5. */
unsigned detect_target(unsigned s, unsigned n, unsigned r);
unsigned detect_rounds(unsigned n);
int detect_on_gossip(struct phnx *ph, struct reader *r);
void detect_tick(struct phnx *ph, uint64_t now, uint64_t *next);

/* ---- collective operations ---- */

struct reduction;			/* a call that waits (reduce.c) */
struct gather;				/* a question that other nodes wait to have answered */
struct collectives {
	struct reduction *list;
	struct gather *gathers;
	unsigned n_gathers;
	size_t value_bytes;
	uint64_t counter;
	struct { ph_vp_t origin; uint64_t counter; } seen[SEEN_MULTICASTS];
	unsigned next_seen;
};
int multicast_send(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int tag, const void *body, size_t len);
void collective_on_message(struct phnx *ph, const struct rmsg *m);
/* NULL: this node assumes nothing of [lo, hi), or no memory. */
struct reduction *reduction_begin(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int id, size_t len);
/* value: in, this node's, which may become that of several. 0: the result is in it, PH_EAGAIN: not yet, or an error. After anything
 * but PH_EAGAIN it is forgotten. */
int reduction_poll(struct phnx *ph, struct reduction *r, void *value, size_t len, ph_combine_fn combine);
void reduction_end(struct phnx *ph, struct reduction *r);
void deliver_multicast(struct phnx *ph, ph_vp_t dest, ph_vp_t source, int tag, const void *body, size_t len);
void reduce_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void collective_free(struct phnx *ph);

/* ---- the node ---- */

struct phnx {
	const struct phnx_ops *ops;
	void *ctx;
	ph_vp_t lower, upper, name;
	char session[MAX_SESSION];
	unsigned char secret[SECRET_BYTES];
	struct evp_cipher_ctx_st *seal;	/* for what goes with proofs; NULL: not needed yet */
	bool has_session, leaving, closing;
	uint64_t due;			/* when the next timer is */
	uint64_t gossip_us;		/* 0: no gossip */
	struct plink *links;
	unsigned n_links, n_proving;	/* of these: those whose peers have not proved themselves yet */
	struct plink *owing, **owing_end;	/* proofs, in the order of their greetings */
	uint64_t links_due;		/* when link_tick() has to look at them */
	uint64_t progress_us;		/* when a connection last came closer to being made */
	uint64_t slowest_us;		/* so long a neighbour took to answer, at most */
	uint64_t late_us, late_at;	/* so late this node itself came to what was due, and when: phnx_lateness() */
	char host[64];			/* this computer's own name, as configurations may have it */
	uint64_t link_serial;
	uint64_t link_slots[MAX_LINKS / 64];
	struct contacts contacts;
	bool learn;			/* connect to nodes known from routing messages */
	enum phnx_protocol learn_protocol;
	struct payload me;
	struct routes routes;
	struct flows flows;
	struct handler *handlers[HANDLER_TABLE];	/* by the tag's low bits */
	struct migration migration;
	struct detector detector;
	struct collectives collectives;
	struct doubts doubts;
	uint64_t frames_in[N_FRAME_TYPES], frames_out[N_FRAME_TYPES];
	struct rmsg *landed;		/* the frame being handled has this block to itself: who keeps it sets NULL here */
	struct outframe *spare_frames;
	unsigned n_spare_frames;
	struct writer scratch;		/* for frames of a flow's own that are built and sent at once */
	_Alignas(BODY_ALIGN) unsigned char in[IN_BYTES];	/* where frames arrive, of all links, that have no block of their own */
	_Alignas(BODY_ALIGN) unsigned char aligned[IN_BYTES];	/* the body of one that stood askew there, for a handler */
};
struct phnx *phnx_new(const struct phnx_ops *ops, void *ctx, ph_vp_t lower, ph_vp_t upper);
void phnx_free(struct phnx *ph);
struct contact *phnx_add_contact(struct phnx *ph, const struct phnx_contact *at, ph_vp_t name);
int phnx_assume(struct phnx *ph, const struct ph_vps *vps);
int phnx_release(struct phnx *ph, const struct ph_vps *vps);
int phnx_become(struct phnx *ph, ph_vps_t vps);	/* has these from now on, no others; frees vps. NULL: PH_ENOMEM */
int phnx_send(struct phnx *ph, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags, uint64_t deadline_us);
uint64_t phnx_lateness(const struct phnx *ph, uint64_t now);	/* so late nodes come to what is due, these seconds */
void phnx_goodbye(struct phnx *ph);	/* tell all that this node is gone for good */
bool phnx_calls_back(const struct phnx *ph);	/* whether what arrives may be handled by functions of the application */
void phnx_report(struct phnx *ph, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t phnx_random(struct phnx *ph);
static inline uint64_t phnx_now(struct phnx *ph)
{
	return ph->ops->now(ph->ctx);
}

#endif
