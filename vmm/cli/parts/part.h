/* part.h - pages and disk blocks of a machine's last checkpoint, in memory: all of them in the
 * owner (kept.h), or some of them in a holder (part_holder.c).
 *
 * Rules of use: part_begin(), part_add() for each record, then part_commit() or part_abandon().
 * Until the commit the earlier checkpoint stays as it is.  part_next() returns records, as
 * snapfile_read() does: either all, or what has changed since part_copied().
 */
#ifndef VMM_CLI_PARTS_PART_H
#define VMM_CLI_PARTS_PART_H

#include "base/wire.h"
#include "vmm/cli/snapshot/snapfile.h"

struct part;

struct part *part_new(void); /* NULL without memory */
void part_free(struct part *part); /* may be NULL */

/* Returns whether a record belongs to a part: it is a page or a block, has the length of one, and
 * lies within the largest guest. */
bool part_takes(const struct snapfile_record *record);

/* `changes`: the records are changes to what there is; otherwise they replace it. */
void part_begin(struct part *part, bool changes);
/* Takes a record for which part_takes().  One without data is a page that is zero.  Returns 0, or
 * -1 without memory. */
int part_add(struct part *part, const struct snapfile_record *record, const void *data);
void part_commit(struct part *part);
void part_abandon(struct part *part);
/* Returns the bytes of the records that were added since part_begin(). */
size_t part_bytes(const struct part *part);

/* A cursor begins as zeroes.  `changes`: it gives what has changed since part_copied(), where a
 * record without data is a page that is zero now. */
struct part_cursor { uint32_t disk; uint64_t block; gfn_t gfn; bool changes; };
/* Gives the next record and its data (room for a page); returns false at the end.  No checkpoint
 * may be committed between two calls. */
bool part_next(const struct part *part, struct part_cursor *cursor, struct snapfile_record *record,
	       void *data);
/* Forgets what has changed. */
void part_copied(struct part *part);

#endif
