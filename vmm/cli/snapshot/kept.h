/* kept.h - the last checkpoint of a machine, in memory: what it goes back to when a host is lost.
 *
 * Rules of use: kept_begin(), kept_add() for each record in the order in which it comes, then kept_commit() or kept_abandon().
 * Until commit the checkpoint before stands untouched: what comes is only put aside.  So whatever is lost while a checkpoint is on
 * its way, there is a whole one.
 * kept_next() gives it as records, as snapfile_read() does, or only what a copy elsewhere lacks: what has come since kept_copied().
 */
#ifndef VMM_CLI_SNAPSHOT_KEPT_H
#define VMM_CLI_SNAPSHOT_KEPT_H

#include "vmm/cli/snapshot/saved.h"

struct kept;

struct kept *kept_new(void); /* NULL without memory */
void kept_free(struct kept *k); /* may be NULL */

/* `changes`: to the checkpoint that stands; else it replaces it. */
void kept_begin(struct kept *k, bool changes);
/* 0, or -1 with a reason that follows "the checkpoint": what cannot be a machine's, or no memory. */
int kept_add(struct kept *k, const struct snapfile_record *record, const void *data, struct problem *p);
int kept_commit(struct kept *k, struct problem *p);
void kept_abandon(struct kept *k);

/* NULL: there is none yet. */
const struct saved_machine *kept_machine(const struct kept *k);
/* Of what was put aside last. */
size_t kept_bytes(const struct kept *k);

/* A cursor begins as zeroes; `changes`: what kept_begin(copy, true) lets a copy take, a page that is zero now without data. */
struct kept_cursor { size_t at; uint64_t block; gfn_t gfn; bool changes; };
/* True with a record and its data (room for MAX_MSG_PAYLOAD). No checkpoint may be committed between two calls. */
bool kept_next(const struct kept *k, struct kept_cursor *cursor, struct snapfile_record *record, void *data);
/* A copy elsewhere is what stands here now; or there is none any more. */
void kept_copied(struct kept *k, bool copied);
/* For what the copy lacks; of all, where there is none, or a whole checkpoint has come since. */
struct kept_cursor kept_changes(const struct kept *k);

#endif
