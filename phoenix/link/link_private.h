/* link_private.h - the state of link/: all links, and what nobody else may read of one. */
#ifndef PHOENIX_LINK_PRIVATE_H
#define PHOENIX_LINK_PRIVATE_H

#include "phoenix/core/rmsg.h"
#include "phoenix/link/link.h"

struct evp_cipher_ctx_st;

struct outbox {				/* outbox.c's, of one link; the queue is plink's `out` */
	struct outframe **end;		/* where the next frame is queued */
	unsigned n;
	bool has_spoken;		/* a frame was sent since bytes last arrived */
	bool unread;			/* the peer reads too little: the link is to be closed */
};
struct inbox {				/* inbox.c's, of one link */
	/* the beginning of a frame that has not arrived completely, or room for one */
	struct rmsg *begun;
	size_t room;			/* how much of it is to be filled */
	size_t bare;			/* what BARE has said of the frame that comes next */
	size_t last_frame;		/* bytes of the last frame: the next may be as long */
};
struct link {
	struct plink pub;		/* must be the first member */
	struct outbox out;
	struct inbox in;
	bool through_ssh;		/* link_input() says what that changes */
	uint64_t opened_us;
	uint64_t ping_us;		/* when the last ping was sent; 0: none */
	bool measured;			/* rtt_us is a ping's; until then it is the handshake's */
	unsigned digest_misses;	/* how many pings in a row had another digest than this node's */
	/* the handshake */
	ph_vp_t claimed;		/* the name in the peer's HELLO */
	unsigned char nonce[32], binding[32];
	struct writer my_hello, peer_hello;
	bool owes_proof;		/* the peer has greeted and has no AUTH yet */
	struct link *next_owing;
};

struct links {
	struct plink *list;
	unsigned n;
	unsigned n_proving;		/* of these, whose peers have not proved themselves */
	/* those that owe a proof, in the order of the greetings */
	struct link *owing, **owing_end;
	uint64_t due;			/* when link_tick() has to look at the links */
	uint64_t progress_us, slowest_us;	/* link_progress(), link_slowest() */
	uint64_t serial;		/* of the last link */
	uint64_t slots[MAX_LINKS / 64];	/* which are taken */
	struct {			/* outbox.c's */
		struct outframe *spare;
		unsigned n_spare;
	} frames;
	struct evp_cipher_ctx_st *seal;	/* encrypts what goes with proofs; NULL: not needed yet */
	struct writer scratch;		/* for the words of one proof */
	uint64_t frames_in[N_FRAME_TYPES], frames_out[N_FRAME_TYPES];
	struct {			/* inbox.c's */
		/* bytes that arrived behind the frame that is handled now */
		size_t behind;
		size_t sealed;		/* link_sealed() */
		/* where frames arrive that have no block of their own */
		_Alignas(BODY_ALIGN) unsigned char bytes[IN_BYTES];
	} in;
};

/* A link of another file's is the first member of one of ours. */
static inline struct link *link_of(const struct plink *l)
{
	return (struct link *)l;
}

/* Brings the next look of link_tick() forward. */
static inline void link_look_by(struct phnx *ph, uint64_t when)
{
	if (when < ph->links->due)
		ph->links->due = when;
	core_due_by(ph, when);
}

/* ---- outbox.c ---- */

void outbox_init(struct plink *l);
void outbox_free(struct plink *l);		/* frees what was not taken */
void outbox_free_spare(struct phnx *ph);
void link_send_buffer(struct plink *l, enum frame_type type, struct writer *w);

/* ---- inbox.c ---- */

void inbox_free(struct plink *l);
/* FRAME_BARE: the frame that comes next has bytes that TLS has not encrypted; -1: malformed. */
int inbox_on_bare(struct plink *l, struct reader *r);

/* ---- link.c ---- */

/* Handles a whole frame of a type that may come in the link's state.  -1: the link is closed and
 * freed. */
int link_handle(struct plink *l, enum frame_type type, const unsigned char *body, size_t len);
void link_report_peer(const struct plink *l, int error, const char *what, const char *why);
uint64_t link_ping_at(const struct plink *l, uint64_t now);	/* when the next ping is due */

/* ---- handshake.c: -1 means that the link is closed and freed ---- */

void handshake_begin(struct plink *l);			/* sends HELLO */
int handshake_on_hello(struct plink *l, struct reader *r);
int handshake_on_auth(struct plink *l, struct reader *r);
int handshake_on_refuse(struct plink *l, struct reader *r);
void handshake_forget(struct plink *l);			/* l owes no proof any more */
/* Closes one of two links to the same peer if it is this node's turn to do so.  True: that was
 * l. */
bool handshake_close_double(struct plink *l);

#endif
