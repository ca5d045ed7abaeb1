/* block.h - memory for messages: large blocks are used again while they are in the processor's cache and have their pages.
 * Any thread; what is got here may be given to free() as well. */
#ifndef PHOENIX_BLOCK_H
#define PHOENIX_BLOCK_H

#include <stddef.h>

void *block_get(size_t size, size_t *room);	/* *room: the bytes that it has, at least size. NULL: out of memory */
void block_put(void *block, size_t room);
void block_trim(void);				/* frees those that lie idle */

#endif
