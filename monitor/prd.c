/* prd.c - see prd.h. */
#include "monitor/prd.h"

struct entry { uint32_t address, size_and_flags; };
enum { BUFFER_MOST = 0x10000, SIZE_BITS = 0xfffe };
#define LAST_ENTRY 0x80000000u

/* Copy at most `bytes` to or from the buffer of the current entry.  Returns how many; 0: none, and
 * `result` is set. */
static uint32_t copy_from_entry(struct prd_place *place, const struct virtqueue_memory *memory,
				bool to_memory, void *data, uint32_t bytes)
{
	struct entry entry;
	uint32_t size, part;
	uint64_t gpa;

	place->result = DMA_TABLE_WRONG;
	if (!memory->read(memory->ctx, place->entry, &entry, sizeof entry))
		return 0;
	size = entry.size_and_flags & SIZE_BITS ?: BUFFER_MOST;
	if (place->used >= size) /* the guest has shortened the entry since */
		return 0;
	part = size - place->used < bytes ? size - place->used : bytes;
	gpa = (uint64_t)(entry.address & ~1u) + place->used;
	if (!(to_memory ? memory->write(memory->ctx, gpa, data, part)
			: memory->read(memory->ctx, gpa, data, part)))
		return 0;
	place->result = DMA_MOVED;
	place->used += part;
	if (place->used < size)
		return part;
	if (entry.size_and_flags & LAST_ENTRY)
		place->result = DMA_TABLE_ENDED;
	place->entry += sizeof entry;
	place->used = 0;
	return part;
}

bool prd_copy(struct prd_place *place, const struct virtqueue_memory *memory, bool to_memory,
	      void *data, uint32_t bytes)
{
	while (bytes) {
		uint32_t part;

		if (place->result == DMA_TABLE_ENDED)
			place->result = DMA_TABLE_SHORT;
		if (place->result != DMA_MOVED)
			return false;
		part = copy_from_entry(place, memory, to_memory, data, bytes);
		data = (char *)data + part;
		bytes -= part;
	}
	return true;
}
