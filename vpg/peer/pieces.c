/* pieces.c - see pieces.h. */
#include "vpg/peer/pieces.h"

#include <stdlib.h>
#include <string.h>

enum { RECORD = 16 << 10, SMALL = 2048, WASTE = 64 << 10 };

/* Adds an empty piece: a large one for a full record, which others follow. */
static struct piece *add(struct pieces *p, size_t n)
{
	size_t room = n >= RECORD ? PIECE_BYTES : n < SMALL ? SMALL : n;
	struct piece *piece = malloc(sizeof *piece + room);

	if (!piece)
		return NULL;
	*piece = (struct piece){ .room = room };
	if (p->last)
		p->last->next = piece;
	else
		p->first = piece;
	p->last = piece;
	return piece;
}

static int on_write(BIO *bio, const char *bytes, int n)
{
	struct pieces *p = BIO_get_data(bio);
	struct piece *piece = p->last;

	if (!piece || piece->room - piece->n < (size_t)n)
		piece = add(p, (size_t)n);
	if (!piece)
		return -1;
	memcpy(piece->bytes + piece->n, bytes, (size_t)n);
	piece->n += (size_t)n;
	return n;
}

static int on_read(BIO *bio, char *to, int room)
{
	struct pieces *p = BIO_get_data(bio);
	size_t n = p->left < (size_t)room ? p->left : (size_t)room;

	BIO_clear_retry_flags(bio);
	if (!n) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(to, p->come, n);
	p->come += n;
	p->left -= n;
	return (int)n;
}

static long on_control(BIO *bio, int what, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return what == BIO_CTRL_FLUSH;
}

BIO *pieces_bio(struct pieces *p)
{
	static BIO_METHOD *method;
	BIO *bio;

	if (!method) {
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "pieces");
		if (!method || !BIO_meth_set_write(method, on_write) ||
		    !BIO_meth_set_read(method, on_read) || !BIO_meth_set_ctrl(method, on_control))
			return NULL;
	}
	bio = BIO_new(method);
	if (!bio)
		return NULL;
	BIO_set_data(bio, p);
	BIO_set_init(bio, 1);
	return bio;
}

struct piece *pieces_take(struct pieces *p)
{
	struct piece *piece = p->first, *less;

	if (!piece)
		return NULL;
	p->first = piece->next;
	if (!p->first)
		p->last = NULL;
	if (piece->room - piece->n < WASTE)
		return piece;
	less = realloc(piece, sizeof *piece + piece->n);
	return less ? less : piece;
}

void pieces_free(struct pieces *p)
{
	for (struct piece *piece; (piece = p->first);) {
		p->first = piece->next;
		free(piece);
	}
	p->last = NULL;
}
