/* virtio_abi.h - virtio over MMIO (virtio 1.2, section 4.2): the interface between the I/O server,
 * which has the devices, and the monitors, which walk the rings; and the command line that names
 * the devices to the guest kernel.
 *
 * The machine has VIRTIO_SLOTS slots for devices, with a page of registers each.  A slot's number
 * implies the kind of its device (enum virtio_slot), so no message has to carry it.
 */
#ifndef BASE_VIRTIO_ABI_H
#define BASE_VIRTIO_ABI_H

#include "base/types.h"

#define VMP_VIRTIO_GPA 0xfeb00000u

enum virtio_slot {
	VIRTIO_DISKS = 0, /* the first of MAX_DISKS */
	VIRTIO_NET = 4,
	VIRTIO_RNG = 5,
	VIRTIO_SHARE = 6,
	VIRTIO_CONSOLE = 7,
	VIRTIO_SLOTS = 8,
	VIRTIO_SLOT_BYTES = PAGE_BYTES,
};
/* The ISA interrupt line of each slot; the timer, the console, the streams and the IDE disk have
 * others. */
#define VIRTIO_LINES { 9, 10, 11, 12, 15, 7, 6, 3 }

enum virtio_limit {
	VIRTIO_QUEUES = 2,	 /* of one device */
	VIRTIO_QUEUE_SIZE = 256, /* descriptors of a queue, at most: a power of two */
	VIRTIO_SEGMENTS = 66,	 /* descriptors of one chain that a monitor takes */
	VIRTIO_CHAIN_BYTES = 260 << 10, /* of a chain in one direction: 64 pages and a little */
	VIRTIO_IN_FLIGHT = 16,		    /* chains of a queue that the device has at once, and */
	VIRTIO_IN_FLIGHT_BYTES = 512 << 10, /* their bytes, unless one chain is alone */
	VIRTIO_PUSHES = 32, /* messages that the guest has not requested (packets), in flight */
};

/* What a monitor may do itself with a device's file, if it is on the I/O server's host. */
enum virtio_direct {
	VIRTIO_DIRECT_READ = 1,
	VIRTIO_DIRECT_WRITE = 2,
	VIRTIO_DIRECT_MEMORY = 4, /* the file is in memory: no read waits for a disk */
	VIRTIO_DIRECT_SEND = 8,	  /* it is the network's socket: frames may be sent to it */
};

/* A request to a disk (5.2.6): this header, then the data, and at the end a byte for the status. */
enum virtio_blk {
	VIRTIO_BLK_IN = 0,
	VIRTIO_BLK_OUT = 1,
	VIRTIO_BLK_OK = 0,
	VIRTIO_BLK_SECTOR_BYTES = 512,
};
struct virtio_blk_header {
	uint32_t type, reserved;
	uint64_t sector;
};
_Static_assert(sizeof(struct virtio_blk_header) == 16, "layout (virtio 1.2, 5.2.6)");

/* The header of a network card's frame (5.1.6).  All but n_buffers is zero: no work is
 * offloaded. */
struct virtio_net_header {
	uint8_t flags, gso_type;
	uint16_t header_bytes, gso_bytes, csum_start, csum_offset, n_buffers;
};
_Static_assert(sizeof(struct virtio_net_header) == 12, "layout (virtio 1.2, 5.1.6)");

/* Registers, as offsets in the slot's page (4.2.2). */
enum virtio_register {
	VIRTIO_MAGIC = 0x00,
	VIRTIO_VERSION = 0x04,
	VIRTIO_DEVICE_ID = 0x08,
	VIRTIO_VENDOR_ID = 0x0c,
	VIRTIO_DEVICE_FEATURES = 0x10,
	VIRTIO_DEVICE_FEATURES_SEL = 0x14,
	VIRTIO_DRIVER_FEATURES = 0x20,
	VIRTIO_DRIVER_FEATURES_SEL = 0x24,
	VIRTIO_QUEUE_SEL = 0x30,
	VIRTIO_QUEUE_NUM_MAX = 0x34,
	VIRTIO_QUEUE_NUM = 0x38,
	VIRTIO_QUEUE_READY = 0x44,
	VIRTIO_QUEUE_NOTIFY = 0x50,
	VIRTIO_INTERRUPT_STATUS = 0x60,
	VIRTIO_INTERRUPT_ACK = 0x64,
	VIRTIO_STATUS = 0x70,
	VIRTIO_QUEUE_DESC_LOW = 0x80,
	VIRTIO_QUEUE_DESC_HIGH = 0x84,
	VIRTIO_QUEUE_DRIVER_LOW = 0x90,
	VIRTIO_QUEUE_DRIVER_HIGH = 0x94,
	VIRTIO_QUEUE_DEVICE_LOW = 0xa0,
	VIRTIO_QUEUE_DEVICE_HIGH = 0xa4,
	VIRTIO_SHM_LEN_LOW = 0xb0,
	VIRTIO_SHM_BASE_HIGH = 0xbc,
	VIRTIO_CONFIG_GENERATION = 0xfc,
	VIRTIO_CONFIG = 0x100,
};

/* Set the slot and the register of a guest-physical address; false: it is no virtio register. */
static inline bool virtio_register_of(gpa_t gpa, unsigned *slot, unsigned *offset)
{
	gpa_t at = gpa - VMP_VIRTIO_GPA;

	*slot = (unsigned)(at / VIRTIO_SLOT_BYTES);
	*offset = at % VIRTIO_SLOT_BYTES;
	return at < VIRTIO_SLOTS * VIRTIO_SLOT_BYTES;
}

/* True for an access that the guest's driver makes at each interrupt and that needs no device: it
 * reads why it is interrupted, which is VIRTIO_INTERRUPT_CHAINS, or says that it has seen that.
 * The lines are edge-triggered, and an edge means that a chain was given back.  Only the console's
 * configuration changes while the machine runs; the I/O server knows when. */
enum { VIRTIO_INTERRUPT_CHAINS = 1 };
static inline bool virtio_only_tells(gpa_t gpa, bool write)
{
	unsigned slot, offset;

	return virtio_register_of(gpa, &slot, &offset) && slot != VIRTIO_CONSOLE &&
	       offset == (write ? VIRTIO_INTERRUPT_ACK : VIRTIO_INTERRUPT_STATUS);
}

/* True for a write that stops a queue, or all queues of a device.  The guest may continue only when
 * no monitor walks them any more: the writer's monitor waits for VIRTIO_SETTLED. */
static inline bool virtio_write_stops(unsigned offset, unsigned size, uint32_t value)
{
	return size == 4 && !value && (offset == VIRTIO_STATUS || offset == VIRTIO_QUEUE_READY);
}

#endif
