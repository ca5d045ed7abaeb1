/* diskimage.c - a raw disk image on the host: read-write, read-only, or in snapshot mode, where the
 * guest's writes are kept apart and dropped at the end.
 *
 * In snapshot mode, writes go to a memory file of the image's size, the overlay; only written
 * blocks of it need memory, and of those none that are zeroed, which are holes.  One bit per 4 KiB
 * block tells whether the overlay has the block.
 *
 * A read-write image of a machine with checkpoints has a log of what the guest overwrites
 * (undolog.h).  A discard then does nothing, since the old content would have to be kept.
 */
#include "iosrv/diskimage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/undofile.h"
#include "iosrv/diskio.h"
#include "iosrv/undolog.h"

enum { BLOCK_BYTES = IMAGE_BLOCK_BYTES, BLOCK_SECTORS = BLOCK_BYTES / SECTOR_BYTES };

struct diskimage {
	int fd, overlay; /* overlay: -1 unless snapshot */
	bool read_only, in_memory;
	char path[4096]; /* absolute */
	uint64_t sectors;
	uint8_t *own;	  /* snapshot: one bit per block that the overlay has */
	uint8_t *changed; /* one bit per block that was written since the last checkpoint */
	struct undolog *undo; /* NULL: what is overwritten is not kept */
};

static struct diskimage *fail(struct diskimage *image, char *why, size_t why_bytes,
			      const char *path, const char *what)
{
	snprintf(why, why_bytes, "disk image %s: %s", path, what);
	diskimage_close(image);
	return NULL;
}

static size_t map_bytes(const struct diskimage *image)
{
	return image->sectors / BLOCK_SECTORS / 8 + 1;
}

struct diskimage *diskimage_open(const char *spec, char *why, size_t why_bytes)
{
	const char *comma = strrchr(spec, ',');
	bool ro = comma && !strcmp(comma, ",ro"), snapshot = comma && !strcmp(comma, ",snapshot");
	char path[4096], settled[4400];
	struct diskimage *image = calloc(1, sizeof *image);
	struct statfs system;
	struct stat st;

