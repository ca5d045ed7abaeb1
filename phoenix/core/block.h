/* block.h - memory for messages.
 *
 * Large blocks are used again while they are in the processor's cache and have their pages.  All
 * calls may come from any thread.  A block may also be given to free().
 */
#ifndef PHOENIX_BLOCK_H
#define PHOENIX_BLOCK_H

#include <stddef.h>

/* *room: the bytes that it has, at least size; NULL: out of memory */
void *block_get(size_t size, size_t *room);
void block_put(void *block, size_t room);
void block_trim(void);				/* frees all idle blocks */

#endif
