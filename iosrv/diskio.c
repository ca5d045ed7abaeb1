/* diskio.c - see diskio.h. */
#include "iosrv/diskio.h"

#include <errno.h>
#include <unistd.h>

int diskio_all(int fd, bool write, uint64_t at, void *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = write ? pwrite(fd, data, bytes, at) : pread(fd, data, bytes, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		data = (char *)data + n;
		bytes -= n;
	}
	return 0;
}
