/* ninep_attributes.c - requests about a file's owner, mode, size and times, and its file system. */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { NO_UID = 65534, V9FS_MAGIC = 0x01021997, GETATTR_BASIC = 0x7ff };
enum set { SET_MODE = 1, SET_UID = 2, SET_GID = 4, SET_SIZE = 8, SET_ATIME = 0x10,
	   SET_MTIME = 0x20, SET_ATIME_TO = 0x80, SET_MTIME_TO = 0x100 };

static uint32_t owner(uint32_t is, uint32_t own)
{
	return is == own ? 0 : is ? is : NO_UID;
}

static void put_time(struct ninep *s, const struct timespec *t)
{
	ninep_put(s, (uint64_t)t->tv_sec, 8);
	ninep_put(s, (uint64_t)t->tv_nsec, 8);
}

int ninep_on_getattr(struct ninep *s)
{
	static const struct timespec never;
	struct fid *f = ninep_get_fid(s);
	struct stat st;

	if (s->short_of || !f)
		return -EBADF;
	if (fstat(f->place, &st))
		return -errno;
	ninep_put(s, GETATTR_BASIC, 8);
	ninep_put_qid(s, &st);
	ninep_put(s, st.st_mode, 4);
	ninep_put(s, owner(st.st_uid, getuid()), 4);
	ninep_put(s, owner(st.st_gid, getgid()), 4);
	ninep_put(s, st.st_nlink, 8);
	ninep_put(s, 0, 8); /* a device's numbers, which have no meaning in the guest */
	ninep_put(s, (uint64_t)st.st_size, 8);
	ninep_put(s, NINEP_MESSAGE_BYTES / 2, 8); /* a good size to read at once */
	ninep_put(s, (uint64_t)st.st_blocks, 8);
	put_time(s, &st.st_atim);
	put_time(s, &st.st_mtim);
	put_time(s, &st.st_ctim);
	put_time(s, &never);
	ninep_put(s, 0, 8);
	ninep_put(s, 0, 8);
	return 0;
}

static struct timespec get_time(struct ninep *s, bool set, bool to)
{
	struct timespec t = { .tv_sec = (time_t)ninep_get(s, 8), .tv_nsec = (long)ninep_get(s, 8) };

	if (!to)
		t.tv_nsec = UTIME_NOW;
	else if (t.tv_nsec < 0 || t.tv_nsec > 999999999)
		t.tv_nsec = 0;
	if (!set)
		t.tv_nsec = UTIME_OMIT;
	return t;
}

/* Set a file's owner.  This user's files belong to root in the guest; no other owner can be set. */
static int set_owner(const struct fid *f, unsigned set, uint32_t uid, uint32_t gid)
{
	struct stat st;

	if (!(set & (SET_UID | SET_GID)))
		return 0;
	if (fstat(f->place, &st))
		return -errno;
	if ((set & SET_UID && uid != owner(st.st_uid, getuid())) ||
	    (set & SET_GID && gid != owner(st.st_gid, getgid())))
		return -EPERM;
	return 0;
}

static int set_size(const struct ninep *s, const struct fid *f, uint64_t bytes)
{
	struct stat st;
	int error = ninep_check_kind(f->place, &st), fd;

	if (error || bytes > INT64_MAX)
		return error ? error : -EFBIG;
	/* A file that is open for writing can be cut even if it could not be opened now. */
	if (f->file >= 0 && (fcntl(f->file, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return ninep_result(ftruncate(f->file, (off_t)bytes));
	fd = ninep_open_again(s, f->place, O_WRONLY);
	if (fd < 0)
		return fd;
	error = ninep_result(ftruncate(fd, (off_t)bytes));
	close(fd);
	return error;
}

int ninep_on_setattr(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	unsigned set = (unsigned)ninep_get(s, 4), mode = (unsigned)ninep_get(s, 4);
	uint32_t uid = (uint32_t)ninep_get(s, 4), gid = (uint32_t)ninep_get(s, 4);
	uint64_t bytes = ninep_get(s, 8);
	struct timespec times[2];
	int error;

	times[0] = get_time(s, set & SET_ATIME, set & SET_ATIME_TO);
	times[1] = get_time(s, set & SET_MTIME, set & SET_MTIME_TO);
	if (s->short_of || !f)
		return -EBADF;
	if (s->read_only)
		return -EROFS;
	error = set_owner(f, set, uid, gid);
	if (!error && set & SET_MODE)
		error = ninep_result(fchmodat(s->own, ninep_name_of(f->place),
					      mode & NINEP_FILE_MODES, 0));
	if (!error && set & SET_SIZE)
		error = set_size(s, f, bytes);
	if (!error && set & (SET_ATIME | SET_MTIME))
		error = ninep_result(utimensat(f->place, "", times, AT_EMPTY_PATH));
	return error;
}

int ninep_on_statfs(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	struct statfs st;

	if (s->short_of || !f)
		return -EBADF;
	if (fstatfs(f->place, &st))
		return -errno;
	ninep_put(s, V9FS_MAGIC, 4);
	ninep_put(s, (uint64_t)st.f_bsize, 4);
	ninep_put(s, st.f_blocks, 8);
	ninep_put(s, st.f_bfree, 8);
	ninep_put(s, st.f_bavail, 8);
	ninep_put(s, st.f_files, 8);
	ninep_put(s, st.f_ffree, 8);
	ninep_put(s, 0, 8);
	ninep_put(s, NAME_MAX, 4);
	return 0;
}
