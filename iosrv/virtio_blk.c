/* virtio_blk.c - disks (virtio 1.2, 5.2): read, write, flush, discard, write zeroes; an image each
 * (diskimage.h).
 *
 * Reads and writes are served at once, by the host's page cache: by the CPU's own monitor if it is
 * on this host (monitor/localdisk.h), or else here.  A flush waits for the host's
 * disk, so flushes run in the chip's thread, one after the other.  The guest requests a flush after
 * the answers to the writes that it covers.  If the driver does not support flushes, each write is
 * flushed.
 *
 * One request can discard or zero 32 GiB.  It is served here, since a thread beside the loop may
 * not write, but a few MiB at a time: between two such turns it waits in the list of the flushes,
 * and the loop serves others.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "iosrv/diskimage.h"
#include "iosrv/virtio.h"

enum {
	FEATURE_SIZE_MAX = 1,
	FEATURE_SEG_MAX = 2,
	FEATURE_RO = 5,
	FEATURE_BLK_SIZE = 6,
	FEATURE_FLUSH = 9,
	FEATURE_DISCARD = 13,
	FEATURE_WRITE_ZEROES = 14
};
enum {
	TYPE_FLUSH = 4,
	TYPE_GET_ID = 8,
	TYPE_DISCARD = 11,
	TYPE_WRITE_ZEROES = 13
};
enum {
	STATUS_IOERR = 1,
	STATUS_UNSUPP = 2,
	ID_BYTES = 20,
	RANGES = 16,
	RANGE_SECTORS = 1 << 22,
	TURN_SECTORS = (4 << 20) / SECTOR_BYTES /* that are discarded or zeroed in one turn */
};

struct range {
	uint64_t sector;
	uint32_t count, flags;
};
struct config {
	uint64_t capacity;
	uint32_t size_max, seg_max;
	uint16_t cylinders;
	uint8_t heads, sectors;
	uint32_t blk_size;
	uint8_t topology[8], writeback, unused;
	uint16_t num_queues;
	uint32_t max_discard_sectors, max_discard_seg, discard_sector_alignment;
	uint32_t max_write_zeroes_sectors, max_write_zeroes_seg;
	uint8_t write_zeroes_may_unmap, unused1[3];
};
_Static_assert(sizeof(struct range) == 16 &&
		       offsetof(struct config, max_write_zeroes_sectors) == 48,
	       "layout (virtio 1.2, 5.2.4)");

static struct diskimage *images[MAX_DISKS]; /* NULL: no such disk */
/* When an error was logged: a guest may cause errors for ever. */
enum { READING, WRITING, FLUSHING, WARNINGS };
static uint64_t warned[MAX_DISKS][WARNINGS];

/* Requests that wait: flushes, discards, zeroes.  The thread has the first of them. */
static struct virtio_request *first_waiting, *last_waiting;

static uint64_t blk_features(unsigned slot)
{
	uint64_t features = VIRTIO_FEATURE(FEATURE_SIZE_MAX) | VIRTIO_FEATURE(FEATURE_SEG_MAX) |
			    VIRTIO_FEATURE(FEATURE_BLK_SIZE) | VIRTIO_FEATURE(FEATURE_FLUSH);

	if (diskimage_read_only(images[slot - VIRTIO_DISKS]))
		return features | VIRTIO_FEATURE(FEATURE_RO);
	return features | VIRTIO_FEATURE(FEATURE_DISCARD) | VIRTIO_FEATURE(FEATURE_WRITE_ZEROES);
}

static void blk_config(unsigned slot, uint8_t *to, size_t bytes)
{
	struct config config = {
		.capacity = diskimage_sectors(images[slot - VIRTIO_DISKS]),
		.size_max = PAGE_BYTES,
		.seg_max = VIRTIO_SEGMENTS - 2,
		.blk_size = SECTOR_BYTES,
		.num_queues = 1,
		.max_discard_sectors = RANGE_SECTORS,
		.max_discard_seg = RANGES,
		.discard_sector_alignment = IMAGE_BLOCK_BYTES / SECTOR_BYTES,
		.max_write_zeroes_sectors = RANGE_SECTORS,
		.max_write_zeroes_seg = RANGES,
		.write_zeroes_may_unmap = 1,
	};

	memcpy(to, &config, sizeof config < bytes ? sizeof config : bytes);
}

