/* prd.h - a table of buffers in guest memory, as a bus master of an IDE disk uses it (SFF-8038i: a
 * "physical region descriptor table").  Pure.
 *
 * An entry has 8 bytes: the buffer's address, its size in the low 16 bits of the next word (0: 64
 * KiB), and in that word's highest bit whether it is the last one.
 *
 * The guest is not trusted.  An entry is read once, and each address is checked where it is used.
 * A table without an end is no danger: each entry has two bytes at least, and a step has a size.
 *
 * Callers: monitor/rings.c; tests/unit/monitor_prd.c and tests/fuzz/virtqueue.c.
 */
#ifndef MONITOR_PRD_H
#define MONITOR_PRD_H

#include "base/types.h"
#include "base/wire.h"
#include "monitor/virtqueue.h"

struct prd_place {
	/* the address of an entry, and the bytes of its buffer already used */
	uint32_t entry, used;
	enum dma_result result; /* of all copies; set it to DMA_MOVED before the first one */
};

/* Copy `bytes` to or from the table's buffers, and go to the place behind them.  False: not all of
 * them, and `result` says why. */
bool prd_copy(struct prd_place *place, const struct virtqueue_memory *memory, bool to_memory,
	      void *data, uint32_t bytes);

#endif
