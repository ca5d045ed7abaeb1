/* image.h - a disk image: sectors in a file of the host, and how far the guest may write to it. */
#ifndef IOSRV_IMAGE_H
#define IOSRV_IMAGE_H

#include "base/types.h"
#include "base/wire.h"

enum { SECTOR_BYTES = 512, IMAGE_BLOCK_BYTES = 4096 };
enum image_mode { IMAGE_READ_WRITE, IMAGE_READ_ONLY, IMAGE_SNAPSHOT };

struct image;

/* IMAGE[,ro|,snapshot]. The file is locked: alone for writing, shared otherwise. NULL with a line in `why`. */
struct image *image_open(const char *spec, char *why, size_t why_bytes);
void image_close(struct image *image);
uint64_t image_sectors(const struct image *image);
bool image_read_only(const struct image *image);
/* 0 or -errno: -EROFS, -ENOSPC, -EIO, ... The range must lie within the image. */
int image_read(struct image *image, uint64_t sector, unsigned count, void *to);
int image_write(struct image *image, uint64_t sector, unsigned count, const void *from);
/* What was written before is on the host's disk when this returns 0. */
int image_flush(struct image *image);

/* What the image is, for a snapshot of the machine: 0 or -errno. */
int image_identity(const struct image *image, struct snapshot_disk *identity);

/* The blocks that a snapshot-mode image keeps apart, as they are now; for CHECKPOINT_CHANGES, those written since the last
 * checkpoint. 0, or -errno; the copy is the caller's. */
struct image_copy;
int image_copy_make(struct image *image, enum snapshot_mode mode, struct image_copy **copy);
void image_copy_free(struct image_copy *copy); /* may be NULL */
/* The first block at or behind *block: its bytes (IMAGE_BLOCK_BYTES, less at the image's end) with its number in *block;
 * 0: there is none; or -errno. */
int image_copy_next(struct image_copy *copy, uint64_t *block, void *data);
/* Put such a block back into an image opened in snapshot mode: 0 or -errno. */
int image_put_block(struct image *image, uint64_t block, const void *data, size_t bytes);

#endif
