/* link.h - one connection to one neighbour, as a sequence of frames; for its transport and for
 * the layers above. */
#ifndef PHOENIX_LINK_H
#define PHOENIX_LINK_H

#include "phoenix/core/bytes.h"
#include "phoenix/core/core.h"
#include "phoenix/core/pbuf.h"
#include "phoenix/link/frame.h"

enum link_state { LINK_HELLO = 1, LINK_AUTH = 2, LINK_UP = 4, LINK_CLOSING = 8, LINK_ANY = 15 };
enum { FRAME_HEAD_MAX = 120, SMALL_BODY = 136, IN_BYTES = 65536 };

struct outframe {			/* a frame on its way out */
	struct outframe *next;
	unsigned head_len;
	size_t done;			/* bytes that the transport has taken */
	size_t bare;	/* bytes at its end that TLS need not encrypt; 0 without TLS */
	struct pbuf *body;		/* or NULL */
	/* The head, and a body of at most SMALL_BODY bytes behind it: one piece costs a socket
	 * less than two. */
	unsigned char head[FRAME_HEAD_MAX + SMALL_BODY];
};

/* The part of a link that others may read.  Only link/ writes it, but for what says otherwise. */
struct plink {
	struct plink *next;		/* in the list of all links */
	struct phnx *ph;
	void *transport;
	/* that was dialed, routing/ may clear it; NULL: the peer dialed this node */
	struct contact *contact;
	enum link_state state;
	unsigned slot;			/* its bit in the sets of the routing table */
	bool secured;			/* by TLS: written by the transport */
	uint64_t serial;		/* no two links of a node have the same */
	ph_vp_t peer;			/* 0 until the peer has proved itself */
	struct outframe *out;		/* frames that the transport has not taken */
	size_t out_bytes;		/* of these, the bytes that are left */
	size_t in_len;			/* bytes of a frame that has not arrived completely */
	uint64_t heard_us;		/* when bytes last arrived */
	uint64_t rtt_us;		/* the smoothed round-trip time */
	int port;			/* that the peer listens on, as it says; 0: none */
	/* the peer's address if it dialed, written by the transport; "" if not known */
	char from[64];
	struct neighbour *neighbour;	/* what routing/ knows of the peer */
};

/* ---- for the transport ---- */

/* A connection is ready for frames.  c: the contact point that was dialed, NULL: it was
 * accepted.  binding: exported key of the channel, or NULL.  Returns NULL if there are too many
 * links or no memory. */
struct plink *link_open(struct phnx *ph, void *transport, struct contact *c,
			const unsigned char binding[32]);
/* Returns where received bytes are to be put, and how many. */
unsigned char *link_space(struct plink *l, size_t *room);
/* Handles n bytes that were put there.  -1: the link is closed and freed. */
int link_input(struct plink *l, size_t n);
/* Returns whether more has arrived behind the frame that is handled now. */
bool link_has_more(const struct phnx *ph);
/* Under TLS: how many of the bytes that come next are not encrypted; 0: none. */
size_t link_bare(const struct plink *l);
/* How many bytes at the end of the frame that is handled now were not encrypted by the link. */
size_t link_sealed(const struct phnx *ph);
void link_taken(struct plink *l, size_t n);	/* n bytes of the queue `out` were sent */
void link_lost(struct plink *l);		/* the connection is gone; frees the link */
/* How long a new connection may take to become a link, in microseconds. */
uint64_t link_handshake_timeout(const struct phnx *ph, uint64_t now);

/* ---- for the layers above ---- */

/* Sends a frame of what head (or NULL) and body (or NULL) have.  It takes its own reference of
 * body. */
void link_send(struct plink *l, enum frame_type type, const struct writer *head, struct pbuf *body);
/* The same in two steps, for a head that is written where it is sent from: link_frame() makes w
 * a writer of at most FRAME_HEAD_MAX - FRAME_HEAD bytes (NULL: out of memory), link_commit()
 * sends the frame. */
struct outframe *link_frame(struct plink *l, struct writer *w);
void link_commit(struct plink *l, struct outframe *f, enum frame_type type, const struct writer *w,
		 struct pbuf *body);
/* Closes and frees the link.  The peer is told why, unless format is NULL; a nonzero error is
 * reported here too. */
void link_close(struct plink *l, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct plink *link_first(const struct phnx *ph);		/* all links: then l->next */
unsigned link_count(const struct phnx *ph);
/* Returns how many links have peers that have not proved themselves. */
unsigned link_count_proving(const struct phnx *ph);
/* Returns when a connection last came closer to being made. */
uint64_t link_progress(const struct phnx *ph);
/* Returns the longest time that a neighbour took to answer. */
uint64_t link_slowest(const struct phnx *ph);
uint64_t link_frames_out(const struct phnx *ph, enum frame_type type);
/* Counts a frame that went out within another one. */
void link_count_frame(struct phnx *ph, enum frame_type type);
/* Takes us microseconds of silence for this node's own. */
void link_forgive(struct phnx *ph, uint64_t us);

/* ---- for node/ ---- */

int link_init(struct phnx *ph);				/* -1: out of memory */
void link_free_all(struct phnx *ph);			/* all links */
void link_free(struct phnx *ph);			/* the rest of link/'s state */
void link_tick(struct phnx *ph, uint64_t now, uint64_t *next);
void link_prove(struct phnx *ph);	/* sends the proofs to all whose greetings have arrived */
bool link_owes_proof(const struct phnx *ph);

#endif
