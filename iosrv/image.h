/* image.h - a disk image: sectors in a file of the host, and how far the guest may write to it. */
#ifndef IOSRV_IMAGE_H
#define IOSRV_IMAGE_H

#include "base/types.h"

enum { SECTOR_BYTES = 512 };

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

#endif
