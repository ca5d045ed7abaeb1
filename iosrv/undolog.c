/* undolog.c - see undolog.h.
 *
 * Behind its head the file is a sequence of records, each with its data.  A record is written
 * before the image is, so a record that is cut short at the file's end belongs to a write that has
 * not happened.  While the machine runs, nothing waits for the host's disk: after a power failure
 * the machine's owner is gone too, and nobody goes back.  undolog_prepare() alone waits, since from
 * then on the image depends on the log.
 */
#include "iosrv/undolog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "base/undofile.h"
#include "iosrv/diskimage.h"
#include "iosrv/diskio.h"

enum { BLOCK = IMAGE_BLOCK_BYTES, RUN_BLOCKS = 16, RECORD_MAGIC = 0x6f646e75 };
enum record_kind { RECORD_CUT, RECORD_ZEROS, RECORD_DATA, RECORD_KINDS };

struct record {
	uint32_t magic, kind;
	uint64_t value;		/* a cut's id, or the first block's number */
	uint32_t blocks, bytes; /* `bytes` of data follow */
};

struct undolog {
	int fd, image;
	char path[UNDO_PATH];
	struct undo_head head;
	uint64_t end;	  /* where the next record goes */
	uint64_t last;	  /* offset of the last cut; 0: none, and nothing is kept */
	uint64_t target;  /* undolog_seek() */
	uint8_t *kept;	  /* one bit per block: kept since the last cut */
	bool warned;	  /* of a full disk, and no interval has passed without since */
};

static uint64_t blocks_of(const struct undolog *log)
{
	return (log->head.image_bytes + BLOCK - 1) / BLOCK;
}

static size_t map_bytes(const struct undolog *log) { return blocks_of(log) / 8 + 1; }

/* Return the bytes of some blocks: the last one of the image may be short. */
static size_t bytes_of(const struct undolog *log, uint64_t first, unsigned blocks)
{
	uint64_t left = log->head.image_bytes - first * BLOCK;

	return left < (uint64_t)blocks * BLOCK ? left : (size_t)blocks * BLOCK;
}

static bool is_set(const uint8_t *map, uint64_t block) { return map[block / 8] >> block % 8 & 1; }
static void set(uint8_t *map, uint64_t block) { map[block / 8] |= 1 << block % 8; }

static int write_head(struct undolog *log)
{
	uint8_t bytes[UNDO_HEAD_BYTES] = { 0 };

	memcpy(bytes, &log->head, sizeof log->head);
	return diskio_all(log->fd, true, 0, bytes, sizeof bytes);
}

static int append(struct undolog *log, struct record *r, size_t bytes)
{
	int error = diskio_all(log->fd, true, log->end, r, bytes);

	if (!error)
		log->end += bytes;
	return error;
}

/* Forget all cuts, and free the file's space; `error` is the reason, or 0. */
static int empty(struct undolog *log, int error)
{
	log->head.state = UNDO_RECORDS;
	log->head.error = (uint32_t)-error;
	log->head.first = log->last = 0;
	log->end = UNDO_HEAD_BYTES;
	memset(log->kept, 0, map_bytes(log));
	if (ftruncate(log->fd, UNDO_HEAD_BYTES))
		return -errno;
	return write_head(log);
}

/* --- reading --- */

/* Read the record at `at`.  False: there is none, or it is cut short. */
static bool read_record(const struct undolog *log, uint64_t at, uint64_t end, struct record *r)
{
	if (at > end || end - at < sizeof *r ||
	    diskio_all(log->fd, false, at, r, sizeof *r) || r->magic != RECORD_MAGIC ||
	    r->kind >= RECORD_KINDS || end - at - sizeof *r < r->bytes)
		return false;
	if (r->kind == RECORD_CUT)
		return !r->bytes && r->value;
	if (!r->blocks || r->blocks > RUN_BLOCKS || r->value >= blocks_of(log) ||
	    r->blocks > blocks_of(log) - r->value)
		return false;
	return r->bytes == (r->kind == RECORD_DATA ? bytes_of(log, r->value, r->blocks) : 0);
}

/* Find the last cut and the end of a log that another process has written. */
static void scan(struct undolog *log, uint64_t file_bytes)
{
	struct record r;

	if (log->head.first < UNDO_HEAD_BYTES)
		return;
	for (uint64_t at = log->head.first; read_record(log, at, file_bytes, &r);
	     at += sizeof r + r.bytes) {
		if (r.kind == RECORD_CUT)
			log->last = at;
		log->end = at + sizeof r + r.bytes;
	}
	if (!log->last)
		log->head.first = 0;
}

/* Write the blocks of a record that have not been written yet. */
static int put_back(struct undolog *log, const struct record *r, uint64_t at, uint8_t *done)
{
	uint8_t data[RUN_BLOCKS * BLOCK] = { 0 };
	int error = 0;

	if (r->bytes)
		error = diskio_all(log->fd, false, at + sizeof *r, data, r->bytes);
	for (unsigned i = 0; i < r->blocks && !error; i++) {
		uint64_t block = r->value + i;

		if (is_set(done, block))
			continue;
		set(done, block);
		error = diskio_all(log->image, true, block * BLOCK, data + (size_t)i * BLOCK,
				   bytes_of(log, block, 1));
	}
	return error;
}

