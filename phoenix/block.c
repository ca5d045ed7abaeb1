/* block.c - a few idle blocks of a process, each in a slot that is emptied and filled by one atomic exchange. */
#include <stdatomic.h>
#include <stdlib.h>
#include "phoenix/block.h"

enum { LEAST = 4096, MOST = 256 << 10, SLOTS = 8 };

struct idle {			/* what an idle block holds */
	size_t room;
};
#ifndef __SANITIZE_ADDRESS__	/* which is to see every use after a free */
static _Atomic(struct idle *) slots[SLOTS];

static void *take(size_t size, size_t *room)
{
	for (int i = 0; i < SLOTS; i++) {
		struct idle *b = atomic_load_explicit(slots + i, memory_order_relaxed) ? atomic_exchange(slots + i, NULL) : NULL;
		if (b && b->room >= size && b->room / 4 <= size) {
			*room = b->room;
			return b;
		}
		if (b)
			block_put(b, b->room);
	}
	return NULL;
}

static int keep(struct idle *b)
{
	for (int i = 0; i < SLOTS; i++) {
		struct idle *none = NULL;
		if (atomic_compare_exchange_strong(slots + i, &none, b))
			return 1;
	}
	return 0;
}

void block_trim(void)
{
	for (int i = 0; i < SLOTS; i++)
		free(atomic_exchange(slots + i, NULL));
}
#else
static void *take(size_t size, size_t *room) { (void)size; (void)room; return NULL; }
static int keep(struct idle *b) { (void)b; return 0; }
void block_trim(void) { }
#endif

void *block_get(size_t size, size_t *room)
{
	void *b = size >= LEAST && size <= MOST ? take(size, room) : NULL;

	if (b)
		return b;
	*room = size;
	return malloc(size);
}

void block_put(void *block, size_t room)
{
	struct idle *b = block;

	if (!b || room < LEAST || room > MOST) {
		free(block);
		return;
	}
	b->room = room;
	if (!keep(b))
		free(b);
}
