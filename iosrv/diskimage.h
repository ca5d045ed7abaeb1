/* diskimage.h - a disk image: sectors in a file of the host, and the guest's right to write
 * them. */
#ifndef IOSRV_DISKIMAGE_H
#define IOSRV_DISKIMAGE_H

#include "base/types.h"
#include "base/wire.h"

enum { SECTOR_BYTES = 512, IMAGE_BLOCK_BYTES = 4096 };
enum image_mode { IMAGE_READ_WRITE, IMAGE_READ_ONLY, IMAGE_SNAPSHOT };

struct diskimage;

/* Open IMAGE[,ro|,snapshot].  The file is locked: exclusively for writing, shared otherwise.
 * Returns NULL with a line in `why` if it fails. */
struct diskimage *diskimage_open(const char *spec, char *why, size_t why_bytes);
void diskimage_close(struct diskimage *image);
uint64_t diskimage_sectors(const struct diskimage *image);
bool diskimage_read_only(const struct diskimage *image);
/* True if somebody else on this host may also read the image's file, or write it. */
bool diskimage_shares(const struct diskimage *image, bool write);
bool diskimage_in_memory(const struct diskimage *image); /* of the host, on no disk */
/* Open the file once more, with those rights, without the lock.  Returns a descriptor, or -1. */
int diskimage_open_shared(const struct diskimage *image);
/* These return 0 or -errno: -ERANGE if a sector is beyond the image, -EROFS, -ENOSPC, -EIO, ... */
int diskimage_read(struct diskimage *image, uint64_t sector, unsigned count, void *to);
int diskimage_write(struct diskimage *image, uint64_t sector, unsigned count, const void *from);
/* Drop the sectors' content: reads may return zeros.  The host's space is freed where the file
 * system supports it. */
int diskimage_discard(struct diskimage *image, uint64_t sector, uint32_t count);
/* Set the sectors to zero; `unmap`: free their space on the host as well.  The caller limits
 * `count`: some file systems need a write of that length. */
int diskimage_zero(struct diskimage *image, uint64_t sector, uint32_t count, bool unmap);
/* Wait until all earlier writes are on the host's disk. */
int diskimage_flush(struct diskimage *image);

/* From now on keep what the guest overwrites (undolog.h), if the guest writes to the image itself.
 * `restored`: as undolog_open(). Returns 0, or -errno with a line in `why`. */
int diskimage_keep_undo(struct diskimage *image, bool restored, char *why, size_t why_bytes);
/* Remove the file that a killed machine has left. */
void diskimage_remove_undo(const struct diskimage *image);
/* These do what undolog.h says; without a log they do nothing, and diskimage_seek() returns -ENOENT
 * unless `cut` is 0. */
uint64_t diskimage_cut(struct diskimage *image, enum snapshot_mode mode); /* 0: no log, or APART */
int diskimage_seek(struct diskimage *image, uint64_t cut);
int diskimage_prepare_back(struct diskimage *image);
int diskimage_go_back(struct diskimage *image);

/* Set the image's identity for a snapshot of the machine; `cut` stays 0.  Returns 0 or -errno. */
int diskimage_identity(const struct diskimage *image, struct snapshot_disk *identity);

/* Copy the blocks that the overlay of a snapshot-mode image has now; for CHECKPOINT_CHANGES, those
 * written since the last checkpoint.  Returns 0 or -errno; the caller frees the copy. */
struct diskimage_copy;
int diskimage_copy_make(struct diskimage *image, enum snapshot_mode mode,
			struct diskimage_copy **copy);
void diskimage_copy_free(struct diskimage_copy *copy); /* may be NULL */
/* Read the first block at or behind *block and set *block to its number.  Returns its bytes
 * (IMAGE_BLOCK_BYTES, less at the image's end); 0: there is none; or -errno. */
int diskimage_copy_next(struct diskimage_copy *copy, uint64_t *block, void *data);
/* Write such a block back into an image opened in snapshot mode.  Returns 0 or -errno. */
int diskimage_put_block(struct diskimage *image, uint64_t block, const void *data, size_t bytes);

#endif
