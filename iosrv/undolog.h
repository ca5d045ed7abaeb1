/* undolog.h - what a disk image held at the last checkpoints, so that a machine that goes back gets
 * its disk back too.
 *
 * The log is a file beside the image (base/undofile.h): a cut for each checkpoint, and behind it
 * the old content of each block that has been written since.  To go back to a cut, the oldest
 * content behind it is written to the image.  Cuts that no machine can go back to any more are
 * dropped, so the log holds at most the changes of two intervals.
 *
 * Rules of use: undolog_keep() before each write.  It does not fail: if there is no room, the log
 * is emptied with a warning, and the machine cannot go back until the next checkpoint.  Going back
 * is undolog_seek() for each image, then undolog_prepare() for each, then undolog_go_back() for
 * each.  One thread uses an image and its log.
 */
#ifndef IOSRV_UNDOLOG_H
#define IOSRV_UNDOLOG_H

#include "base/types.h"

struct undolog;

/* Complete the way back that another machine has begun with this image.  Returns 0 or -errno with
 * a line in `why`; `writable`: the image is open for writing and locked. */
int undolog_settle(const char *path, int image, bool writable, char *why, size_t why_bytes);
/* Open the log of an image; `restored`: it may hold the cut that the machine goes back to.  Returns
 * NULL with a line in `why`. */
struct undolog *undolog_open(const char *path, int image, uint64_t bytes, bool restored, char *why,
			     size_t why_bytes);
void undolog_close(struct undolog *log); /* may be NULL */

/* Keep what the blocks hold, as long as that is not kept since the last cut. */
void undolog_keep(struct undolog *log, uint64_t first_block, uint64_t last_block);
/* A checkpoint is taken.  `changes`: the one before is complete, so that no machine goes back to an
 * older one.  Returns the cut's id, never 0; if there is no room, the log does not have the cut. */
uint64_t undolog_cut(struct undolog *log, bool changes);

/* Choose the cut to go back to; 0: none, the image stays, and the log is emptied.  Returns 0;
 * -ENOENT: there is no such cut; -ENOSPC or another -errno: there is none, for this reason. */
int undolog_seek(struct undolog *log, uint64_t id);
/* From here on the image goes back to that cut, whatever is killed.  Returns 0 or -errno. */
int undolog_prepare(struct undolog *log);
int undolog_go_back(struct undolog *log);

#endif
