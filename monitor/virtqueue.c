/* virtqueue.c - see virtqueue.h. */
#include "monitor/virtqueue.h"

enum { DESC_NEXT = 1, DESC_WRITE = 2, DESC_INDIRECT = 4, AVAIL_NO_INTERRUPT = 1 };

struct descriptor {
	uint64_t gpa;
	uint32_t bytes;
	uint16_t flags, next;
};
struct used {
	uint32_t head, written;
};
_Static_assert(sizeof(struct descriptor) == 16 && sizeof(struct used) == 8,
	       "layout (virtio 1.2, 2.7.5, 2.7.8)");

static bool lies_in(uint64_t at, uint64_t bytes, uint64_t align, uint64_t ram_bytes)
{
	return at % align == 0 && at < ram_bytes && bytes <= ram_bytes - at;
}

const char *virtqueue_wrong(const struct virtqueue *q, uint64_t ram_bytes)
{
	if (!q->size || q->size > VIRTIO_QUEUE_SIZE || (q->size & (q->size - 1)))
		return "its size is no power of two up to the largest";
	if (!lies_in(q->desc, q->size * sizeof(struct descriptor), 16, ram_bytes))
		return "its descriptors are not in RAM";
	if (!lies_in(q->avail, 6 + 2 * (uint64_t)q->size, 2, ram_bytes))
		return "its available ring is not in RAM";
	if (!lies_in(q->used, 6 + sizeof(struct used) * (uint64_t)q->size, 4, ram_bytes))
		return "its used ring is not in RAM";
	return NULL;
}

/* A table of descriptors: the queue's own, or an indirect one. */
struct table {
	uint64_t gpa;
	uint32_t entries;
	bool indirect;
};

static const char *add_segment(struct virtqueue_chain *chain, const struct descriptor *d)
{
	bool in = d->flags & DESC_WRITE;
	uint32_t *bytes = in ? &chain->in_bytes : &chain->out_bytes;

	if (chain->segments == VIRTIO_SEGMENTS)
		return "a chain has more descriptors than the device takes";
	if (!in && chain->out_segments < chain->segments)
		return "a chain has a buffer to read behind one to write";
	if (d->bytes > VIRTIO_CHAIN_BYTES - *bytes)
		return "a chain has more bytes than the device takes";
	chain->segment[chain->segments].gpa = d->gpa;
	chain->segment[chain->segments++].bytes = d->bytes;
	chain->out_segments += !in;
	*bytes += d->bytes;
	return NULL;
}

/* Set *table to the indirect table that a descriptor names.  Returns NULL, or the error. */
static const char *enter(struct table *table, const struct descriptor *d)
{
	if (table->indirect)
		return "an indirect table names another one";
	if (d->flags & DESC_NEXT)
		return "a chain continues behind an indirect table";
	if (!d->bytes || d->bytes % sizeof *d || d->bytes / sizeof *d > VIRTIO_QUEUE_SIZE)
		return "an indirect table has no size that one can have";
	*table = (struct table){ d->gpa, d->bytes / sizeof *d, true };
	return NULL;
}

static const char *walk(const struct virtqueue *q, const struct virtqueue_memory *memory,
			struct virtqueue_chain *chain)
{
	struct table table = { q->desc, q->size, false };
	uint32_t at = chain->head, seen = 0;
	struct descriptor d;
	const char *why;

	for (;;) {
		if (at >= table.entries || seen++ >= table.entries)
			return at >= table.entries ? "a descriptor has a number that is none"
						   : "a chain has no end";
		if (!memory->read(memory->ctx, table.gpa + at * sizeof d, &d, sizeof d))
			return "a table of descriptors is not in RAM";
		if (d.flags & DESC_INDIRECT) {
			why = enter(&table, &d);
			at = seen = 0;
			if (why)
				return why;
			continue;
		}
		why = add_segment(chain, &d);
		if (why || !(d.flags & DESC_NEXT))
			return why;
		at = d.next;
	}
}

