/* ninep.c - see ninep.h.  The protocol: Linux, include/net/9p/9p.h, and diod's protocol.md. */
#include "iosrv/ninep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A request's type; its reply's is one more. */
enum type {
	ERROR_REPLY = 7,
	T_STATFS = 8,
	T_LOPEN = 12,
	T_LCREATE = 14,
	T_SYMLINK = 16,
	T_MKNOD = 18,
	T_READLINK = 22,
	T_GETATTR = 24,
	T_SETATTR = 26,
	T_READDIR = 40,
	T_FSYNC = 50,
	T_LOCK = 52,
	T_GETLOCK = 54,
	T_LINK = 70,
	T_MKDIR = 72,
	T_RENAMEAT = 74,
	T_UNLINKAT = 76,
	T_VERSION = 100,
	T_ATTACH = 104,
	T_FLUSH = 108,
	T_WALK = 110,
	T_READ = 116,
	T_WRITE = 118,
	T_CLUNK = 120,
};
enum { QID_DIR = 0x80, QID_SYMLINK = 2, QID_FILE = 0, QID_BYTES = 13 };
enum { MOST_WALKED = 16, LEAST_MESSAGE = 4096, NO_UID = 65534, V9FS_MAGIC = 0x01021997 };
enum { GETATTR_BASIC = 0x7ff };
enum set { SET_MODE = 1, SET_UID = 2, SET_GID = 4, SET_SIZE = 8, SET_ATIME = 0x10,
	   SET_MTIME = 0x20, SET_ATIME_TO = 0x80, SET_MTIME_TO = 0x100 };
enum lock { LOCK_DONE = 0, LOCK_BLOCKED = 1 };
enum { FILE_MODES = 01777, OPEN_FLAGS = O_ACCMODE | O_EXCL | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC |
					O_DIRECTORY };

struct fid {
	struct fid *next; /* in its bucket */
	uint32_t number;
	int place; /* identifies the file; opened with O_PATH, or by the file's creation */
	int file;  /* open for reading or writing; -1: not */
};

enum { BUCKETS = 1024 };
struct ninep {
	int folder, own;
	bool read_only;
	uint32_t message_bytes; /* as agreed with the guest */
	unsigned n_fids;
	struct fid *bucket[BUCKETS];
	/* the request, and its reply */
	const uint8_t *in, *in_end;
	bool short_of; /* the request ended too early */
	uint8_t *out, *reply;
};

/* --- fields --- */

static uint64_t get(struct ninep *s, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(s->in_end - s->in) < bytes) {
		s->short_of = true;
		s->in = s->in_end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)*s->in++ << 8 * i;
	return value;
}

static void put(struct ninep *s, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*s->out++ = (uint8_t)(value >> 8 * i);
}

/* Read a string of at most `room` - 1 bytes, without a NUL: 0 or -errno. */
static int get_string(struct ninep *s, char *to, size_t room)
{
	size_t n = get(s, 2);

	if (n > (size_t)(s->in_end - s->in))
		s->short_of = true;
	if (s->short_of)
		return -EPROTO;
	memcpy(to, s->in, n < room ? n : 0);
	to[n < room ? n : 0] = 0;
	s->in += n;
	if (n >= room)
		return -ENAMETOOLONG;
	return strlen(to) == n ? 0 : -EINVAL;
}

static void put_string(struct ninep *s, const char *text)
{
	size_t n = strlen(text);

	put(s, n, 2);
	memcpy(s->out, text, n);
	s->out += n;
}

/* Read the name of a folder's entry: 0 or -errno. */
static int get_name(struct ninep *s, char name[NAME_MAX + 1])
{
	int error = get_string(s, name, NAME_MAX + 1);

	if (error)
		return error;
	return !*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ? -EINVAL
											: 0;
}

/* Return the free bytes of the reply. */
static size_t room(const struct ninep *s)
{
	return s->message_bytes - (size_t)(s->out - s->reply);
}

/* Return a file's number for the guest: two file systems below the folder may use the same inode
 * number. */