/* A write that must be flushed is the I/O server's, as is every other request. */
static uint32_t blk_direct(unsigned slot, unsigned queue)
{
	const struct diskimage *image = images[slot - VIRTIO_DISKS];
	bool flushes = virtio_features(slot) & VIRTIO_FEATURE(FEATURE_FLUSH);

	(void)queue;
	return (diskimage_shares(image, false) ? VIRTIO_DIRECT_READ : 0) |
	       (diskimage_shares(image, true) && flushes ? VIRTIO_DIRECT_WRITE : 0) |
	       (diskimage_in_memory(image) ? VIRTIO_DIRECT_MEMORY : 0);
}

/* The last byte that the device writes is the status. */
static void finish(struct virtio_request *r, int result)
{
	r->in[r->in_bytes - 1] = !result		 ? VIRTIO_BLK_OK
				 : result == -EOPNOTSUPP ? STATUS_UNSUPP
							 : STATUS_IOERR;
	virtio_done(r, r->in_bytes);
}

static struct diskimage *image_of(const struct virtio_request *r)
{
	return images[r->slot - VIRTIO_DISKS];
}

static uint32_t type_of(const struct virtio_request *r)
{
	struct virtio_blk_header header;

	memcpy(&header, r->out, sizeof header);
	return header.type;
}

static bool clears(const struct virtio_request *r)
{
	return type_of(r) == TYPE_DISCARD || type_of(r) == TYPE_WRITE_ZEROES;
}

static void wait_for_thread(struct virtio_request *r)
{
	r->next = NULL;
	*(first_waiting ? &last_waiting->next : &first_waiting) = r;
	last_waiting = r;
	if (first_waiting == r)
		iosrv_start_work(&virtio_chip);
}

bool blk_has_work(void)
{
	for (unsigned i = 0; i < MAX_DISKS; i++)
		if (images[i])
			return true;
	return false;
}

/* Flush the image of the first request; runs in the chip's thread.  A request that clears only goes
 * through it, for the loop's sake. */
int blk_work(void)
{
	return clears(first_waiting) ? 0 : diskimage_flush(image_of(first_waiting));
}

static void complain(const struct virtio_request *r, bool out, uint64_t sector, int error)
{
	unsigned disk = r->slot - VIRTIO_DISKS;
	bool full = error == -ENOSPC || error == -EDQUOT || error == -EFBIG;

	log_warn_at_times(&warned[disk][out ? WRITING : READING],
			  "disk %u: %s sector %llu: %s: the guest gets an error%s", disk,
			  out ? "writing" : "reading", (unsigned long long)sector,
			  strerror(-error), full ? "; make room where the image is" : "");
}

static int transfer(struct virtio_request *r, const struct virtio_blk_header *header)
{
	bool out = header->type == VIRTIO_BLK_OUT;
	uint32_t bytes = out ? r->out_bytes - sizeof *header : r->in_bytes - 1;
	int result;

	if (bytes % SECTOR_BYTES)
		return -EINVAL;
	if (!bytes)
		return 0;
	result = out ? diskimage_write(image_of(r), header->sector, bytes / SECTOR_BYTES,
				       r->out + sizeof *header)
		     : diskimage_read(image_of(r), header->sector, bytes / SECTOR_BYTES, r->in);
	if (result)
		complain(r, out, header->sector, result);
	return result;
}

/* Whether a request that discards or zeroes is well-formed.  Returns 0 or -errno. */
static int check_ranges(const struct virtio_request *r)
{
	uint32_t bytes = r->out_bytes - sizeof(struct virtio_blk_header);
	uint64_t sectors = diskimage_sectors(image_of(r));
	struct range range;

	if (bytes % sizeof range || bytes / sizeof range > RANGES)
		return -EINVAL;
	for (uint32_t at = sizeof(struct virtio_blk_header); at < r->out_bytes;
	     at += sizeof range) {
		memcpy(&range, r->out + at, sizeof range);
		if (range.count > RANGE_SECTORS)
			return -EINVAL;
		if (range.count && (range.sector > sectors || range.count > sectors - range.sector))
			return -ERANGE;
	}
	return 0;
}

/* Discard some sectors, or set them to zero, and cut them off their range in the request.  Returns
 * 0 or -errno; *more: there are others. */
