/* outbox.c - frames on their way out of a link, until the transport has taken them.
 *
 * A frame is a head and a body.  The head, and a small body behind it, are written where they are
 * sent from; a large body is not copied.  The transport reads the queue (`out` in struct plink) and
 * says with link_taken() how far it has come.  Frames are used again, since each message needs one.
 */
#include "phoenix/link/link_private.h"

static struct outframe *outframe_new(struct phnx *ph)
{
	struct outframe *f = ph->links->frames.spare;

	if (!f)
		return malloc(sizeof *f);
	ph->links->frames.spare = f->next;
	ph->links->frames.n_spare--;
	return f;
}

static void outframe_free(struct phnx *ph, struct outframe *f)
{
	enum { MOST_SPARE = 64 };

	pbuf_put(f->body);
	if (ph->links->frames.n_spare == MOST_SPARE) {
		free(f);
		return;
	}
	f->next = ph->links->frames.spare;
	ph->links->frames.spare = f;
	ph->links->frames.n_spare++;
}

struct outframe *link_frame(struct plink *l, struct writer *w)
{
	struct outframe *f = outframe_new(l->ph);

	if (f)
		*w = (struct writer){ .data = f->head + FRAME_HEAD,
				      .room = FRAME_HEAD_MAX - FRAME_HEAD };
	return f;
}

/* Puts a BARE before the frame, in whose head is room for it. */
static void announce_bare(struct plink *l, struct outframe *f, size_t bare)
{
	enum { BARE_BYTES = FRAME_HEAD + 4 };

	memmove(f->head + BARE_BYTES, f->head, f->head_len);
	lay64(f->head, 'P' | 'H' << 8 | (uint64_t)FRAME_BARE << 16 | PHNX_VERSION << 24 |
			       (uint64_t)4 << 32);
	lay32(f->head + FRAME_HEAD, (uint32_t)bare);
	f->head_len += BARE_BYTES;
	f->bare = bare;
	l->out_bytes += BARE_BYTES;
	l->ph->links->frames_out[FRAME_BARE]++;
}

void link_commit(struct plink *l, struct outframe *f, enum frame_type type, const struct writer *w,
		 struct pbuf *body)
{
	struct link *k = link_of(l);
	size_t len = w->len + (body ? body->len : 0);

	f->next = NULL;
	f->head_len = FRAME_HEAD + (unsigned)w->len;
	f->done = 0;
	f->bare = 0;
	f->body = NULL;
	if (l->out_bytes + len > MAX_LINK_UNREAD || k->out.n == MAX_LINK_FRAMES) {
		k->out.unread = true;
		link_look_by(l->ph, 0);
		outframe_free(l->ph, f);
		return;
	}
	lay64(f->head,
	      'P' | 'H' << 8 | (uint64_t)type << 16 | PHNX_VERSION << 24 | (uint64_t)len << 32);
	if (len > w->len && body->len > SMALL_BODY) {
		f->body = body;
		body->refs++;
		if (l->secured && body->sealed >= BARE_LEAST)
			announce_bare(l, f, body->sealed);
	} else if (len > w->len) {
		memcpy(f->head + f->head_len, body->data, body->len);
		f->head_len += (unsigned)body->len;
	}
	*k->out.end = f;
	k->out.end = &f->next;
	l->out_bytes += FRAME_HEAD + len;
	k->out.n++;
	k->out.has_spoken = true;
	l->ph->links->frames_out[type]++;
	l->ph->ops->kick(l->ph->ctx, l);
}

void link_send(struct plink *l, enum frame_type type, const struct writer *head, struct pbuf *body)
{
	struct writer w;

	if (l->state == LINK_CLOSING ||
	    (head && (head->bad || FRAME_HEAD + head->len > FRAME_HEAD_MAX)))
		return;
	struct outframe *f = link_frame(l, &w);
	if (!f)
		return;	/* as if the frame was lost on the way: what matters is sent again */
	if (head)
		put_bytes(&w, head->data, head->len);
	link_commit(l, f, type, &w, body);
}

void link_send_buffer(struct plink *l, enum frame_type type, struct writer *w)
{
	struct pbuf *b = w->bad ? NULL : pbuf_new(w->data, w->len);

	if (b)
		link_send(l, type, NULL, b);
	pbuf_put(b);
}

void link_taken(struct plink *l, size_t n)
{
	struct link *k = link_of(l);

	l->out_bytes -= n;
	while (l->out) {
		struct outframe *f = l->out;
		size_t left = f->head_len + (f->body ? f->body->len : 0) - f->done;

		if (n < left) {
			f->done += n;
			return;
		}
		n -= left;
		l->out = f->next;
		if (!l->out)
			k->out.end = &l->out;
		k->out.n--;
		outframe_free(l->ph, f);
	}
}

void outbox_init(struct plink *l)
{
	link_of(l)->out.end = &l->out;
}

void outbox_free(struct plink *l)
{
	while (l->out) {
		struct outframe *f = l->out;
		l->out = f->next;
		outframe_free(l->ph, f);
	}
}

void outbox_free_spare(struct phnx *ph)
{
	while (ph->links->frames.spare) {
		struct outframe *f = ph->links->frames.spare;
		ph->links->frames.spare = f->next;
		free(f);
	}
}
