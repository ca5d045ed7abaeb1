/* ninep_open.c - requests that give the guest a file: version, attach, walk, clunk, open, create.
 */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_WALKED = 16 };

int ninep_on_version(struct ninep *s)
{
	uint32_t bytes = (uint32_t)ninep_get(s, 4);
	char version[16];
	bool known = !ninep_get_string(s, version, sizeof version) &&
		     !strcmp(version, "9P2000.L") && bytes >= NINEP_LEAST_MESSAGE;

	if (s->short_of)
		return -EPROTO;
	ninep_drop_all(s);
	s->message_bytes = bytes < NINEP_MESSAGE_BYTES && known ? bytes : NINEP_MESSAGE_BYTES;
	ninep_put(s, s->message_bytes, 4);
	ninep_put_string(s, known ? "9P2000.L" : "unknown");
	return 0;
}

int ninep_on_attach(struct ninep *s)
{
	uint32_t number = (uint32_t)ninep_get(s, 4);
	struct stat st;
	int place;

	if (s->short_of)
		return -EPROTO;
	place = fcntl(s->folder, F_DUPFD_CLOEXEC, 0);
	if (place < 0 || fstat(place, &st))
		return -errno;
	ninep_put_qid(s, &st);
	return ninep_add_fid(s, number, place);
}

/* Walk as far as possible.  The new fid is made only if all steps succeed, and only a failure of
 * the first step is an error. */
int ninep_on_walk(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	uint32_t to = (uint32_t)ninep_get(s, 4), n = (uint32_t)ninep_get(s, 2), done = 0;
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
	ninep_put(s, 0, 2);
	for (; done < n; done++) {
		error = ninep_get_name(s, name);
		next = error ? error : ninep_open_entry(place, name, O_PATH, 0);
		error = next < 0 ? next : 0;
		if (error || fstat(next, &st))
			break;
		close(place);
		place = next;
		ninep_put_qid(s, &st);
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
	return ninep_add_fid(s, to, place);
}

int ninep_on_clunk(struct ninep *s)
{
	struct fid **at = ninep_find(s, (uint32_t)ninep_get(s, 4));

	if (s->short_of || !*at)
		return -EBADF;
	ninep_drop_fid(s, at);
	return 0;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

int ninep_on_lopen(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	int flags = (int)ninep_get(s, 4) & OPEN_FLAGS & ~O_EXCL, error, fd;
	struct stat st;

	if (s->short_of || !f || f->file >= 0)
		return -EBADF;
	if (s->read_only && writes(flags))
		return -EROFS;
	error = ninep_check_kind(f->place, &st);
	if (error)
		return error;
	fd = ninep_open_again(s, f->place, flags);
	if (fd < 0)
		return fd;
	f->file = fd;
	ninep_put_qid(s, &st);
	ninep_put(s, 0, 4);
	return 0;
}

/* Make a file; the folder's fid becomes the new file's. */
int ninep_on_lcreate(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	char name[NAME_MAX + 1];
	int error = ninep_get_name(s, name), flags = (int)ninep_get(s, 4) & OPEN_FLAGS, fd, place;
	unsigned mode = (unsigned)ninep_get(s, 4) & NINEP_FILE_MODES;
	struct stat st;

	ninep_get(s, 4); /* the group */
	if (s->short_of || !f || f->file >= 0)
		return -EBADF;
	if (error || s->read_only)
		return error ? error : -EROFS;
	fd = ninep_open_entry(f->place, name, (flags & ~O_DIRECTORY) | O_CREAT | O_NONBLOCK, mode);
	if (fd < 0)
		return fd;
	error = ninep_check_kind(fd, &st);
	place = error ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (place < 0) {
		error = error ? error : -errno;
		close(fd);
		return error;
	}
	close(f->place);
	f->place = place;
	f->file = fd;
	ninep_put_qid(s, &st);
	ninep_put(s, 0, 4);
	return 0;
}
