/* localdisk.h - reads and writes of a virtio disk without the I/O server: a monitor on its host has
 * the image's file, too.
 *
 * A request through the I/O server wakes four processes, and its data is copied from one to the
 * other.  Here the monitor of the CPU that asks copies between guest memory and the host's page
 * cache, and the request is done when its notification returns.
 *
 * Only what can be done at once is done here: a write, and a read of what the page cache has.
 * Whatever else there is - another kind of request, a read that would wait for the host's disk, an
 * error - goes to the I/O server, which serves it as if nothing had been tried, and reports errors.
 * The grant of a lease says what may be done here (enum virtio_direct): nothing is written where
 * the old content must be kept for a checkpoint.
 */
#ifndef MONITOR_LOCALDISK_H
#define MONITOR_LOCALDISK_H

#include "base/limits.h"
#include "base/virtio_abi.h"
#include "monitor/virtqueue.h"

/* Take over the descriptors of the images, -1 for none. */
void localdisk_open(const int fd[MAX_DISKS]);
/* Serve a chain of the disk in this slot.  True: done; *written is set for virtqueue_push(). False:
 * it is to be sent to the I/O server; guest buffers that the device fills may have changed. */
bool localdisk_serve(unsigned slot, uint32_t direct, const struct virtqueue_chain *chain,
		     const struct virtqueue_memory *memory, uint32_t *written);

#endif