static int clear_some(struct virtio_request *r, bool *more)
{
	struct diskimage *image = image_of(r);
	uint32_t at = sizeof(struct virtio_blk_header), count;
	struct range range = { 0 };
	int result;

	for (; at < r->out_bytes; at += sizeof range) {
		memcpy(&range, r->out + at, sizeof range);
		if (range.count)
			break;
	}
	*more = at < r->out_bytes;
	if (!*more)
		return 0;
	count = TURN_SECTORS - range.sector % TURN_SECTORS; /* no block is cut by a turn's end */
	if (count > range.count)
		count = range.count;
	result = type_of(r) == TYPE_DISCARD
			 ? diskimage_discard(image, range.sector, count)
			 : diskimage_zero(image, range.sector, count, range.flags & 1);
	range.sector += count;
	range.count -= count;
	memcpy(r->out + at, &range, sizeof range);
	return result;
}

static bool writes_through(const struct virtio_request *r)
{
	return !(virtio_features(r->slot) & VIRTIO_FEATURE(FEATURE_FLUSH));
}

/* A request that clears has its turn: whether it waits for another, or for a flush. */
static bool clear_goes_on(struct virtio_request *r, int *result)
{
	static const struct virtio_blk_header flush = { .type = TYPE_FLUSH };
	bool more = false, zeroes = type_of(r) == TYPE_WRITE_ZEROES;

	*result = clear_some(r, &more);
	if (*result || more || !zeroes || !writes_through(r))
		return !*result && more;
	memcpy(r->out, &flush, sizeof flush);
	return true;
}

void blk_on_worked(int result)
{
	struct virtio_request *r = first_waiting;
	bool waits = false;

	first_waiting = r->next;
	if (clears(r))
		waits = clear_goes_on(r, &result);
	else if (result)
		log_warn_at_times(&warned[r->slot - VIRTIO_DISKS][FLUSHING],
				  "disk %u: flushing: %s", r->slot - VIRTIO_DISKS,
				  strerror(-result));
	if (!waits)
		finish(r, result);
	if (first_waiting)
		iosrv_start_work(&virtio_chip);
	if (waits)
		wait_for_thread(r); /* behind all others */
}

static int get_id(struct virtio_request *r)
{
	if (r->in_bytes < ID_BYTES + 1)
		return -EINVAL;
	snprintf((char *)r->in, ID_BYTES, "vmp-disk-%u", r->slot - VIRTIO_DISKS);
	return 0;
}

static void blk_request(struct virtio_request *r)
{
	struct virtio_blk_header header;
	int result;

	if (!r->in_bytes || r->out_bytes < sizeof header) { /* not even room for a status */
		virtio_done(r, 0);
		return;
	}
	memcpy(&header, r->out, sizeof header);
	switch (header.type) {
	case VIRTIO_BLK_IN:
	case VIRTIO_BLK_OUT: result = transfer(r, &header); break;
	case TYPE_FLUSH: wait_for_thread(r); return;
	case TYPE_GET_ID: result = get_id(r); break;
	case TYPE_DISCARD:
	case TYPE_WRITE_ZEROES:
		result = check_ranges(r);
		if (result)
			break;
		wait_for_thread(r);
		return;
	default: result = -EOPNOTSUPP;
	}
	if (!result && header.type == VIRTIO_BLK_OUT && writes_through(r))
		wait_for_thread(r);
	else
		finish(r, result);
}

static const struct virtio_model virtio_blk = { .name = "disk",
						.id = 2,
						.queues = 1,
						.features = blk_features,
						.config = blk_config,
						.direct = blk_direct,
						.request = blk_request };

int blk_open(unsigned disk, const char *spec, char *why, size_t why_bytes)
{
	images[disk] = diskimage_open(spec, why, why_bytes);
	if (!images[disk])
		return -EINVAL;
	virtio_add(VIRTIO_DISKS + disk, &virtio_blk);
	return 0;
}

void blk_close(void)
{
	for (unsigned i = 0; i < MAX_DISKS; i++) {
		diskimage_close(images[i]);
		images[i] = NULL;
		virtio_add(VIRTIO_DISKS + i, NULL);
	}
}

struct diskimage *blk_image(unsigned disk)
{
	return images[disk];
}

/* Forget all requests, after a reset of the whole server. */
void blk_reset(void)
{
	virtio_forget(first_waiting);
	first_waiting = last_waiting = NULL;
}
