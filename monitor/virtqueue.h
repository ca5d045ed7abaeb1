/* virtqueue.h - a split virtqueue in guest memory (virtio 1.2, section 2.7), as a device uses it.
 * Pure.
 *
 * The guest is not trusted.  Each index, address, length and flag is read once, checked, and then
 * used; a chain that loops, is too long, or leaves guest RAM breaks the whole queue.  Concurrent
 * changes by the guest can damage nothing but its own memory.
 *
 * Callers: monitor/rings.c; tests/unit/monitor_virtqueue.c and tests/fuzz/virtqueue.c.
 */
#ifndef MONITOR_VIRTQUEUE_H
#define MONITOR_VIRTQUEUE_H

#include "base/types.h"
#include "base/virtio_abi.h"

/* Access to guest RAM.  Both functions return false if the bytes are not all in RAM.  Two bytes at
 * an even address are read and written in one access. */
struct virtqueue_memory {
	void *ctx;
	bool (*read)(void *ctx, uint64_t gpa, void *to, uint32_t bytes);
	bool (*write)(void *ctx, uint64_t gpa, const void *from, uint32_t bytes);
};

struct virtqueue {
	uint64_t desc, avail, used; /* guest-physical */
	uint32_t size;		    /* a power of two, at most VIRTIO_QUEUE_SIZE */
	uint16_t avail_next;	    /* the next entry of the available ring to take, and */
	uint16_t used_next;	    /* of the used ring to fill; both count modulo 2^16 */
	bool event_idx;		    /* VIRTIO_F_EVENT_IDX: indices say which events are wanted */
	bool armed;		    /* armed_at is in the used ring: the guest notifies when its */
	uint16_t armed_at;	    /* available index passes it */
};

/* A chain of buffers: first those that the device reads ("out"), then those that it writes ("in").
 */
struct virtqueue_chain {
	uint16_t head, segments, out_segments;
	uint32_t out_bytes, in_bytes;
	struct {
		uint64_t gpa;
		uint32_t bytes;
	} segment[VIRTIO_SEGMENTS];
};

/* Check a queue.  Returns NULL, or the error in its size or its addresses. */
const char *virtqueue_wrong(const struct virtqueue *q, uint64_t ram_bytes);

/* Take the next chain that the guest has made available.  Returns 1; 0: there is none, and the
 * guest will notify the next one; -1: the queue is broken, with the reason in `why`. */
int virtqueue_pop(struct virtqueue *q, const struct virtqueue_memory *memory,
		  struct virtqueue_chain *chain, const char **why);

/* With event_idx, ask for a notification when the guest makes its next chain available, though
 * there are chains to take.  It may have just done so without one.  False: a ring is not in RAM. */
bool virtqueue_arm_next(struct virtqueue *q, const struct virtqueue_memory *memory);

/* Copy `bytes` from byte `offset` on from the chain's out buffers, or to its in buffers.  False:
 * they are too short, or not in RAM. */
bool virtqueue_read(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory,
		    uint32_t offset, void *to, uint32_t bytes);
bool virtqueue_write(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory,
		     uint32_t offset, const void *from, uint32_t bytes);

/* Give a chain back, with `written` bytes in its in buffers.  False: the used ring is not in
 * RAM. */
bool virtqueue_push(struct virtqueue *q, const struct virtqueue_memory *memory, uint16_t head,
		    uint32_t written);

/* True if the guest wants an interrupt for the chain that was given back last. */
bool virtqueue_wants_interrupt(const struct virtqueue *q, const struct virtqueue_memory *memory);

#endif
