/* virtio.h - virtio devices over MMIO (virtio 1.2): virtio.c is the transport, and each device's
 * model is a file iosrv/virtio_NAME.c.
 *
 * The I/O server does not access the guest's rings and buffers: a CPU's monitor walks them
 * (monitor/rings.c), and sends each chain's bytes.  The I/O server decides which one: one CPU at a
 * time has a queue's lease.
 *
 *	state	 event				next	 message
 *	FREE	 notified by CPU c		HELD c	 GRANT to c
 *	HELD a	 notified by CPU b, or stopped	RECALLED RECALL to a
 *	HELD a	 the interrupt's route changes	RECALLED RECALL to a (a disk)
 *	RECALLED RELEASE			FREE, and HELD by who notified last
 *	HELD	 the holder sends chains (REQUEST), answered by DONE, and takes what is pushed
 *
 * A lease comes back only when all chains are done, and a stopped CPU has none (LEAVE, BACK).  So
 * when a machine is saved, or a CPU moves, no chain is under way, and a queue's state is two
 * counters.
 *
 * How to add a device: a file with a `const struct virtio_model`, its slot in base/virtio_abi.h,
 * and a call of virtio_add() in iosrv_main.c.
 */
#ifndef IOSRV_VIRTIO_H
#define IOSRV_VIRTIO_H

#include "base/types.h"
#include "base/virtio_abi.h"
#include "base/wire.h"

#define VIRTIO_FEATURE(bit) (1ull << (bit))

/* A chain from the guest.  The device reads `out`, fills `in`, and calls virtio_done(). */
struct virtio_request {
	struct virtio_request *next;
	unsigned slot, queue, cpu;
	uint16_t head;
	uint32_t out_bytes, in_bytes;
	uint32_t come;	    /* bytes of `out` that have arrived */
	uint8_t *in, out[]; /* in: in_bytes, zeroed */
};

struct virtio_model {
	const char *name; /* in messages for the user */
	uint32_t id;	  /* virtio 1.2, section 5 */
	unsigned queues;
	uint32_t queue_size; /* descriptors of a queue, at most; 0: VIRTIO_QUEUE_SIZE */
	uint64_t (*features)(unsigned slot); /* NULL: none of its own */
	/* Copy the configuration space; the rest of the `bytes` stays zero.  NULL: there is
	 * none. */
	void (*config)(unsigned slot, uint8_t *to, size_t bytes);
	void (*request)(struct virtio_request *request);
	/* The requests of a queue that a monitor of this host may serve itself: enum virtio_direct;
	 * may be NULL. */
	uint32_t (*direct)(unsigned slot, unsigned queue);
	void (*room)(unsigned slot); /* virtio_push() may accept data again; may be NULL */
	/* the guest has one more pushed message, the oldest; may be NULL */
	void (*taken)(unsigned slot);
};

extern const struct virtio_model virtio_rng;

/* Add a device to the machine, or (NULL) remove it.  Before chips_reset(). */
void virtio_add(unsigned slot, const struct virtio_model *model);
/* The features that the driver has accepted. */
uint64_t virtio_features(unsigned slot);
/* Answer a request whose first `written` bytes of `in` are filled, and free it. */
void virtio_done(struct virtio_request *request, uint32_t written);
/* Free a list of requests without an answer: the whole server is being reset. */
void virtio_forget(struct virtio_request *first);
/* Push an unrequested message into a device's first queue.  False: there is no room; room() is
 * called when there may be. */
bool virtio_push(unsigned slot, const void *data, uint32_t bytes);
/* The pushed messages of which it is not known whether the guest has them.  None of them is left
 * when the lease of the queue ends: what the guest has not got by then is lost. */
unsigned virtio_pushes(unsigned slot);
/* The configuration space has other values now: notify the driver.  False: there is none yet. */
bool virtio_config_changed(unsigned slot);
/* The interrupt line has another route now: a lease that was granted with the old one ends. */
void virtio_rerouted(unsigned line);
/* A message from a monitor. */
void virtio_on_ask(const struct msg_virtio *ask, const void *payload, uint32_t bytes);

#endif
