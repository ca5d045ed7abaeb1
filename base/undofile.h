/* undofile.h - the file beside a disk image that has what the image held at the last checkpoint:
 * its name, its head, and its removal.  iosrv/undolog.c writes and reads the rest.
 *
 * The file outlives the I/O server, since a machine that goes back to a checkpoint starts another
 * one.  It does not outlive the machine, unless all of the machine's processes were killed.  Such a
 * file is of no use: the image is as after a power failure, and the next machine with that image
 * removes the file.  The exception is UNDO_GOES_BACK: the image is partly that of the checkpoint.
 * The next machine with that image completes the way back before anything else.
 */
#ifndef BASE_UNDOFILE_H
#define BASE_UNDOFILE_H

#include "base/types.h"

#define UNDO_SUFFIX ".vmp-undo"
enum { UNDO_HEAD_BYTES = 4096, UNDO_PATH = 4096 + sizeof UNDO_SUFFIX };

enum undo_state { UNDO_RECORDS, UNDO_GOES_BACK };

/* The file begins with this, in UNDO_HEAD_BYTES. */
struct undo_head {
	char magic[8];
	char boot[40];	      /* this computer's boot: the page cache held all writes since */
	uint64_t image_bytes;
	uint64_t first; /* offset of the oldest cut that the image can go back to; 0: none */
	/* UNDO_GOES_BACK: to the cut at `target`, by the records up to `end` */
	uint64_t target, end;
	uint32_t state;	      /* enum undo_state */
	uint32_t error;	      /* errno: why there is no cut; 0: nothing failed */
};
extern const char undo_magic[8];

/* Return false if the path is too long. */
bool undofile_path(const char *image, char path[UNDO_PATH]);
/* Open an image's file if it is there and belongs to this user.  Returns a descriptor, or -errno;
 * -ENOENT: there is none; -EPERM: it is not this user's regular file. */
int undofile_open(const char *image, bool create);
/* Read the head.  Returns 0; -EINVAL: it is no such file; or -errno. */
int undofile_head(int fd, struct undo_head *head);
/* Remove an image's file, unless the image needs it.  The caller holds the image's lock. */
void undofile_remove(const char *image);
/* The same; does nothing if another process holds the lock. */
void undofile_remove_unlocked(const char *image);

#endif