int undolog_seek(struct undolog *log, uint64_t id)
{
	struct record r;

	log->target = 0;
	if (!id)
		return empty(log, 0);
	for (uint64_t at = log->head.first; at && read_record(log, at, log->end, &r);
	     at += sizeof r + r.bytes)
		if (r.kind == RECORD_CUT && r.value == id) {
			log->target = at;
			return 0;
		}
	return log->head.error ? -(int)log->head.error : -ENOENT;
}

/* (TRICKS: undo-not-synced) */
int undolog_prepare(struct undolog *log)
{
	int error;

	if (!log->target || log->target + sizeof(struct record) == log->end)
		return 0; /* nothing was written since */
	if (fdatasync(log->fd))
		return -errno;
	log->head.state = UNDO_GOES_BACK;
	log->head.target = log->target;
	log->head.end = log->end;
	error = write_head(log);
	return error ? error : fdatasync(log->fd) ? -errno : 0;
}

int undolog_go_back(struct undolog *log)
{
	uint8_t *done = calloc(1, map_bytes(log));
	uint64_t at = log->target;
	struct record r;
	int error = done ? 0 : -ENOMEM;

	if (!log->target) {
		free(done);
		return 0;
	}
	for (; !error && read_record(log, at, log->end, &r); at += sizeof r + r.bytes)
		if (r.kind != RECORD_CUT)
			error = put_back(log, &r, at, done);
	free(done);
	if (!error && at != log->end)
		error = -EIO;
	if (!error && fdatasync(log->image))
		error = -errno;
	if (error)
		return error;
	memset(log->kept, 0, map_bytes(log));
	log->head.state = UNDO_RECORDS;
	log->head.first = log->last = log->target;
	error = write_head(log);
	log->end = log->target + sizeof r;
	return error ? error : ftruncate(log->fd, (off_t)log->end) ? -errno : 0;
}

/* --- writing --- */

/* Keep nothing more, as the log cannot be written. */
static void give_up(struct undolog *log, int error)
{
	if (!log->warned)
		log_warn("%s: %s: what the disk held is not kept, so if a host is lost before the "
			 "next checkpoint, the machine ends; make room",
			 log->path, strerror(-error));
	log->warned = true;
	empty(log, error);
}

/* Append one record for blocks that have been read; all of them are zero, or have data. */
static int keep_run(struct undolog *log, uint64_t first, unsigned blocks, bool zero,
		    const uint8_t *data)
{
	static struct { struct record r; uint8_t data[RUN_BLOCKS * BLOCK]; } out;
	size_t bytes = zero ? 0 : bytes_of(log, first, blocks);
	int error;

	out.r = (struct record){ .magic = RECORD_MAGIC,
				 .kind = zero ? RECORD_ZEROS : RECORD_DATA,
				 .value = first,
				 .blocks = blocks,
				 .bytes = (uint32_t)bytes };
	memcpy(out.data, data, bytes);
	error = append(log, &out.r, sizeof out.r + bytes);
	for (unsigned i = 0; i < blocks && !error; i++)
		set(log->kept, first + i);
	return error;
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
	return !bytes || (!data[0] && !memcmp(data, data + 1, bytes - 1));
}

/* Keep RUN_BLOCKS blocks at most, in runs of the same kind. */
static int keep_some(struct undolog *log, uint64_t first, unsigned blocks)
{
	uint8_t data[RUN_BLOCKS * BLOCK];
	int error = diskio_all(log->image, false, first * BLOCK, data,
			       bytes_of(log, first, blocks));

	for (unsigned i = 0; i < blocks && !error;) {
		uint8_t *from = data + (size_t)i * BLOCK;
		bool zero = is_zero(from, bytes_of(log, first + i, 1));
		unsigned n = 1;

		if (is_set(log->kept, first + i)) {
			i++;
			continue;
		}
		while (i + n < blocks && !is_set(log->kept, first + i + n) &&
		       is_zero(from + (size_t)n * BLOCK, bytes_of(log, first + i + n, 1)) == zero)
			n++;
		error = keep_run(log, first + i, n, zero, from);
		i += n;
	}
	return error;
}

void undolog_keep(struct undolog *log, uint64_t first, uint64_t last)
{
	int error = 0;

	while (log->last && first <= last && !error) {
		uint64_t blocks = last - first + 1;

		if (is_set(log->kept, first)) {
			first++;
			continue;
		}
		if (blocks > RUN_BLOCKS)
			blocks = RUN_BLOCKS;
		error = keep_some(log, first, (unsigned)blocks);
		first += blocks;
	}
	if (error)
		give_up(log, error);
}

static void free_space(struct undolog *log)
{
	if (log->head.first > UNDO_HEAD_BYTES)
		fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, UNDO_HEAD_BYTES,
			  (off_t)(log->head.first - UNDO_HEAD_BYTES));
}

