/* diskio.h - reads and writes of a disk's files: the image, its overlay, its undo log. */
#ifndef IOSRV_DISKIO_H
#define IOSRV_DISKIO_H

#include "base/types.h"

/* Read or write all the bytes at an offset.  Returns 0 or -errno; -EIO: the file ends before. */
int diskio_all(int fd, bool write, uint64_t at, void *data, size_t bytes);

#endif
