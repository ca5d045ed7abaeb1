/* snapfile.c - see snapfile.h.  It uses zlib's fastest level: a machine's memory is large, and its
 * owner waits. */
#include "vmm/cli/snapshot/snapfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "base/faultpoint.h"
#include "base/wire.h"

enum { CHUNK = 64 << 10, PATH_BYTES = 4096, LEVEL = 1, NUMBERS = 1000000 };
#define TEMPORARY_NAME "%s.vmp-%06u"

struct head { char magic[8]; uint32_t version, crc; };
struct tail { char magic[8]; uint64_t records, raw_bytes; uint32_t raw_crc, crc; };
_Static_assert(sizeof(struct head) == 16 && sizeof(struct tail) == 32, "layout of the file");
static const char head_magic[8] = "vmpsnap\n", tail_magic[8] = "vmpsend\n";

static uint32_t checksum(const void *bytes, size_t n)
{
	return crc32(0, bytes, n);
}

/* ---- writing ---- */

struct snapfile_writer {
	/* temporary: "" while the file has no name */
	char path[PATH_BYTES], temporary[PATH_BYTES + 16];
	int fd;
	z_stream z;
	struct tail tail;
	uint64_t file_bytes;
	uint8_t out[CHUNK];
};

static int put(struct snapfile_writer *w, const void *bytes, size_t n, struct problem *p)
{
	const char *at = bytes;

	while (n) {
		size_t most = fault_on(FAULT_FILE_SHORT);
		ssize_t done = write(w->fd, at, most && n > most ? most : n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return problem(p, "cannot write %s: %s", w->path,
				       strerror(errno ? errno : ENOSPC));
		at += done;
		n -= done;
		w->file_bytes += done;
	}
	return 0;
}

/* the error of FAULT_SNAPSHOT_FULL */
static int no_room(const struct snapfile_writer *w, struct problem *p)
{
	return problem(p, "cannot write %s: %s", w->path, strerror(ENOSPC));
}

static int compress_some(struct snapfile_writer *w, const void *bytes, size_t n, int flush,
			 struct problem *p)
{
	int result;

	w->z.next_in = (void *)bytes;
	w->z.avail_in = n;
	do {
		result = deflate(&w->z, flush);
		if (result == Z_STREAM_ERROR)
			return problem(p, "cannot compress %s", w->path);
		if (!w->z.avail_out || result == Z_STREAM_END) {
			if (put(w, w->out, sizeof w->out - w->z.avail_out, p))
				return -1;
			w->z.next_out = w->out;
			w->z.avail_out = sizeof w->out;
		}
	} while (w->z.avail_in || (flush == Z_FINISH && result != Z_STREAM_END));
	return 0;
}

/* A saved machine holds all of the guest's memory, its passwords too.  To share it, the owner uses
 * chmod. */
enum { SNAPFILE_MODE = 0600 };

/* Finds a free temporary name for the file, and makes the file or the link with make().  Returns 0
 * or -errno. */
static int name_for_a_while(struct snapfile_writer *w, int (*make)(struct snapfile_writer *w))
{
	int result = -EEXIST;

	for (unsigned i = 0; i < NUMBERS && result == -EEXIST; i++) {
		snprintf(w->temporary, sizeof w->temporary, TEMPORARY_NAME, w->path,
			 ((unsigned)getpid() + i) % NUMBERS);
		result = make(w);
	}
	if (result)
		w->temporary[0] = 0;
	return result;
}

static int make_file(struct snapfile_writer *w)
{
	w->fd = open(w->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, SNAPFILE_MODE);
	return w->fd < 0 ? -errno : 0;
}

static int make_link(struct snapfile_writer *w)
{
	char self[64];

	snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Opens the file in its final folder, so that it can get its name in one step.  The lock says that
 * a process is writing it.  Returns 0 or -errno. */
static int open_nameless(struct snapfile_writer *w)
{
	char folder[PATH_BYTES];
	int error = 0;

	snprintf(folder, sizeof folder, "%s", w->path);
	w->fd = open(dirname(folder), O_TMPFILE | O_RDWR | O_CLOEXEC, SNAPFILE_MODE);
	if (w->fd < 0)
		error = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL
				? name_for_a_while(w, make_file)
				: -errno;
	if (!error)
		/* another writer may check whether this file was left behind */
		flock(w->fd, LOCK_EX);
	return error;
}

/* ---- files that killed writers have left ---- */

static bool begins_a_snapshot(int fd)
{
	struct head head;

	return pread(fd, &head, sizeof head, 0) == sizeof head &&
	       !memcmp(head.magic, head_magic, sizeof head.magic);
}

/* Returns whether a file was left behind: nobody writes it, and it still has this name.  Then it
 * keeps the name while it is locked here. */
static bool is_left(int folder, const char *name, int fd)
{
	struct stat file, named;

	return !flock(fd, LOCK_EX | LOCK_NB) && begins_a_snapshot(fd) && !fstat(fd, &file) &&
	       S_ISREG(file.st_mode) && !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

static void remove_if_left(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (is_left(folder, name, fd))
		unlinkat(folder, name, 0);
	close(fd);
}

static bool is_temporary(const char *name, const char *of)
{
	char expected[NAME_MAX + 16];
	size_t n = strlen(name);

	unsigned number = n < 6 ? 0 : (unsigned)strtoul(name + n - 6, NULL, 10);

	if (n < 6 || snprintf(expected, sizeof expected, TEMPORARY_NAME, of, number) >=
			     (int)sizeof expected)
		return false;
	return !strcmp(name, expected);
}

static void remove_what_is_left(const char *path)
{
	char folder[PATH_BYTES], file[PATH_BYTES];
	struct dirent *entry;
	const char *name;
	DIR *dir;

	snprintf(folder, sizeof folder, "%s", path);
	snprintf(file, sizeof file, "%s", path);
	name = basename(file);
	dir = opendir(dirname(folder));
	while (dir && (entry = readdir(dir)))
		if (is_temporary(entry->d_name, name))
			remove_if_left(dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

struct snapfile_writer *snapfile_create(const char *name, struct problem *p)
{
	/* a symbolic link stays: its target is written */
	char *target = realpath(name, NULL);
	const char *path = target ? target : name;
	struct snapfile_writer *w = calloc(1, sizeof *w);
	struct head head = { .version = SNAPFILE_VERSION };
	struct stat st;
	int error;

	if (!w || deflateInit(&w->z, LEVEL) != Z_OK) {
		free(w);
		free(target);
		problem(p, "no memory");
		return NULL;
	}
	w->fd = -1;
	w->z.next_out = w->out;
	w->z.avail_out = sizeof w->out;
	snprintf(w->path, sizeof w->path, "%s", path);
	error = strlen(path) >= sizeof w->path ? -ENAMETOOLONG : open_nameless(w);
	if (error) {
		problem(p, "cannot write %s: %s", path, strerror(-error));
		goto fail;
	}
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		problem(p, "cannot write %s: it is not a regular file", path);
		goto fail;
	}
	remove_what_is_left(path);
	memcpy(head.magic, head_magic, sizeof head.magic);
	head.crc = checksum(&head, offsetof(struct head, crc));
	if (!put(w, &head, sizeof head, p)) {
		free(target);
		return w;
	}
fail:
	free(target);
	snapfile_abandon(w);
	return NULL;
}

int snapfile_write(struct snapfile_writer *w, const struct snapfile_record *record,
		   const void *data, struct problem *p)
{
	if (record->kind == SNAPSHOT_PAGE)
		fault_die_at(FAULT_FILE_DIES, 1);
	if (fault_on(FAULT_SNAPSHOT_FULL) == 3 && record->kind == SNAPSHOT_PAGE)
		return no_room(w, p);
	w->tail.records++;
	w->tail.raw_bytes += sizeof *record + record->bytes;
	w->tail.raw_crc = crc32(crc32(w->tail.raw_crc, (const void *)record, sizeof *record), data,
				record->bytes);
	if (compress_some(w, record, sizeof *record, Z_NO_FLUSH, p))
		return -1;
	return compress_some(w, data, record->bytes, Z_NO_FLUSH, p);
}

uint64_t snapfile_raw_bytes(const struct snapfile_writer *w) { return w->tail.raw_bytes; }
uint64_t snapfile_file_bytes(const struct snapfile_writer *w) { return w->file_bytes; }

/* Gives the file its name.  A nameless file first gets a temporary name, since link() does not
 * replace a file. */
static int give_name(struct snapfile_writer *w, struct problem *p)
{
	int error = w->temporary[0] ? 0 : name_for_a_while(w, make_link);

	if (error)
		return problem(p, "cannot give %s its name: %s", w->path, strerror(-error));
	fault_die_at(FAULT_FILE_DIES, 3);
	if (rename(w->temporary, w->path))
		return problem(p, "cannot give %s its name: %s", w->path, strerror(errno));
	w->temporary[0] = 0;
	return 0;
}

static void sync_folder(const struct snapfile_writer *w)
{
	char folder[PATH_BYTES];
	int fd;

	snprintf(folder, sizeof folder, "%s", w->path);
	fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int snapfile_commit(struct snapfile_writer *w, struct problem *p)
{
	int result = compress_some(w, NULL, 0, Z_FINISH, p);

	memcpy(w->tail.magic, tail_magic, sizeof w->tail.magic);
	w->tail.crc = checksum(&w->tail, offsetof(struct tail, crc));
	if (!result)
		result = put(w, &w->tail, sizeof w->tail, p);
	if (!result && fault_on(FAULT_SNAPSHOT_FULL) == 4)
		result = no_room(w, p);
	if (!result && fsync(w->fd))
		result = problem(p, "cannot write %s: %s", w->path, strerror(errno));
	if (!result)
		fault_die_at(FAULT_FILE_DIES, 2);
	if (!result)
		result = give_name(w, p);
	if (!result)
		fault_die_at(FAULT_FILE_DIES, 4);
	if (!result)
		sync_folder(w);
	snapfile_abandon(w);
	return result;
}

void snapfile_abandon(struct snapfile_writer *w)
{
	if (!w)
		return;
	if (w->temporary[0])
		unlink(w->temporary);
	if (w->fd >= 0)
		close(w->fd);
	deflateEnd(&w->z);
	free(w);
}

/* ---- reading ---- */

struct snapfile_reader {
	char path[PATH_BYTES];
	int fd;
	z_stream z;
	bool ended; /* the compressed stream has ended */
	struct tail seen;
	uint8_t in[CHUNK];
};

static int cut(struct snapfile_reader *r, struct problem *p)
{
	return problem(p, "%s is cut short", r->path);
}

static int damaged(struct snapfile_reader *r, struct problem *p)
{
	return problem(p, "%s is damaged", r->path);
}

/* Returns how many bytes it read; 0 at the end of the file; -1 with the problem. */
static int refill(struct snapfile_reader *r, struct problem *p)
{
	ssize_t n;

	do
		n = read(r->fd, r->in, sizeof r->in);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return problem(p, "cannot read %s: %s", r->path, strerror(errno));
	r->z.next_in = r->in;
	r->z.avail_in = n;
	return n;
}

/* Decompresses n bytes. *got is less than n if the compressed stream has ended. */
static int inflate_some(struct snapfile_reader *r, void *to, size_t n, size_t *got,
			struct problem *p)
{
	r->z.next_out = to;
	r->z.avail_out = n;
	while (r->z.avail_out && !r->ended) {
		int result, filled = r->z.avail_in ? 1 : refill(r, p);

		if (filled <= 0)
			return filled < 0 ? -1 : cut(r, p);
		result = inflate(&r->z, Z_NO_FLUSH);
		if (result == Z_STREAM_END)
			r->ended = true;
		else if (result != Z_OK)
			return damaged(r, p);
	}
	*got = n - r->z.avail_out;
	return 0;
}

/* Checks that the tail, and nothing else, follows the stream. */
static int check_tail(struct snapfile_reader *r, struct problem *p)
{
	struct tail tail;
	size_t have = 0;
	int n;

	while (have < sizeof tail) {
		size_t part = sizeof tail - have;

		n = r->z.avail_in ? 1 : refill(r, p);
		if (n <= 0)
			return n < 0 ? -1 : cut(r, p);
		if (part > r->z.avail_in)
			part = r->z.avail_in;
		memcpy((char *)&tail + have, r->z.next_in, part);
		r->z.next_in += part;
		r->z.avail_in -= part;
		have += part;
	}
	if (memcmp(tail.magic, tail_magic, sizeof tail.magic) ||
	    tail.crc != checksum(&tail, offsetof(struct tail, crc)) ||
	    tail.records != r->seen.records || tail.raw_bytes != r->seen.raw_bytes ||
	    tail.raw_crc != r->seen.raw_crc)
		return damaged(r, p);
	if (!r->z.avail_in && (n = refill(r, p)) <= 0)
		return n;
	return problem(p, "%s is damaged: something stands behind its end", r->path);
}

int snapfile_read(struct snapfile_reader *r, struct snapfile_record *record, void *data,
		  struct problem *p)
{
	size_t got;

	if (inflate_some(r, record, sizeof *record, &got, p))
		return -1;
	if (!got)
		return check_tail(r, p);
	if (got < sizeof *record || record->bytes > MAX_MSG_PAYLOAD)
		return damaged(r, p);
	if (inflate_some(r, data, record->bytes, &got, p))
		return -1;
	if (got < record->bytes)
		return damaged(r, p);
	r->seen.records++;
	r->seen.raw_bytes += sizeof *record + record->bytes;
	r->seen.raw_crc = crc32(crc32(r->seen.raw_crc, (const void *)record, sizeof *record), data,
				record->bytes);
	return 1;
}

static int check_head(struct snapfile_reader *r, struct problem *p)
{
	struct head head;
	ssize_t n = read(r->fd, &head, sizeof head);

	if (n < 0)
		return problem(p, "cannot read %s: %s", r->path, strerror(errno));
	if (n < (ssize_t)sizeof head.magic || memcmp(head.magic, head_magic, sizeof head.magic))
		return problem(p, "%s is not a snapshot of vmp", r->path);
	if (n < (ssize_t)sizeof head)
		return cut(r, p);
	if (head.crc != checksum(&head, offsetof(struct head, crc)))
		return damaged(r, p);
	if (head.version != SNAPFILE_VERSION)
		return problem(p, "%s is of another version of vmp (format %u; this one reads %u)",
			       r->path, head.version, SNAPFILE_VERSION);
	return 0;
}

struct snapfile_reader *snapfile_open(const char *path, struct problem *p)
{
	struct snapfile_reader *r = calloc(1, sizeof *r);
	struct stat st;

	if (!r || inflateInit(&r->z) != Z_OK) {
		free(r);
		problem(p, "no memory");
		return NULL;
	}
	snprintf(r->path, sizeof r->path, "%s", path);
	/* a pipe that nobody writes to would block */
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0 || fstat(r->fd, &st))
		problem(p, "cannot read %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		problem(p, "%s is not a snapshot of vmp", path);
	else if (!check_head(r, p))
		return r;
	snapfile_close(r);
	return NULL;
}

void snapfile_close(struct snapfile_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	inflateEnd(&r->z);
	free(r);
}
