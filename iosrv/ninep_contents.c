/* ninep_contents.c - requests about what files and folders hold. */
#include "iosrv/ninep_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The count precedes the bytes in the reply, so the bytes are read directly to their place. */
int ninep_on_read(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	uint64_t offset = ninep_get(s, 8);
	size_t count = ninep_get(s, 4);
	uint8_t *at = s->out;
	ssize_t n;

	if (s->short_of || !f || f->file < 0)
		return -EBADF;
	if (offset > INT64_MAX)
		return -EINVAL;
	s->out += 4;
	if (count > ninep_room(s))
		count = ninep_room(s);
	do
		n = pread(f->file, s->out, count, (off_t)offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->out = at;
	ninep_put(s, (uint64_t)n, 4);
	s->out += n;
	return 0;
}

int ninep_on_write(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	uint64_t offset = ninep_get(s, 8);
	size_t count = ninep_get(s, 4);
	ssize_t n;

	if (s->short_of || count > (size_t)(s->in_end - s->in))
		return -EPROTO;
	if (!f || f->file < 0)
		return -EBADF;
	if (offset > INT64_MAX)
		return -EFBIG;
	do
		n = pwrite(f->file, s->in, count, (off_t)offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	ninep_put(s, (uint64_t)n, 4);
	return 0;
}

struct entry { /* getdents64(2) */
	uint64_t inode;
	int64_t next;
	uint16_t bytes;
	uint8_t kind;
	char name[];
};

/* Put a folder's entry.  False: there is no room. */
static bool put_entry(struct ninep *s, const struct entry *e, uint64_t device, size_t left)
{
	if (QID_BYTES + 8 + 1 + 2 + strlen(e->name) > left)
		return false;
	ninep_put(s, e->kind == DT_DIR ? QID_DIR : e->kind == DT_LNK ? QID_SYMLINK : QID_FILE, 1);
	ninep_put(s, 0, 4);
	ninep_put(s, ninep_number_of(device, e->inode), 8);
	ninep_put(s, (uint64_t)e->next, 8);
	ninep_put(s, e->kind, 1);
	ninep_put_string(s, e->name);
	return true;
}

int ninep_on_readdir(struct ninep *s)
{
	static _Alignas(struct entry) char entries[16 << 10];
	struct fid *f = ninep_get_fid(s);
	uint64_t offset = ninep_get(s, 8);
	size_t count = ninep_get(s, 4), at = 0;
	uint8_t *start = s->out;
	struct stat st;
	long n = 0;

	if (s->short_of || !f || f->file < 0)
		return -EBADF;
	s->out += 4;
	if (count > ninep_room(s))
		count = ninep_room(s);
	if (fstat(f->file, &st) || lseek(f->file, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	n = syscall(SYS_getdents64, f->file, entries, sizeof entries);
	if (n < 0)
		return -errno;
	while (at < (size_t)n) {
		const struct entry *e = (const void *)(entries + at);

		if (!put_entry(s, e, st.st_dev, count - (size_t)(s->out - start - 4)))
			break;
		at += e->bytes;
	}
	if (n && !at)
		return -EINVAL; /* the guest has no room for one entry */
	count = (size_t)(s->out - start - 4);
	s->out = start;
	ninep_put(s, count, 4);
	s->out += count;
	return 0;
}

int ninep_on_fsync(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	bool data = ninep_get(s, 4);

	if (s->short_of || !f || f->file < 0)
		return -EBADF;
	return ninep_result(data ? fdatasync(f->file) : fsync(f->file));
}
