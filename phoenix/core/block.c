/* block.c - a few idle blocks of a process, kept to be used again.
 *
 * Each idle block is in a slot that one atomic exchange fills or empties.  There are slots for
 * three sizes: 4 KiB and more, 1 KiB and more (malloc() is slower for these than for less), and
 * SMALL bytes, which describe a body that is elsewhere.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "phoenix/core/block.h"

enum { SMALL = 64, MIDDLE = 1024, LEAST = 4096, MOST = 256 << 10, SLOTS = 16, SMALL_SLOTS = 64 };

struct idle {			/* kept inside the idle block itself */
	size_t room;
};
#ifndef __SANITIZE_ADDRESS__	/* the sanitizer is to see every use after a free */
static _Atomic(struct idle *) large[SLOTS], middle[SLOTS], small[SMALL_SLOTS];

static void *take(_Atomic(struct idle *) *slots, int n, size_t size, size_t *room)
{
	for (int i = 0; i < n; i++) {
		struct idle *b = atomic_load_explicit(slots + i, memory_order_relaxed)
					 ? atomic_exchange(slots + i, NULL)
					 : NULL;
		if (b && b->room >= size && b->room / 4 <= size) {
			*room = b->room;
			return b;
		}
		if (b)
			block_put(b, b->room);
	}
	return NULL;
}

static int keep(_Atomic(struct idle *) *slots, int n, struct idle *b)
{
	for (int i = 0; i < n; i++) {
		struct idle *none = NULL;
		if (!atomic_load_explicit(slots + i, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(slots + i, &none, b))
			return 1;
	}
	return 0;
}

static void *idle_get(size_t size, size_t *room)
{
	if (size == SMALL)
		return take(small, SMALL_SLOTS, size, room);
	if (size >= MIDDLE && size < LEAST)
		return take(middle, SLOTS, size, room);
	return size >= LEAST && size <= MOST ? take(large, SLOTS, size, room) : NULL;
}

static int idle_put(struct idle *b)
{
	return b->room == SMALL ? keep(small, SMALL_SLOTS, b)
				: keep(b->room < LEAST ? middle : large, SLOTS, b);
}

void block_trim(void)
{
	for (int i = 0; i < SLOTS; i++) {
		free(atomic_exchange(large + i, NULL));
		free(atomic_exchange(middle + i, NULL));
	}
	for (int i = 0; i < SMALL_SLOTS; i++)
		free(atomic_exchange(small + i, NULL));
}
#else
static void *idle_get(size_t size, size_t *room) { (void)size; (void)room; return NULL; }
static int idle_put(struct idle *b) { (void)b; return 0; }
void block_trim(void) { }
#endif

void *block_get(size_t size, size_t *room)
{
	size = size < SMALL ? SMALL : size;
	void *b = idle_get(size, room);

	if (b)
		return b;
	*room = size;
	return malloc(size);
}

void block_put(void *block, size_t room)
{
	struct idle *b = block;

	if (!b || room < SMALL || (room > SMALL && room < MIDDLE) || room > MOST) {
		free(block);
		return;
	}
	b->room = room;
	if (!idle_put(b))
		free(b);
}
