/* ninep_private.h - the state of a 9P server, for the files of iosrv/ninep.c alone. */
#ifndef IOSRV_NINEP_PRIVATE_H
#define IOSRV_NINEP_PRIVATE_H

#include <fcntl.h>
#include <limits.h>
#include "iosrv/ninep.h"

struct stat;

enum { QID_DIR = 0x80, QID_SYMLINK = 2, QID_FILE = 0, QID_BYTES = 13 };
enum { NINEP_FILE_MODES = 01777 };

/* The kinds of locks, as in requests. */
enum range_kind { RANGE_READ, RANGE_WRITE, RANGE_NONE, RANGE_KINDS };
/* Bytes `first` to `last` of a file, at most INT64_MAX. */
struct lock_range { uint64_t first, last; enum range_kind kind; };

/* The flags of open(2) that a guest may use, and those that a file which is open keeps. */
enum { OPEN_STAYS = O_ACCMODE | O_APPEND | O_SYNC | O_DSYNC | O_DIRECTORY };
enum { OPEN_FLAGS = OPEN_STAYS | O_EXCL | O_TRUNC };

struct fid {
	struct fid *next; /* in its bucket */
	uint32_t number;
	/* identifies the file; opened with O_PATH, or by the file's creation; -1: lost */
	int place;
	int file;  /* open for reading or writing; -1: not */
	struct lock_range *lock; /* the ranges that are locked, none of which overlap */
	unsigned n_locks;
};

enum { BUCKETS = 1024 };
struct ninep {
	int folder, own;
	bool read_only;
	uint32_t message_bytes; /* as agreed with the guest */
	unsigned n_fids, n_locks;
	struct fid *bucket[BUCKETS];
	/* the request, and its reply */
	const uint8_t *in, *in_end;
	bool short_of; /* the request ended too early */
	bool lost;     /* the request names a file that is lost */
	uint8_t *out, *reply;
};

/* --- fields (ninep_fields.c) --- */

/* Read a number of the request.  If it ends too early, return 0 and set short_of. */
uint64_t ninep_get(struct ninep *s, unsigned bytes);
void ninep_put(struct ninep *s, uint64_t value, unsigned bytes);
/* Read a string of at most `room` - 1 bytes, without a NUL: 0 or -errno. */
int ninep_get_string(struct ninep *s, char *to, size_t room);
void ninep_put_string(struct ninep *s, const char *text);
/* Read the name of a folder's entry: 0 or -errno. */
int ninep_get_name(struct ninep *s, char name[NAME_MAX + 1]);
/* Return the free bytes of the reply. */
size_t ninep_room(const struct ninep *s);
/* Return a file's number for the guest: two file systems below the folder may use the same inode
 * number. */
uint64_t ninep_number_of(uint64_t device, uint64_t inode);
void ninep_put_qid(struct ninep *s, const struct stat *st);

/* --- files (ninep_files.c) --- */

/* Return where the fid of this number is, or would be. */
struct fid **ninep_find(struct ninep *s, uint32_t number);
/* Read a fid of the request; NULL: the guest has none of this number, or its file is lost. */
struct fid *ninep_get_fid(struct ninep *s);
/* Add a fid, which owns `place`, or (-1) whose file is lost; `place` is closed if that fails.
 * Returns 0 or -errno. */
int ninep_add_fid(struct ninep *s, uint32_t number, int place);
void ninep_drop_fid(struct ninep *s, struct fid **at);
void ninep_drop_all(struct ninep *s);
/* Open an entry of an open folder, or what a path below it names: a descriptor, or -errno. */
int ninep_open_entry(int folder, const char *name, int flags, unsigned mode);
/* Return the name in `own` of the descriptor's file, until the next call. */
const char *ninep_name_of(int fd);
/* Open for reading or writing what `place` identifies: a descriptor, or -errno. */
int ninep_open_again(const struct ninep *s, int place, int flags);
/* Refuse all but files and folders: devices and FIFOs are opened within the guest. */
int ninep_check_kind(int fd, struct stat *st);
/* Return 0 or -errno of a system call that has returned `of`. */
int ninep_result(int of);

/* --- locks (ninep_locks.c): the host's own, of the open file --- */

/* Set or remove a lock of an open file: 0; -EAGAIN: somebody else has one there; or -errno. */
int ninep_set_lock(struct ninep *s, struct fid *f, struct lock_range range);

/* --- requests: 0 with the reply's fields put, or -errno --- */

int ninep_on_version(struct ninep *s);
int ninep_on_attach(struct ninep *s);
int ninep_on_walk(struct ninep *s);
int ninep_on_clunk(struct ninep *s);
int ninep_on_lopen(struct ninep *s);
int ninep_on_lcreate(struct ninep *s);
int ninep_on_mkdir(struct ninep *s);
int ninep_on_symlink(struct ninep *s);
int ninep_on_mknod(struct ninep *s);
int ninep_on_link(struct ninep *s);
int ninep_on_renameat(struct ninep *s);
int ninep_on_unlinkat(struct ninep *s);
int ninep_on_readlink(struct ninep *s);
int ninep_on_getattr(struct ninep *s);
int ninep_on_setattr(struct ninep *s);
int ninep_on_statfs(struct ninep *s);
int ninep_on_read(struct ninep *s);
int ninep_on_write(struct ninep *s);
int ninep_on_readdir(struct ninep *s);
int ninep_on_fsync(struct ninep *s);
int ninep_on_lock(struct ninep *s);
int ninep_on_getlock(struct ninep *s);

#endif
