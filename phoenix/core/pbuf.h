/* pbuf.h - the bytes of a message on its way out, shared by all that still need them. */
#ifndef PHOENIX_PBUF_H
#define PHOENIX_PBUF_H

#include <stddef.h>
#include "phoenix/core/block.h"

struct pbuf {
	unsigned refs;
	size_t len;
	size_t sealed;	/* so many bytes at the end are encrypted and signed already */
	size_t room;			/* bytes of the whole block, for block_put() */
	const unsigned char *data;	/* own[], or the application's bytes */
	void (*release)(void *arg);	/* NULL, or how to give the application's bytes back */
	void *arg;
	unsigned char own[];
};

/* All of these return one reference, or NULL when memory is short. */
/* a copy; data NULL: the caller fills own[] */
struct pbuf *pbuf_new(const void *data, size_t len);
struct pbuf *pbuf_lent(const void *data, size_t len);	/* borrows data until pbuf_keep() */
/* Refers to the application's bytes until release(arg) is called. */
struct pbuf *pbuf_of(const void *data, size_t len, void (*release)(void *arg), void *arg);

/* Copies borrowed bytes if anybody else still refers to them: their owner may soon overwrite
 * them. */
void pbuf_keep(struct pbuf *b);

/* Drops a reference; b may be NULL. */
static inline void pbuf_put(struct pbuf *b)
{
	if (!b || --b->refs)
		return;
	if (b->release)
		b->release(b->arg);
	block_put(b, b->room);
}

#endif