static int append_cut(struct undolog *log, uint64_t id)
{
	struct record r = { .magic = RECORD_MAGIC, .kind = RECORD_CUT, .value = id };

	return append(log, &r, sizeof r);
}

/* Make a cut the newest one. */
static int begin_interval(struct undolog *log, bool changes, uint64_t id)
{
	int error = append_cut(log, id);

	if (error)
		return error;
	if (changes && log->last) {
		log->head.first = log->last;
		log->warned = false;
	}
	log->last = log->end - sizeof(struct record);
	if (!log->head.first)
		log->head.first = log->last;
	log->head.error = 0;
	memset(log->kept, 0, map_bytes(log));
	return write_head(log);
}

uint64_t undolog_cut(struct undolog *log, bool changes)
{
	uint64_t id = 0;
	int error;

	while (!id)
		if (getrandom(&id, sizeof id, 0) != sizeof id)
			die("no random numbers: %s", strerror(errno));
	error = begin_interval(log, changes, id);
	if (error) { /* what was kept is given up for the new checkpoint */
		give_up(log, error);
		error = begin_interval(log, changes, id);
	}
	if (error)
		give_up(log, error);
	else
		free_space(log);
	return id;
}

/* --- opening --- */

static int line(char *why, size_t why_bytes, const char *path, const char *what)
{
	snprintf(why, why_bytes, "%.4000s" UNDO_SUFFIX ": %s", path, what);
	return -EINVAL;
}

static void read_boot(char boot[40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, boot, 39);

	boot[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/* Make a log without records. */
static struct undolog *new_log(int fd, int image, uint64_t bytes)
{
	struct undolog *log = calloc(1, sizeof *log);

	if (!log)
		return NULL;
	*log = (struct undolog){ .fd = fd, .image = image, .end = UNDO_HEAD_BYTES };
	memcpy(log->head.magic, undo_magic, sizeof undo_magic);
	log->head.image_bytes = bytes;
	read_boot(log->head.boot);
	log->kept = calloc(1, map_bytes(log));
	if (log->kept)
		return log;
	free(log);
	return NULL;
}

void undolog_close(struct undolog *log)
{
	if (!log)
		return;
	close(log->fd);
	free(log->kept);
	free(log);
}

/* Take the cuts of a log that an I/O server of the same machine has left. */
static void inherit(struct undolog *log)
{
	struct undo_head head;
	off_t bytes = lseek(log->fd, 0, SEEK_END);

	if (undofile_head(log->fd, &head) || head.image_bytes != log->head.image_bytes ||
	    strcmp(head.boot, log->head.boot) || !*head.boot || bytes < 0)
		return;
	log->head.first = head.first;
	log->head.error = head.error;
	scan(log, (uint64_t)bytes);
}

/* The log's file system must be able to free the space of old records. */
static int check_holes(struct undolog *log)
{
	return fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)log->end, 1)
		       ? -errno
		       : 0;
}

struct undolog *undolog_open(const char *path, int image, uint64_t bytes, bool restored, char *why,
			     size_t why_bytes)
{
	int fd = undofile_open(path, true), error = 0;
	struct undolog *log;

	if (fd < 0) {
		line(why, why_bytes, path, fd == -EPERM ? "is not a file of this user's; remove it"
							: strerror(-fd));
		return NULL;
	}
	log = new_log(fd, image, bytes);
	if (!log) {
		close(fd);
		line(why, why_bytes, path, "no memory");
		return NULL;
	}
	undofile_path(path, log->path);
	if (restored)
		inherit(log);
	if (!log->last)
		error = empty(log, -(int)log->head.error);
	if (!error)
		error = check_holes(log);
	if (!error)
		return log;
	line(why, why_bytes, path, strerror(-error));
	undolog_close(log);
	return NULL;
}

int undolog_settle(const char *path, int image, bool writable, char *why, size_t why_bytes)
{
	int fd = undofile_open(path, false), error = 0;
	struct undo_head head;
	struct undolog *log;
	struct stat st;

	if (fd < 0)
		return 0; /* undolog_open() complains, if it is wanted */
	if (undofile_head(fd, &head) || head.state != UNDO_GOES_BACK) {
		close(fd);
		return 0;
	}
	if (!writable) {
		close(fd);
		return line(why, why_bytes, path, "a machine was killed while the image went back "
			    "to a checkpoint; start one that writes to the image first");
	}
	if (fstat(image, &st) || (uint64_t)st.st_size != head.image_bytes ||
	    head.target < UNDO_HEAD_BYTES || head.target > head.end) {
		close(fd);
		return line(why, why_bytes, path, "is not of this image, or damaged; it has what "
			    "the image held before, so keep both");
	}
	log = new_log(fd, image, head.image_bytes);
	if (!log) {
		close(fd);
		return line(why, why_bytes, path, "no memory");
	}
	log->head = head;
	log->target = head.target;
	log->end = head.end;
	error = undolog_go_back(log);
	undolog_close(log);
	return error ? line(why, why_bytes, path, strerror(-error)) : 0;
}
