/* pbuf.c - the bytes of a message on its way out. */
#include <string.h>
#include "phoenix/core/pbuf.h"

struct pbuf *pbuf_new(const void *data, size_t len)
{
	size_t room;
	struct pbuf *b = block_get(sizeof *b + len, &room);

	if (!b)
		return NULL;
	*b = (struct pbuf){ .refs = 1, .len = len, .room = room, .data = b->own };
	if (len && data)
		memcpy(b->own, data, len);
	return b;
}

struct pbuf *pbuf_lent(const void *data, size_t len)
{
	struct pbuf *b = pbuf_new(NULL, len);

	if (b)
		b->data = data;
	return b;
}

void pbuf_keep(struct pbuf *b)
{
	if (b->refs > 1 && b->data != b->own && b->len)
		memcpy(b->own, b->data, b->len);
	b->data = b->own;
}

struct pbuf *pbuf_of(const void *data, size_t len, void (*release)(void *arg), void *arg)
{
	size_t room;
	struct pbuf *b = block_get(sizeof *b, &room);

	if (b)
		*b = (struct pbuf){ .refs = 1, .len = len, .room = room, .data = data,
				    .release = release, .arg = arg };
	return b;
}