static uint64_t number_of(uint64_t device, uint64_t inode)
{
	return inode ^ device << 48 ^ device >> 16 << 32;
}

static void put_qid(struct ninep *s, const struct stat *st)
{
	put(s, S_ISDIR(st->st_mode) ? QID_DIR : S_ISLNK(st->st_mode) ? QID_SYMLINK : QID_FILE, 1);
	put(s, 0, 4);
	put(s, number_of(st->st_dev, st->st_ino), 8);
}

/* --- fids --- */

static struct fid **find(struct ninep *s, uint32_t number)
{
	struct fid **at = &s->bucket[number % BUCKETS];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static struct fid *get_fid(struct ninep *s)
{
	return *find(s, (uint32_t)get(s, 4));
}

/* Add a fid, which owns `place`; `place` is closed if that fails. */
static int add_fid(struct ninep *s, uint32_t number, int place)
{
	struct fid **at = find(s, number), *f = NULL;
	int error = *at ? EBADF : s->n_fids == NINEP_FIDS ? ENFILE : 0;

	if (!error && !(f = malloc(sizeof *f)))
		error = ENOMEM;
	if (error) {
		close(place);
		return -error;
	}
	*f = (struct fid){ .number = number, .place = place, .file = -1 };
	*at = f;
	s->n_fids++;
	return 0;
}

static void drop_fid(struct ninep *s, struct fid **at)
{
	struct fid *f = *at;

	*at = f->next;
	close(f->place);
	if (f->file >= 0)
		close(f->file);
	free(f);
	s->n_fids--;
}

static void drop_all(struct ninep *s)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (s->bucket[i])
			drop_fid(s, &s->bucket[i]);
}

/* Open an entry of an open folder: a descriptor, or -errno. */
static int open_entry(int folder, const char *name, int flags, unsigned mode)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
				.mode = flags & O_CREAT ? mode : 0,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, folder, name, &how, sizeof how);

	return fd < 0 ? -errno : (int)fd;
}

/* Return the name in `own` of the descriptor's file. */
static const char *name_of(int fd)
{
	static char name[16];

	snprintf(name, sizeof name, "%d", fd);
	return name;
}