/* Ask the guest to notify when its available index passes `at` (2.7.10).  False: not in RAM. */
static bool arm(struct virtqueue *q, const struct virtqueue_memory *memory, uint16_t at)
{
	if (q->armed && q->armed_at == at)
		return true;
	if (!memory->write(memory->ctx, q->used + 4 + sizeof(struct used) * (uint64_t)q->size, &at,
			   sizeof at))
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* between the event and the available index */
	q->armed = true;
	q->armed_at = at;
	return true;
}

static bool read_available(const struct virtqueue *q, const struct virtqueue_memory *memory,
			   uint16_t *available)
{
	return memory->read(memory->ctx, q->avail + 2, available, sizeof *available);
}

bool virtqueue_arm_next(struct virtqueue *q, const struct virtqueue_memory *memory)
{
	uint16_t available;

	return !q->event_idx ||
	       (read_available(q, memory, &available) && arm(q, memory, available));
}

int virtqueue_pop(struct virtqueue *q, const struct virtqueue_memory *memory,
		  struct virtqueue_chain *chain, const char **why)
{
	uint16_t available, head;

	*why = "its available ring is not in RAM";
	if (!read_available(q, memory, &available))
		return -1;
	if (available == q->avail_next && q->event_idx) {
		*why = "its used ring is not in RAM";
		if (!arm(q, memory, available) || !read_available(q, memory, &available))
			return -1;
	}
	if (available == q->avail_next)
		return 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* the entry is read after the index */
	if ((uint16_t)(available - q->avail_next) > q->size) {
		*why = "more chains are available than there are descriptors";
		return -1;
	}
	if (!memory->read(memory->ctx, q->avail + 4 + 2 * (q->avail_next % q->size), &head,
			  sizeof head))
		return -1;
	chain->head = head;
	chain->segments = chain->out_segments = 0;
	chain->out_bytes = chain->in_bytes = 0;
	*why = walk(q, memory, chain);
	if (*why)
		return -1;
	q->avail_next++;
	return 1;
}

/* Copy from or to segments `first` to `end` - 1; `offset` counts from the first byte of segment
 * `first`. */
static bool copy(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory,
		 unsigned first, unsigned end, uint32_t offset, void *data, uint32_t bytes,
		 bool write)
{
	for (unsigned i = first; i < end && bytes; i++) {
		uint32_t part = chain->segment[i].bytes;
		uint64_t gpa = chain->segment[i].gpa + offset;

		if (offset >= part) {
			offset -= part;
			continue;
		}
		part = part - offset < bytes ? part - offset : bytes;
		if (!(write ? memory->write(memory->ctx, gpa, data, part)
			    : memory->read(memory->ctx, gpa, data, part)))
			return false;
		data = (char *)data + part;
		bytes -= part;
		offset = 0;
	}
	return !bytes;
}

bool virtqueue_read(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory,
		    uint32_t offset, void *to, uint32_t bytes)
{
	return copy(chain, memory, 0, chain->out_segments, offset, to, bytes, false);
}

bool virtqueue_write(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory,
		     uint32_t offset, const void *from, uint32_t bytes)
{
	return copy(chain, memory, chain->out_segments, chain->segments, offset, (void *)from,
		    bytes, true);
}

bool virtqueue_push(struct virtqueue *q, const struct virtqueue_memory *memory, uint16_t head,
		    uint32_t written)
{
	struct used entry = { head, written };
	uint16_t index = q->used_next + 1;

	if (!memory->write(memory->ctx, q->used + 4 + sizeof entry * (q->used_next % q->size),
			   &entry, sizeof entry))
		return false;
	__atomic_thread_fence(__ATOMIC_RELEASE); /* the entry is written before the index */
	if (!memory->write(memory->ctx, q->used + 2, &index, sizeof index))
		return false;
	q->used_next = index;
	return true;
}

bool virtqueue_wants_interrupt(const struct virtqueue *q, const struct virtqueue_memory *memory)
{
	uint16_t flags = 0, event;

	/* between the used index and the flags or the event (2.7.7) */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (q->event_idx)
		return !memory->read(memory->ctx, q->avail + 4 + 2 * (uint64_t)q->size, &event,
				     sizeof event) ||
		       event == (uint16_t)(q->used_next - 1);
	return !memory->read(memory->ctx, q->avail, &flags, sizeof flags) ||
	       !(flags & AVAIL_NO_INTERRUPT);
}
