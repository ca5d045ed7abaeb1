/* localdisk.c - see localdisk.h.
 *
 * The data goes through a buffer, so that no guest page is pinned during a system call: a write may
 * wait until the host's disk has taken earlier ones.
 */
#include "monitor/localdisk.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 << 10 };

static struct disk {
	int fd;
	uint64_t sectors; /* 0: there is no such disk here */
} disks[MAX_DISKS];

void localdisk_open(const int fd[MAX_DISKS])
{
	for (unsigned i = 0; i < MAX_DISKS; i++) {
		struct stat st;

		disks[i].fd = fd[i];
		disks[i].sectors = fstat(fd[i], &st) ? 0 : (uint64_t)st.st_size /
								   VIRTIO_BLK_SECTOR_BYTES;
	}
}

/* Read what needs no waiting.  (TRICKS: cached-or-not-here) */
static ssize_t read_now(int fd, uint32_t direct, void *to, size_t bytes, uint64_t at)
{
	struct iovec part = { to, bytes };

	return direct & VIRTIO_DIRECT_MEMORY ? pread(fd, to, bytes, (off_t)at)
					     : preadv2(fd, &part, 1, (off_t)at, RWF_NOWAIT);
}

/* Copy `bytes` between the file at `at` and the chain at `offset` of those in that direction. */
static bool move(int fd, uint32_t direct, const struct virtqueue_chain *chain,
		 const struct virtqueue_memory *memory, bool out, uint64_t at, uint32_t offset,
		 uint32_t bytes)
{
	static uint8_t buffer[BUFFER_BYTES];

	for (uint32_t part; bytes; at += part, offset += part, bytes -= part) {
		part = bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES;
		if (out ? !virtqueue_read(chain, memory, offset, buffer, part) ||
				    pwrite(fd, buffer, part, (off_t)at) != (ssize_t)part
			: read_now(fd, direct, buffer, part, at) != (ssize_t)part ||
				    !virtqueue_write(chain, memory, offset, buffer, part))
			return false;
	}
	return true;
}

bool localdisk_serve(unsigned slot, uint32_t direct, const struct virtqueue_chain *chain,
		     const struct virtqueue_memory *memory, uint32_t *written)
{
	const struct disk *disk = slot - VIRTIO_DISKS < MAX_DISKS ? &disks[slot - VIRTIO_DISKS]
								  : NULL;
	struct virtio_blk_header header;
	uint8_t status = VIRTIO_BLK_OK;
	uint32_t bytes, count;
	bool out;

	if (!disk || !disk->sectors || !chain->in_bytes ||
	    chain->out_bytes < sizeof header ||
	    !virtqueue_read(chain, memory, 0, &header, sizeof header))
		return false;
	out = header.type == VIRTIO_BLK_OUT;
	if (!(direct & (out ? VIRTIO_DIRECT_WRITE : VIRTIO_DIRECT_READ)) ||
	    (!out && header.type != VIRTIO_BLK_IN))
		return false;
	bytes = out ? chain->out_bytes - (uint32_t)sizeof header : chain->in_bytes - 1;
	count = bytes / VIRTIO_BLK_SECTOR_BYTES;
	if (bytes % VIRTIO_BLK_SECTOR_BYTES || !count || header.sector >= disk->sectors ||
	    count > disk->sectors - header.sector)
		return false;
	if (!move(disk->fd, direct, chain, memory, out, header.sector * VIRTIO_BLK_SECTOR_BYTES,
		  out ? sizeof header : 0, bytes) ||
	    !virtqueue_write(chain, memory, chain->in_bytes - 1, &status, sizeof status))
		return false;
	*written = chain->in_bytes;
	return true;
}