	snprintf(path, sizeof path, "%.*s",
		 ro || snapshot ? (int)(comma - spec) : (int)strlen(spec), spec);
	if (!image) {
		snprintf(why, why_bytes, "disk image %s: no memory", path);
		return NULL;
	}
	image->overlay = -1;
	image->read_only = ro;
	image->fd = open(path, (ro || snapshot ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (image->fd < 0)
		return fail(image, why, why_bytes, path, strerror(errno));
	if (fstat(image->fd, &st) || !S_ISREG(st.st_mode))
		return fail(image, why, why_bytes, path, "is not a regular file");
	image->in_memory = !fstatfs(image->fd, &system) && system.f_type == TMPFS_MAGIC;
	if (!st.st_size || st.st_size % SECTOR_BYTES)
		return fail(image, why, why_bytes, path, "its size is not a multiple of 512 bytes");
	if (flock(image->fd, (ro || snapshot ? LOCK_SH : LOCK_EX) | LOCK_NB))
		return fail(image, why, why_bytes, path, "another machine uses it");
	/* a file without a name, which its owner holds open, keeps the path through /proc */
	if (strncmp(path, "/proc/", 6) ? !realpath(path, image->path)
				       : snprintf(image->path, sizeof image->path, "%s", path) >=
						 (int)sizeof image->path)
		return fail(image, why, why_bytes, path, strerror(errno));
	if (undolog_settle(image->path, image->fd, !ro && !snapshot, settled, sizeof settled))
		return fail(image, why, why_bytes, path, settled);
	image->sectors = st.st_size / SECTOR_BYTES;
	if (snapshot) {
		image->overlay = memfd_create("vmp-snapshot", MFD_CLOEXEC);
		image->own = calloc(1, map_bytes(image));
		image->changed = calloc(1, map_bytes(image));
		if (image->overlay < 0 || !image->own || !image->changed ||
		    ftruncate(image->overlay, st.st_size))
			return fail(image, why, why_bytes, path, "no memory for the snapshot");
	}
	return image;
}

void diskimage_close(struct diskimage *image)
{
	if (!image)
		return;
	if (image->overlay >= 0)
		close(image->overlay);
	if (image->fd >= 0)
		close(image->fd);
	undolog_close(image->undo);
	free(image->own);
	free(image->changed);
	free(image);
}

uint64_t diskimage_sectors(const struct diskimage *image) { return image->sectors; }
bool diskimage_read_only(const struct diskimage *image) { return image->read_only; }

bool diskimage_in_memory(const struct diskimage *image) { return image->in_memory; }

bool diskimage_shares(const struct diskimage *image, bool write)
{
	return image->overlay < 0 && !(write && (image->read_only || image->undo));
}

int diskimage_open_shared(const struct diskimage *image)
{
	char path[40];

	if (!diskimage_shares(image, false))
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", image->fd);
	return open(path, (diskimage_shares(image, true) ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

static bool owns(const struct diskimage *image, uint64_t block)
{
	return image->own[block / 8] >> block % 8 & 1;
}

/* Make the overlay's copy of a block if there is none.  Returns 0 or -errno. */
static int own_block(struct diskimage *image, uint64_t block)
{
	uint8_t data[BLOCK_BYTES];
	uint64_t at = block * BLOCK_BYTES, left = image->sectors * SECTOR_BYTES - at;
	size_t bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;
	int error;

	if (owns(image, block))
		return 0;
	error = diskio_all(image->fd, false, at, data, bytes);
	if (!error)
		error = diskio_all(image->overlay, true, at, data, bytes);
	if (!error)
		image->own[block / 8] |= 1 << block % 8;
	return error;
}

static bool is_within(const struct diskimage *image, uint64_t sector, unsigned count)
{
	return count && sector < image->sectors && count <= image->sectors - sector;
}

/* Return the file that has a sector, in snapshot mode. */
static int fd_of(const struct diskimage *image, uint64_t sector)
{
	return owns(image, sector / BLOCK_SECTORS) ? image->overlay : image->fd;
}

int diskimage_read(struct diskimage *image, uint64_t sector, unsigned count, void *to)
{
	int error = 0;

	if (!is_within(image, sector, count))
		return -ERANGE;
	if (image->overlay < 0)
		return diskio_all(image->fd, false, sector * SECTOR_BYTES, to,
				  (size_t)count * SECTOR_BYTES);
	for (unsigned i = 0; i < count && !error; i++)
		error = diskio_all(fd_of(image, sector + i), false, (sector + i) * SECTOR_BYTES,
				   (char *)to + i * SECTOR_BYTES, SECTOR_BYTES);
	return error;
}

/* Keep what the sectors hold, before they are written. */
static void keep_undo(struct diskimage *image, uint64_t sector, uint32_t count)
{
	if (image->undo)
		undolog_keep(image->undo, sector / BLOCK_SECTORS,
			     (sector + count - 1) / BLOCK_SECTORS);
}

int diskimage_write(struct diskimage *image, uint64_t sector, unsigned count, const void *from)
{
	int error = 0;

	if (image->read_only)
		return -EROFS;
	if (!is_within(image, sector, count))
		return -ERANGE;
	keep_undo(image, sector, count);
	if (image->overlay < 0)
		return diskio_all(image->fd, true, sector * SECTOR_BYTES, (void *)from,
				  (size_t)count * SECTOR_BYTES);
	for (uint64_t block = sector / BLOCK_SECTORS;
	     block <= (sector + count - 1) / BLOCK_SECTORS && !error; block++) {
		error = own_block(image, block);
		image->changed[block / 8] |= 1 << block % 8;
	}
	if (!error)
		error = diskio_all(image->overlay, true, sector * SECTOR_BYTES, (void *)from,
				   (size_t)count * SECTOR_BYTES);
	return error;
}

/* Change a file's allocation on the host.  Returns 0 or -errno; -EOPNOTSUPP: the file system does
 * not support it. */
static int allocate(int fd, int mode, uint64_t sector, uint64_t count)
{
	int result;

	do
		result = fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)(sector * SECTOR_BYTES),
				   (off_t)count * SECTOR_BYTES);
	while (result && errno == EINTR);
	return result ? -errno : 0;
}

static int write_zeros(struct diskimage *image, uint64_t sector, uint32_t count)
{
	static const uint8_t zeros[64 << 10];
	int error = 0;

	for (uint32_t part; count && !error; sector += part, count -= part) {
		part = count < sizeof zeros / SECTOR_BYTES ? count : sizeof zeros / SECTOR_BYTES;
		error = diskimage_write(image, sector, part, zeros);
	}
	return error;
}

/* In snapshot mode: the overlay gets holes, and only blocks that are not zeroed as a whole need
 * memory. */
static int zero_overlay(struct diskimage *image, uint64_t sector, uint32_t count)
{
	uint64_t first = (sector + BLOCK_SECTORS - 1) / BLOCK_SECTORS, end = sector + count;
	uint64_t last = end / BLOCK_SECTORS; /* behind the whole blocks */
	int error;

	if (first >= last)
		return write_zeros(image, sector, count);
	error = write_zeros(image, sector, (uint32_t)(first * BLOCK_SECTORS - sector));
	if (!error)
		error = allocate(image->overlay, FALLOC_FL_PUNCH_HOLE, first * BLOCK_SECTORS,
				 (last - first) * BLOCK_SECTORS);
	for (uint64_t block = first; block < last && !error; block++) {
		image->own[block / 8] |= 1 << block % 8;
		image->changed[block / 8] |= 1 << block % 8;
	}
	return error ? error
		     : write_zeros(image, last * BLOCK_SECTORS,
				   (uint32_t)(end - last * BLOCK_SECTORS));
}

int diskimage_discard(struct diskimage *image, uint64_t sector, uint32_t count)
{
	int error;

	if (image->read_only)
		return -EROFS;
	if (!is_within(image, sector, count))
		return -ERANGE;
	/* in snapshot mode the image's own content may reappear, as may any after a discard */
	if (image->overlay >= 0 || image->undo)
		return 0;
	error = allocate(image->fd, FALLOC_FL_PUNCH_HOLE, sector, count);
	return error == -EOPNOTSUPP ? 0 : error;
}

int diskimage_zero(struct diskimage *image, uint64_t sector, uint32_t count, bool unmap)
{
	int error;

	if (image->read_only)
		return -EROFS;
	if (!is_within(image, sector, count))
		return -ERANGE;
	if (image->overlay >= 0)
		return zero_overlay(image, sector, count);
	keep_undo(image, sector, count);
	error = unmap ? -EOPNOTSUPP : allocate(image->fd, FALLOC_FL_ZERO_RANGE, sector, count);
	/* a file system that has only this one: better a hole than a long write */
	if (error == -EOPNOTSUPP)
		error = allocate(image->fd, FALLOC_FL_PUNCH_HOLE, sector, count);
	return error == -EOPNOTSUPP ? write_zeros(image, sector, count) : error;
}

int diskimage_flush(struct diskimage *image)
{
	if (image->read_only || image->overlay >= 0)
		return 0;
	return fdatasync(image->fd) ? -errno : 0;
}

/* --- snapshots of the machine --- */

int diskimage_keep_undo(struct diskimage *image, bool restored, char *why, size_t why_bytes)
{
	if (image->read_only || image->overlay >= 0)
		return 0;
	image->undo = undolog_open(image->path, image->fd, image->sectors * SECTOR_BYTES, restored,
				   why, why_bytes);
	return image->undo ? 0 : -EINVAL;
}

void diskimage_remove_undo(const struct diskimage *image)
{
	if (!image->read_only && image->overlay < 0)
		undofile_remove(image->path);
}

uint64_t diskimage_cut(struct diskimage *image, enum snapshot_mode mode)
{
	if (!image->undo || mode == SNAPSHOT_APART)
		return 0;
	return undolog_cut(image->undo, mode != CHECKPOINT_WHOLE);
}

int diskimage_seek(struct diskimage *image, uint64_t cut)
{
	return image->undo ? undolog_seek(image->undo, cut) : cut ? -ENOENT : 0;
}

int diskimage_prepare_back(struct diskimage *image)
{
	return image->undo ? undolog_prepare(image->undo) : 0;
}

int diskimage_go_back(struct diskimage *image)
{
	return image->undo ? undolog_go_back(image->undo) : 0;
}

struct diskimage_copy {
	int fd;
	uint64_t bytes;
	uint8_t *has; /* one bit per block */
};

/* Write a block, or make it a hole if it is zero, so that it needs no memory. */
static int put_block(int fd, uint64_t block, const void *data, size_t bytes)
{
	static const uint8_t zeros[BLOCK_BYTES];

	if (bytes == BLOCK_BYTES && !memcmp(data, zeros, bytes))
		return allocate(fd, FALLOC_FL_PUNCH_HOLE, block * BLOCK_SECTORS, BLOCK_SECTORS);
	return diskio_all(fd, true, block * BLOCK_BYTES, (void *)data, bytes);
}

static uint64_t blocks_of(uint64_t bytes) { return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES; }

static size_t block_bytes(uint64_t bytes, uint64_t block)
{
	uint64_t left = bytes - block * BLOCK_BYTES;

	return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

int diskimage_identity(const struct diskimage *image, struct snapshot_disk *identity)
{
	struct stat st;

	memset(identity, 0, sizeof *identity);
	if (fstat(image->fd, &st))
		return -errno;
	identity->bytes = image->sectors * SECTOR_BYTES;
	identity->mtime_ns = st.st_mtim.tv_sec * 1000000000ull + st.st_mtim.tv_nsec;
	identity->mode = image->read_only ? IMAGE_READ_ONLY : IMAGE_READ_WRITE;
	if (image->overlay >= 0)
		identity->mode = IMAGE_SNAPSHOT;
	memcpy(identity->path, image->path, sizeof identity->path);
	return 0;
}

static bool has(const struct diskimage_copy *copy, uint64_t block)
{
	return copy->has[block / 8] >> block % 8 & 1;
}

void diskimage_copy_free(struct diskimage_copy *copy)
{
	if (!copy)
		return;
	if (copy->fd >= 0)
		close(copy->fd);
	free(copy->has);
	free(copy);
}

int diskimage_copy_make(struct diskimage *image, enum snapshot_mode mode,
			struct diskimage_copy **made)
{
	struct diskimage_copy *copy = calloc(1, sizeof *copy);
	uint8_t data[BLOCK_BYTES];
	int error = 0;

	if (!copy)
		return -ENOMEM;
	copy->bytes = image->sectors * SECTOR_BYTES;
	copy->has = malloc(map_bytes(image));
	copy->fd = memfd_create("vmp-blocks", MFD_CLOEXEC);
	if (copy->fd < 0 || !copy->has || ftruncate(copy->fd, copy->bytes))
		error = -ENOMEM;
	else
		memcpy(copy->has, mode >= CHECKPOINT_CHANGES ? image->changed : image->own,
		       map_bytes(image));
	for (uint64_t block = 0; !error && block < blocks_of(copy->bytes); block++) {
		size_t bytes = block_bytes(copy->bytes, block);

		if (!has(copy, block))
			continue;
		error = diskio_all(image->overlay, false, block * BLOCK_BYTES, data, bytes);
		if (!error)
			error = put_block(copy->fd, block, data, bytes);
	}
	if (error) {
		diskimage_copy_free(copy);
		return error;
	}
	if (mode != SNAPSHOT_APART)
		memset(image->changed, 0, map_bytes(image));
	*made = copy;
	return 0;
}

int diskimage_copy_next(struct diskimage_copy *copy, uint64_t *block, void *data)
{
	int error;

	while (*block < blocks_of(copy->bytes) && !has(copy, *block))
		++*block;
	if (*block >= blocks_of(copy->bytes))
		return 0;
	error = diskio_all(copy->fd, false, *block * BLOCK_BYTES, data,
			   block_bytes(copy->bytes, *block));
	return error ? error : (int)block_bytes(copy->bytes, *block);
}

int diskimage_put_block(struct diskimage *image, uint64_t block, const void *data, size_t bytes)
{
	uint64_t all = image->sectors * SECTOR_BYTES;
	int error;

	if (image->overlay < 0 || block >= blocks_of(all) || bytes != block_bytes(all, block))
		return -EINVAL;
	error = put_block(image->overlay, block, data, bytes);
	if (!error)
		image->own[block / 8] |= 1 << block % 8;
	return error;
}
