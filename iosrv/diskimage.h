/* diskimage.h - a disk image: sectors in a file of the host, and how far the guest may write to it. */
#ifndef IOSRV_DISKIMAGE_H
#define IOSRV_DISKIMAGE_H

#include "base/types.h"
#include "base/wire.h"

enum { SECTOR_BYTES = 512, IMAGE_BLOCK_BYTES = 4096 };
enum image_mode { IMAGE_READ_WRITE, IMAGE_READ_ONLY, IMAGE_SNAPSHOT };

struct diskimage;

/* IMAGE[,ro|,snapshot]. The file is locked: alone for writing, shared otherwise. NULL with a line in `why`. */
struct diskimage *diskimage_open(const char *spec, char *why, size_t why_bytes);
void diskimage_close(struct diskimage *image);
uint64_t diskimage_sectors(const struct diskimage *image);
bool diskimage_read_only(const struct diskimage *image);
/* 0 or -errno: -ERANGE if the sectors are not all within the image, -EROFS, -ENOSPC, -EIO, ... */
int diskimage_read(struct diskimage *image, uint64_t sector, unsigned count, void *to);
int diskimage_write(struct diskimage *image, uint64_t sector, unsigned count, const void *from);
/* What was written before is on the host's disk when this returns 0. */
int diskimage_flush(struct diskimage *image);

/* What the image is, for a snapshot of the machine: 0 or -errno. */
int diskimage_identity(const struct diskimage *image, struct snapshot_disk *identity);

/* The blocks that a snapshot-mode image keeps apart, as they are now; for CHECKPOINT_CHANGES, those written since the last
 * checkpoint. 0, or -errno; the copy is the caller's. */
struct diskimage_copy;
int diskimage_copy_make(struct diskimage *image, enum snapshot_mode mode, struct diskimage_copy **copy);
void diskimage_copy_free(struct diskimage_copy *copy); /* may be NULL */
/* The first block at or behind *block: its bytes (IMAGE_BLOCK_BYTES, less at the image's end) with its number in *block;
 * 0: there is none; or -errno. */
int diskimage_copy_next(struct diskimage_copy *copy, uint64_t *block, void *data);
/* Put such a block back into an image opened in snapshot mode: 0 or -errno. */
int diskimage_put_block(struct diskimage *image, uint64_t block, const void *data, size_t bytes);

#endif
