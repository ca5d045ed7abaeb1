/* ninep_saved.c - the state of a 9P server as bytes, for snapshots (ninep.h).
 *
 * The form: STATE_FORM, the length of messages, device and inode of the folder; then of each fid
 * its number, FID_* bits, type of file, device and inode, and, unless it is lost, its path; if it
 * is open, the flags of open(2), and its locks: kind, first and last byte.
 *
 * A path is the one that the host's kernel gives for an open file, if it leads to that file from
 * the folder.  It does not if all of the file's names were removed, if it was moved out of the
 * folder, or if its path is longer than the host allows.
 *
 * A path is opened again as a request's name is: beneath the folder, and through no symbolic link.
 * What is there must be a file of the same type; in the same folder (by device and inode) the very
 * same file.  Another file that has taken its name since is not what the guest has open.  A copy of
 * the folder elsewhere has other inodes, and is taken by the names alone.
 *
 * Locks are taken again.  A file whose lock somebody else has by now is lost: the guest would write
 * where it believes itself alone.
 */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STATE_FORM = 0x31503956, FID_LOST = 1, FID_OPEN = 2, FID_BITS = 3 };
enum { FID_BYTES = 4 + 1 + 4 + 8 + 8 + 2 + PATH_MAX + 4 + 4, LOCK_BYTES = 1 + 8 + 8 };
_Static_assert(NINEP_STATE_BYTES > 64 + (size_t)NINEP_FIDS * FID_BYTES +
					   (size_t)NINEP_LOCKS * LOCK_BYTES, "every state fits");

/* --- saving --- */

struct writer { uint8_t *bytes; size_t n, room; bool failed; };

static uint8_t *reserve(struct writer *w, size_t more)
{
	uint8_t *bytes;

	if (w->n + more > w->room && !w->failed) {
		bytes = realloc(w->bytes, 2 * (w->n + more));
		w->failed = !bytes;
		if (bytes) {
			w->bytes = bytes;
			w->room = 2 * (w->n + more);
		}
	}
	if (w->failed)
		return NULL;
	w->n += more;
	return w->bytes + w->n - more;
}