static int open_again(const struct ninep *s, int place, int flags)
{
	int fd = openat(s->own, name_of(place), flags | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

static int result(int of)
{
	return of < 0 ? -errno : 0;
}

/* --- requests: 0 with the reply's fields put, or -errno --- */

static int on_version(struct ninep *s)
{
	uint32_t bytes = (uint32_t)get(s, 4);
	char version[16];
	bool known = !get_string(s, version, sizeof version) && !strcmp(version, "9P2000.L") &&
		     bytes >= LEAST_MESSAGE;

	if (s->short_of)
		return -EPROTO;
	drop_all(s);
	s->message_bytes = bytes < NINEP_MESSAGE_BYTES && known ? bytes : NINEP_MESSAGE_BYTES;
	put(s, s->message_bytes, 4);
	put_string(s, known ? "9P2000.L" : "unknown");
	return 0;
}

static int on_attach(struct ninep *s)
{
	uint32_t number = (uint32_t)get(s, 4);
	struct stat st;
	int place;

	if (s->short_of)
		return -EPROTO;
	place = fcntl(s->folder, F_DUPFD_CLOEXEC, 0);
	if (place < 0 || fstat(place, &st))
		return -errno;
	put_qid(s, &st);
	return add_fid(s, number, place);
}

/* Walk as far as possible.  The new fid is made only if all steps succeed, and only a failure of
 * the first step is an error. */
static int on_walk(struct ninep *s)
{
	struct fid *f = get_fid(s);
	uint32_t to = (uint32_t)get(s, 4), n = (uint32_t)get(s, 2), done = 0;
	uint8_t *count = s->out;
	char name[NAME_MAX + 1];
	int place, next, error = 0;
	struct stat st;

	if (s->short_of || n > MOST_WALKED)
		return -EPROTO;
	if (!f || f->file >= 0)
		return -EBADF;
	place = fcntl(f->place, F_DUPFD_CLOEXEC, 0);
	if (place < 0)
		return -errno;
	put(s, 0, 2);
	for (; done < n; done++) {
		error = get_name(s, name);
		next = error ? error : open_entry(place, name, O_PATH, 0);
		error = next < 0 ? next : 0;
		if (error || fstat(next, &st))
			break;
		close(place);
		place = next;
		put_qid(s, &st);
	}
	*count = (uint8_t)done;
	if (done < n) {
		close(place);
		return done ? 0 : error ? error : -EIO;
	}
	if (to == f->number) {
		close(f->place);
		f->place = place;
		return 0;
	}
	return add_fid(s, to, place);
}

static int on_clunk(struct ninep *s)
{
	struct fid **at = find(s, (uint32_t)get(s, 4));

	if (s->short_of || !*at)
		return -EBADF;
	drop_fid(s, at);
	return 0;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

/* Refuse all but files and folders: devices and FIFOs are opened within the guest. */
static int check_kind(int fd, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? 0 : -ENXIO;
}

static int on_lopen(struct ninep *s)
{
	struct fid *f = get_fid(s);
	int flags = (int)get(s, 4) & OPEN_FLAGS & ~O_EXCL, error, fd;
	struct stat st;

	if (s->short_of || !f || f->file >= 0)
		return -EBADF;
	if (s->read_only && writes(flags))
		return -EROFS;
	error = check_kind(f->place, &st);
	if (error)
		return error;
	fd = open_again(s, f->place, flags);
	if (fd < 0)
		return fd;
	f->file = fd;
	put_qid(s, &st);
	put(s, 0, 4);
	return 0;
}

/* Make a file; the folder's fid becomes the new file's. */
static int on_lcreate(struct ninep *s)
{
	struct fid *f = get_fid(s);
	char name[NAME_MAX + 1];
	int error = get_name(s, name), flags = (int)get(s, 4) & OPEN_FLAGS, fd, place;
	unsigned mode = (unsigned)get(s, 4) & FILE_MODES;
	struct stat st;

	get(s, 4); /* the group */
	if (s->short_of || !f || f->file >= 0)
		return -EBADF;
	if (error || s->read_only)
		return error ? error : -EROFS;
	fd = open_entry(f->place, name, (flags & ~O_DIRECTORY) | O_CREAT | O_NONBLOCK, mode);
	if (fd < 0)
		return fd;
	error = check_kind(fd, &st);
	place = error ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (place < 0) {
		error = error ? error : -errno;
		close(fd);
		return error;
	}
	close(f->place);
	f->place = place;
	f->file = fd;
	put_qid(s, &st);
	put(s, 0, 4);
	return 0;
}

/* Put the reply of a request that makes an entry: the entry's kind and number. */
static int put_made(struct ninep *s, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	put_qid(s, &st);
	return 0;
}

/* Read the folder and the name of an entry that is to be made or removed: 0 or -errno. */
static int get_entry(struct ninep *s, struct fid **folder, char name[NAME_MAX + 1])
{
	int error;

	*folder = get_fid(s);
	error = get_name(s, name);
	if (s->short_of || !*folder)
		return -EBADF;
	return error ? error : s->read_only ? -EROFS : 0;
}

static int on_mkdir(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1];
	int error = get_entry(s, &f, name);
	unsigned mode = (unsigned)get(s, 4) & FILE_MODES;

	if (error || s->short_of)
		return error ? error : -EPROTO;
	error = result(mkdirat(f->place, name, mode));
	return error ? error : put_made(s, f->place, name);
}

static int on_symlink(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1], target[PATH_MAX];
	int error = get_entry(s, &f, name), wrong = get_string(s, target, sizeof target);

	if (error || wrong)
		return error ? error : wrong;
	error = result(symlinkat(target, f->place, name));
	return error ? error : put_made(s, f->place, name);
}

/* Make a FIFO or a socket, for the guest's programs among themselves; devices are refused. */
static int on_mknod(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1];
	int error = get_entry(s, &f, name);
	unsigned mode = (unsigned)get(s, 4);

	if (error || s->short_of)
		return error ? error : -EPROTO;
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISREG(mode))
		return -EPERM;
	error = result(mknodat(f->place, name, mode & (S_IFMT | FILE_MODES), 0));
	return error ? error : put_made(s, f->place, name);
}

