/* inbox.c - the bytes that arrive on a link, cut into frames.
 *
 * Bytes arrive in pieces of any length.  Each frame is handled once, whole and in order, and is
 * copied as seldom as possible (link_space()).  What a frame means is link.c's matter:
 * link_handle().
 */
#include "phoenix/link/link_private.h"

static const unsigned may_come_in[N_FRAME_TYPES] = {
#define FRAME(name, when) [FRAME_##name] = when,
#include "phoenix/link/frame.def"
#undef FRAME
};

int inbox_on_bare(struct plink *l, struct reader *r)
{
	struct link *k = link_of(l);

	k->in.bare = get32(r);
	return l->secured && k->in.bare && k->in.bare <= MAX_FRAME ? 0 : -1;
}

size_t link_bare(const struct plink *l)
{
	const struct link *k = link_of(l);
	size_t left = k->in.begun && l->in_len >= FRAME_HEAD ? k->in.room - l->in_len : 0;

	return left <= k->in.bare ? left : 0;
}

size_t link_sealed(const struct phnx *ph)
{
	return ph->links->in.sealed;
}

/* Handles a whole frame, and counts what BARE has said of it.  Returns -1 if the link is closed
 * and freed. */
static int dispatch(struct plink *l, enum frame_type type, const unsigned char *body, size_t len)
{
	struct link *k = link_of(l);
	struct links *all = l->ph->links;
	int closed;

	all->in.sealed = k->in.bare;
	k->in.bare = 0;
	if (all->in.sealed && (type != FRAME_DATA || all->in.sealed > len)) {
		link_close(l, PH_EPEER, "a frame of type %d must not be bare", (int)type);
		return -1;
	}
	closed = link_handle(l, type, body, len);
	all->in.sealed = 0;
	return closed;
}

/* The bytes of all links arrive in one buffer of the node's.  The beginning of a frame that has
 * not arrived completely moves to a block of the link's own, which is then read exactly to the
 * end of that frame.  If the frame is a message, the block becomes the message.  After a large
 * frame another one of the same size is expected, and a block of that size is read into from the
 * start: if the guess is right, its body is not copied.  Smaller ones, such as a page, are read
 * several at once, since to copy one costs less than a system call. */
unsigned char *link_space(struct plink *l, size_t *room)
{
	struct link *k = link_of(l);
	enum { LEAST = 8192, MOST = 256 << 10 };

	if (!k->in.begun && k->in.last_frame >= LEAST && k->in.last_frame <= MOST &&
	    (k->in.begun = rmsg_block(k->in.last_frame))) {
		l->in_len = 0;
		k->in.room = k->in.last_frame;
	}
	*room = k->in.begun ? k->in.room - l->in_len : IN_BYTES;
	return k->in.begun ? k->in.begun->block + l->in_len : l->ph->links->in.bytes;
}

/* Returns the whole length of the frame that begins at h, or 0: it must not come here, and the
 * link is closed and freed. */
static size_t frame_length(struct plink *l, const unsigned char *h)
{
	struct reader r = { h + 4, h + FRAME_HEAD, false };
	size_t len = get32(&r), most = l->state == LINK_UP ? MAX_FRAME : MAX_HANDSHAKE_FRAME;

	if (h[0] != 'P' || h[1] != 'H' || h[2] >= N_FRAME_TYPES || len > most ||
	    !(may_come_in[h[2]] & l->state))
		link_close(l, PH_EPEER, "a frame of type %u and %zu bytes cannot come here", h[2],
			   len);
	else if (h[3] != PHNX_VERSION)
		link_close(l, PH_EREFUSED, "protocol version %u here, %u there", PHNX_VERSION,
			   h[3]);
	else
		return FRAME_HEAD + len;
	return 0;
}

/* Keeps the n bytes at p, which begin a frame of `whole` bytes (or of more, if its head is not
 * complete). */
static int keep_beginning(struct plink *l, const unsigned char *p, size_t n, size_t whole)
{
	struct link *k = link_of(l);
	struct rmsg *in = k->in.begun;

	if (!in || rmsg_room(in) < whole)
		in = rmsg_block(whole);
	if (!in) {
		link_close(l, PH_ENOMEM, "out of memory: a frame of %zu bytes", whole);
		return -1;
	}
	if (p != in->block)
		memmove(in->block, p, n);
	if (in != k->in.begun)
		rmsg_free(k->in.begun);
	k->in.begun = in;
	l->in_len = n;
	k->in.room = whole;
	return 0;
}

/* Handles the link's block, which holds a whole frame and nothing else. */
static int land(struct plink *l)
{
	struct link *k = link_of(l);
	struct phnx *ph = l->ph;

	ph->landed = k->in.begun;
	k->in.begun = NULL;
	size_t n = l->in_len;
	l->in_len = 0;
	const unsigned char *h = ph->landed->block;
	int closed = dispatch(l, (enum frame_type)h[2], h + FRAME_HEAD, n - FRAME_HEAD);
	rmsg_free(ph->landed);
	ph->landed = NULL;
	return closed;
}

/* Handles the frames that n more bytes complete, and keeps the rest. */
static int take_input(struct plink *l, size_t n)
{
	struct link *k = link_of(l);
	const unsigned char *start = k->in.begun ? k->in.begun->block : l->ph->links->in.bytes;
	const unsigned char *p = start;

	l->heard_us = core_now(l->ph);
	n += l->in_len;
	while (n) {
		size_t whole = n < FRAME_HEAD ? FRAME_HEAD : frame_length(l, p);
		if (!whole)
			return -1;
		if (n < whole || n < FRAME_HEAD)
			return keep_beginning(l, p, n, whole);
		k->in.last_frame = whole;
		l->ph->links->in.behind = n - whole;
		if (k->in.begun && p == start && n == whole) {
			l->in_len = n;
			return land(l);
		}
		if (dispatch(l, (enum frame_type)p[2], p + FRAME_HEAD, whole - FRAME_HEAD))
			return -1;
		p += whole;
		n -= whole;
	}
	rmsg_free(k->in.begun);
	k->in.begun = NULL;
	l->in_len = 0;
	return 0;
}

/* Handles received bytes.  Behind an sshd that has left Nagle's algorithm on, a message may wait
 * until this side sends something (TRICKS: nagle-behind-ssh): so it does. */
int link_input(struct plink *l, size_t n)
{
	struct link *k = link_of(l);

	struct links *all = l->ph->links;
	int closed;

	k->out.has_spoken = false;
	closed = take_input(l, n);
	all->in.behind = 0;
	if (closed)
		return -1;
	if (k->through_ssh && l->state == LINK_UP && !k->out.has_spoken)
		link_send(l, FRAME_HEARD, NULL, NULL);
	return 0;
}

bool link_has_more(const struct phnx *ph)
{
	return ph->links->in.behind >= FRAME_HEAD;
}

void inbox_free(struct plink *l)
{
	rmsg_free(link_of(l)->in.begun);
}