static void write_number(struct writer *w, uint64_t value, unsigned bytes)
{
	uint8_t *to = reserve(w, bytes);

	for (unsigned i = 0; to && i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static void write_path(struct writer *w, const char *path)
{
	size_t n = strlen(path);
	uint8_t *to;

	write_number(w, n, 2);
	to = reserve(w, n);
	if (to)
		memcpy(to, path, n);
}

/* Read the path of an open file on the host: its length; 0: it has none. */
static size_t host_path(const struct ninep *s, int fd, char path[PATH_MAX])
{
	ssize_t n = readlinkat(s->own, ninep_name_of(fd), path, PATH_MAX - 1);

	if (n < 0 || *path != '/')
		n = 0;
	path[n] = 0;
	return (size_t)n;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Return whether `path`, which is beneath the folder, leads to this file. */
static bool leads_to(const struct ninep *s, const char *path, const struct stat *st)
{
	int fd = ninep_open_entry(s->folder, path, O_PATH, 0);
	struct stat there;
	bool same;

	if (fd < 0)
		return false;
	same = !fstat(fd, &there) && is_same(&there, st);
	close(fd);
	return same;
}

/* Return the path of a file in the folder, within `path`; NULL: it has none. */
static const char *path_of(const struct ninep *s, const struct fid *f, const struct stat *st,
			   char path[PATH_MAX])
{
	char folder[PATH_MAX];
	size_t top = host_path(s, s->folder, folder);
	const char *at = path;

	if (!top || !host_path(s, f->place, path))
		return NULL;
	if (top > 1) { /* of "/" each path begins with the slash alone */
		if (strncmp(path, folder, top) || (path[top] && path[top] != '/'))
			return NULL;
		at += top;
	}
	at += strspn(at, "/");
	at = *at ? at : ".";
	return leads_to(s, at, st) ? at : NULL;
}

static void write_locks(struct writer *w, const struct fid *f)
{
	write_number(w, f->n_locks, 4);
	for (unsigned i = 0; i < f->n_locks; i++) {
		write_number(w, f->lock[i].kind, 1);
		write_number(w, f->lock[i].first, 8);
		write_number(w, f->lock[i].last, 8);
	}
}

static void write_fid(struct writer *w, const struct ninep *s, const struct fid *f)
{
	char buffer[PATH_MAX];
	struct stat st = { 0 };
	bool there = f->place >= 0 && !fstat(f->place, &st);
	const char *path = there ? path_of(s, f, &st, buffer) : NULL;
	int flags = f->file >= 0 ? fcntl(f->file, F_GETFL) : -1;

	write_number(w, f->number, 4);
	write_number(w, (path ? 0 : FID_LOST) | (flags >= 0 ? FID_OPEN : 0), 1);
	write_number(w, st.st_mode & S_IFMT, 4);
	write_number(w, st.st_dev, 8);
	write_number(w, st.st_ino, 8);
	if (!path)
		return;
	write_path(w, path);
	if (flags < 0)
		return;
	write_number(w, (unsigned)flags & OPEN_STAYS, 4);
	write_locks(w, f);
}

size_t ninep_save(struct ninep *s, uint8_t **state)
{
	struct writer w = { 0 };
	struct stat st = { 0 };

	fstat(s->folder, &st);
	write_number(&w, STATE_FORM, 4);
	write_number(&w, s->message_bytes, 4);
	write_number(&w, st.st_dev, 8);
	write_number(&w, st.st_ino, 8);
	write_number(&w, s->n_fids, 4);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (const struct fid *f = s->bucket[i]; f; f = f->next)
			write_fid(&w, s, f);
	if (w.failed)
		free(w.bytes);
	*state = w.failed ? NULL : w.bytes;
	return w.failed ? 0 : w.n;
}

/* --- loading --- */

/* A fid of a state, without its locks. */
struct saved {
	uint32_t number, bits, type, flags;
	uint64_t device, inode;
	char path[PATH_MAX];
};

/* The folder's process of before may not have ended yet when a machine returns to a checkpoint; it
 * holds its locks until then. */
enum { LOCK_TRIES = 200, LOCK_PAUSE_NS = 10000000 };

static int take_lock(struct ninep *s, struct fid *f, const struct lock_range *range,
		     unsigned *tries)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	int error;

	while ((error = ninep_set_lock(s, f, *range)) == -EAGAIN && *tries) {
		--*tries;
		nanosleep(&pause, NULL);
	}
	return error;
}

static const char *read_fid(struct ninep *s, struct saved *f)
{
	f->number = (uint32_t)ninep_get(s, 4);
	f->bits = (uint32_t)ninep_get(s, 1);
	f->type = (uint32_t)ninep_get(s, 4);
	f->device = ninep_get(s, 8);
	f->inode = ninep_get(s, 8);
	f->flags = 0;
	if (s->short_of || f->bits > FID_BITS)
		return "does not describe a file of the guest's";
	if (f->bits & FID_LOST)
		return NULL;
	if (ninep_get_string(s, f->path, sizeof f->path) || !*f->path)
		return "has a path that is none";
	if (!(f->bits & FID_OPEN))
		return NULL;
	f->flags = (uint32_t)ninep_get(s, 4);
	if (s->short_of || f->flags & ~(uint32_t)OPEN_STAYS)
		return "has a file that is open in no way that there is";
	if (s->read_only && (f->flags & O_ACCMODE) != O_RDONLY)
		return "writes to a folder that is read only";
	return NULL;
}

/* Open a file as it was open.  The guest may have made it without the right to write to it; it has
 * that right for a moment then. */
static int open_file(const struct ninep *s, int place, int flags, const struct stat *st)
{
	const char *name;
	int fd = ninep_open_again(s, place, flags);

	if (fd != -EACCES || s->read_only || st->st_uid != getuid() || !S_ISREG(st->st_mode))
		return fd;
	name = ninep_name_of(place);
	if (fchmodat(s->own, name, (st->st_mode & NINEP_FILE_MODES) | S_IRUSR | S_IWUSR, 0))
		return fd;
	fd = ninep_open_again(s, place, flags);
	if (!fchmodat(s->own, ninep_name_of(place), st->st_mode & NINEP_FILE_MODES, 0) || fd < 0)
		return fd;
	close(fd);
	return -EACCES;
}

/* Find and open a saved file: place and file, or -1 if it is lost. */
static void find_file(const struct ninep *s, const struct saved *f, bool same_folder, int *place,
		      int *file)
{
	struct stat st;
	bool right;

	*place = f->bits & FID_LOST ? -1 : ninep_open_entry(s->folder, f->path, O_PATH, 0);
	*file = -1;
	if (*place < 0) {
		*place = -1;
		return;
	}
	right = !fstat(*place, &st) && (st.st_mode & S_IFMT) == f->type &&
		(!same_folder || (st.st_dev == f->device && st.st_ino == f->inode));
	if (right && f->bits & FID_OPEN) {
		*file = ninep_check_kind(*place, &st) ? -1
						      : open_file(s, *place, (int)f->flags, &st);
		right = *file >= 0;
	}
	if (right)
		return;
	close(*place);
	*place = *file = -1;
}

/* The guest's number stays, and its file is lost. */
static void lose(struct ninep *s, struct fid *f)
{
	close(f->place);
	close(f->file);
	f->place = f->file = -1;
	s->n_locks -= f->n_locks;
	f->n_locks = 0;
}

/* Read a file's locks, and take them.  Those of a lost file are only checked. */
static const char *load_locks(struct ninep *s, struct fid *f, uint32_t *left, unsigned *tries)
{
	uint32_t n = (uint32_t)ninep_get(s, 4);

	if (s->short_of || n > *left)
		return "has more locks than can be";
	*left -= n;
	for (; n; n--) {
		struct lock_range range;

		range.kind = (enum range_kind)ninep_get(s, 1);
		range.first = ninep_get(s, 8);
		range.last = ninep_get(s, 8);
		if (s->short_of || range.kind >= RANGE_NONE || range.first > range.last ||
		    range.last > INT64_MAX)
			return "has a lock that is none";
		if (f->place >= 0 && take_lock(s, f, &range, tries))
			lose(s, f);
	}
	return NULL;
}

static const char *load_fid(struct ninep *s, bool same_folder, uint32_t *locks, unsigned *tries)
{
	struct saved saved;
	struct fid *f;
	int place, file;
	const char *why = read_fid(s, &saved);

	if (why)
		return why;
	if (*ninep_find(s, saved.number))
		return "names a file of the guest's twice";
	find_file(s, &saved, same_folder, &place, &file);
	if (ninep_add_fid(s, saved.number, place)) {
		if (file >= 0)
			close(file);
		return "has more files than there is memory for";
	}
	f = *ninep_find(s, saved.number);
	f->file = file;
	return !(saved.bits & FID_LOST) && saved.bits & FID_OPEN ? load_locks(s, f, locks, tries)
								 : NULL;
}

static const char *load(struct ninep *s)
{
	uint32_t form = (uint32_t)ninep_get(s, 4), bytes = (uint32_t)ninep_get(s, 4), n;
	uint64_t device = ninep_get(s, 8), inode = ninep_get(s, 8);
	uint32_t locks = NINEP_LOCKS;
	unsigned tries = LOCK_TRIES;
	const char *why = NULL;
	struct stat st;
	bool same;

	n = (uint32_t)ninep_get(s, 4);
	if (s->short_of || form != STATE_FORM)
		return "is not one of this version of vmp";
	if (bytes < NINEP_LEAST_MESSAGE || bytes > NINEP_MESSAGE_BYTES || n > NINEP_FIDS)
		return "is longer than can be";
	if (fstat(s->folder, &st))
		return "has no folder any more";
	same = st.st_dev == device && st.st_ino == inode;
	s->message_bytes = bytes;
	for (; n && !why; n--)
		why = load_fid(s, same, &locks, &tries);
	return why ? why : s->in != s->in_end ? "has more bytes than files" : NULL;
}

int ninep_load(struct ninep *s, const void *state, size_t bytes, char *why, size_t why_bytes)
{
	const char *reason;

	ninep_drop_all(s);
	s->in = state;
	s->in_end = s->in + bytes;
	s->short_of = s->lost = false;
	reason = load(s);
	if (!reason)
		return 0;
	ninep_drop_all(s);
	snprintf(why, why_bytes, "its state %s", reason);
	return -EINVAL;
}