static int on_link(struct ninep *s)
{
	struct fid *folder = get_fid(s), *f = get_fid(s);
	char name[NAME_MAX + 1];
	int error = get_name(s, name);

	if (s->short_of || !folder || !f)
		return -EBADF;
	if (error || s->read_only)
		return error ? error : -EROFS;
	return result(linkat(s->own, name_of(f->place), folder->place, name, AT_SYMLINK_FOLLOW));
}

static int on_renameat(struct ninep *s)
{
	struct fid *from, *to;
	char old[NAME_MAX + 1], new[NAME_MAX + 1];
	int error = get_entry(s, &from, old), wrong = get_entry(s, &to, new);

	if (error || wrong)
		return error ? error : wrong;
	return result(renameat(from->place, old, to->place, new));
}

static int on_unlinkat(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1];
	int error = get_entry(s, &f, name);
	int flags = (int)get(s, 4) & AT_REMOVEDIR;

	if (error || s->short_of)
		return error ? error : -EPROTO;
	return result(unlinkat(f->place, name, flags));
}

static int on_readlink(struct ninep *s)
{
	struct fid *f = get_fid(s);
	char target[PATH_MAX];
	ssize_t n;

	if (s->short_of || !f)
		return -EBADF;
	n = readlinkat(f->place, "", target, sizeof target - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	if ((size_t)n + 2 > room(s))
		return -ENAMETOOLONG;
	put_string(s, target);
	return 0;
}

/* --- attributes --- */

static uint32_t owner(uint32_t is, uint32_t own)
{
	return is == own ? 0 : is ? is : NO_UID;
}

static void put_time(struct ninep *s, const struct timespec *t)
{
	put(s, (uint64_t)t->tv_sec, 8);
	put(s, (uint64_t)t->tv_nsec, 8);
}

static int on_getattr(struct ninep *s)
{
	static const struct timespec never;
	struct fid *f = get_fid(s);
	struct stat st;

	if (s->short_of || !f)
		return -EBADF;
	if (fstat(f->place, &st))
		return -errno;
	put(s, GETATTR_BASIC, 8);
	put_qid(s, &st);
	put(s, st.st_mode, 4);
	put(s, owner(st.st_uid, getuid()), 4);
	put(s, owner(st.st_gid, getgid()), 4);
	put(s, st.st_nlink, 8);
	put(s, 0, 8); /* a device's numbers, which have no meaning in the guest */
	put(s, (uint64_t)st.st_size, 8);
	put(s, NINEP_MESSAGE_BYTES / 2, 8); /* a good size to read at once */
	put(s, (uint64_t)st.st_blocks, 8);
	put_time(s, &st.st_atim);
	put_time(s, &st.st_mtim);
	put_time(s, &st.st_ctim);
	put_time(s, &never);
	put(s, 0, 8);
	put(s, 0, 8);
	return 0;
}

static struct timespec get_time(struct ninep *s, bool set, bool to)
{
	struct timespec t = { .tv_sec = (time_t)get(s, 8), .tv_nsec = (long)get(s, 8) };

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
	int error = check_kind(f->place, &st), fd;

	if (error || bytes > INT64_MAX)
		return error ? error : -EFBIG;
	/* A file that is open for writing can be cut even if it could not be opened now. */
	if (f->file >= 0 && (fcntl(f->file, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return result(ftruncate(f->file, (off_t)bytes));
	fd = open_again(s, f->place, O_WRONLY);
	if (fd < 0)
		return fd;
	error = result(ftruncate(fd, (off_t)bytes));
	close(fd);
	return error;
}

static int on_setattr(struct ninep *s)
{
	struct fid *f = get_fid(s);
	unsigned set = (unsigned)get(s, 4), mode = (unsigned)get(s, 4);
	uint32_t uid = (uint32_t)get(s, 4), gid = (uint32_t)get(s, 4);
	uint64_t bytes = get(s, 8);
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
		error = result(fchmodat(s->own, name_of(f->place), mode & FILE_MODES, 0));
	if (!error && set & SET_SIZE)
		error = set_size(s, f, bytes);
	if (!error && set & (SET_ATIME | SET_MTIME))
		error = result(utimensat(f->place, "", times, AT_EMPTY_PATH));
	return error;
}

static int on_statfs(struct ninep *s)
{
	struct fid *f = get_fid(s);
	struct statfs st;

	if (s->short_of || !f)
		return -EBADF;
	if (fstatfs(f->place, &st))
		return -errno;
	put(s, V9FS_MAGIC, 4);
	put(s, (uint64_t)st.f_bsize, 4);
	put(s, st.f_blocks, 8);
	put(s, st.f_bfree, 8);
	put(s, st.f_bavail, 8);
	put(s, st.f_files, 8);
	put(s, st.f_ffree, 8);
	put(s, 0, 8);
	put(s, NAME_MAX, 4);
	return 0;
}

/* --- contents --- */

/* The count precedes the bytes in the reply, so the bytes are read directly to their place. */
static int on_read(struct ninep *s)
{
	struct fid *f = get_fid(s);
	uint64_t offset = get(s, 8);
	size_t count = get(s, 4);
	uint8_t *at = s->out;
	ssize_t n;

	if (s->short_of || !f || f->file < 0)
		return -EBADF;
	if (offset > INT64_MAX)
		return -EINVAL;
	s->out += 4;
	if (count > room(s))
		count = room(s);
	do
		n = pread(f->file, s->out, count, (off_t)offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->out = at;
	put(s, (uint64_t)n, 4);
	s->out += n;
	return 0;
}

static int on_write(struct ninep *s)
{
	struct fid *f = get_fid(s);
	uint64_t offset = get(s, 8);
	size_t count = get(s, 4);
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
	put(s, (uint64_t)n, 4);
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
	put(s, e->kind == DT_DIR ? QID_DIR : e->kind == DT_LNK ? QID_SYMLINK : QID_FILE, 1);
	put(s, 0, 4);
	put(s, number_of(device, e->inode), 8);
	put(s, (uint64_t)e->next, 8);
	put(s, e->kind, 1);
	put_string(s, e->name);
	return true;
}

static int on_readdir(struct ninep *s)
{
	static _Alignas(struct entry) char entries[16 << 10];
	struct fid *f = get_fid(s);
	uint64_t offset = get(s, 8);
	size_t count = get(s, 4), at = 0;
	uint8_t *start = s->out;
	struct stat st;
	long n = 0;

	if (s->short_of || !f || f->file < 0)
		return -EBADF;
	s->out += 4;
	if (count > room(s))
		count = room(s);
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
	put(s, count, 4);
	s->out += count;
	return 0;
}

static int on_fsync(struct ninep *s)
{
	struct fid *f = get_fid(s);
	bool data = get(s, 4);

	if (s->short_of || !f || f->file < 0)
		return -EBADF;
	return result(data ? fdatasync(f->file) : fsync(f->file));
}

/* --- locks: the host's own, of the open file, so that they are also between host and guest --- */

static int get_range(struct ninep *s, struct flock *lock)
{
	uint64_t start = get(s, 8), bytes = get(s, 8);

	if (s->short_of || start > INT64_MAX || bytes > INT64_MAX)
		return -EINVAL;
	*lock = (struct flock){ .l_whence = SEEK_SET, .l_start = (off_t)start,
				.l_len = (off_t)bytes };
	return 0;
}

static int lock_kind(unsigned type)
{
	static const short kinds[] = { F_RDLCK, F_WRLCK, F_UNLCK };

	return type < 3 ? kinds[type] : -1;
}

static int on_lock(struct ninep *s)
{
	struct fid *f = get_fid(s);
	int kind = lock_kind((unsigned)get(s, 1));
	struct flock lock;
	int error;

	get(s, 4); /* wait or not: the guest asks again */
	error = get_range(s, &lock);
	if (error || kind < 0)
		return -EINVAL;
	if (!f || f->file < 0)
		return -EBADF;
	lock.l_type = (short)kind;
	error = result(fcntl(f->file, F_OFD_SETLK, &lock));
	if (error && error != -EAGAIN && error != -EACCES)
		return error;
	put(s, error ? LOCK_BLOCKED : LOCK_DONE, 1);
	return 0;
}

static int on_getlock(struct ninep *s)
{
	struct fid *f = get_fid(s);
	int kind = lock_kind((unsigned)get(s, 1));
	struct flock lock;
	int error = get_range(s, &lock);
	uint32_t process = (uint32_t)get(s, 4);
	char client[65];

	if (error || kind < 0 || get_string(s, client, sizeof client))
		return -EINVAL;
	if (!f || f->file < 0)
		return -EBADF;
	lock.l_type = (short)kind;
	if (fcntl(f->file, F_OFD_GETLK, &lock))
		return -errno;
	put(s, lock.l_type == F_RDLCK ? 0 : lock.l_type == F_WRLCK ? 1 : 2, 1);
	put(s, (uint64_t)lock.l_start, 8);
	put(s, (uint64_t)lock.l_len, 8);
	put(s, process, 4);
	put_string(s, client);
	return 0;
}

/* --- dispatch --- */

static int serve(struct ninep *s, unsigned type)
{
	switch (type) {
	case T_VERSION: return on_version(s);
	case T_ATTACH: return on_attach(s);
	case T_FLUSH: return 0; /* requests are served in order: the old one has been answered */
	case T_WALK: return on_walk(s);
	case T_CLUNK: return on_clunk(s);
	case T_LOPEN: return on_lopen(s);
	case T_LCREATE: return on_lcreate(s);
	case T_MKDIR: return on_mkdir(s);
	case T_SYMLINK: return on_symlink(s);
	case T_MKNOD: return on_mknod(s);
	case T_LINK: return on_link(s);
	case T_RENAMEAT: return on_renameat(s);
	case T_UNLINKAT: return on_unlinkat(s);
	case T_READLINK: return on_readlink(s);
	case T_GETATTR: return on_getattr(s);
	case T_SETATTR: return on_setattr(s);
	case T_STATFS: return on_statfs(s);
	case T_READ: return on_read(s);
	case T_WRITE: return on_write(s);
	case T_READDIR: return on_readdir(s);
	case T_FSYNC: return on_fsync(s);
	case T_LOCK: return on_lock(s);
	case T_GETLOCK: return on_getlock(s);
	default: return -EOPNOTSUPP; /* extended attributes; rename and remove by fid alone */
	}
}

size_t ninep_serve(struct ninep *s, const void *request, size_t bytes, void *reply)
{
	uint32_t length, tag;
	unsigned type;
	int error;

	s->in = request;
	s->in_end = s->in + bytes;
	s->short_of = false;
	length = (uint32_t)get(s, 4);
	type = (unsigned)get(s, 1);
	tag = (uint32_t)get(s, 2);
	if (s->short_of)
		return 0;
	s->reply = reply;
	s->out = s->reply + NINEP_HEADER_BYTES;
	error = length != bytes ? -EPROTO : serve(s, type);
	if (error) {
		s->out = s->reply + NINEP_HEADER_BYTES;
		put(s, (uint64_t)-error, 4);
	}
	length = (uint32_t)(s->out - s->reply);
	s->out = s->reply;
	put(s, length, 4);
	put(s, error ? ERROR_REPLY : type + 1, 1);
	put(s, tag, 2);
	return length;
}

struct ninep *ninep_new(int folder, int own, bool read_only)
{
	struct ninep *s = calloc(1, sizeof *s);

	if (s)
		*s = (struct ninep){ .folder = folder, .own = own, .read_only = read_only,
				     .message_bytes = NINEP_MESSAGE_BYTES };
	return s;
}

void ninep_free(struct ninep *s)
{
	drop_all(s);
	free(s);
}
