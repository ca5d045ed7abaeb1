/* kept.h - the last checkpoint of a machine, in memory: what the machine goes back to when a host
 * is lost.  Its pages and disk blocks are here, or in parts on the hosts (parts.h).
 *
 * Rules of use: kept_begin(), kept_add() for each record in the order of arrival, then
 * kept_commit() or kept_abandon().  Until the commit the earlier checkpoint stays as it is, and the
 * new records are stored apart.  So whatever is lost while a checkpoint arrives, there is a
 * complete one. kept_next() returns it as records, as snapfile_read() does; either all of it, or
 * only what has changed since kept_copied(), for a copy elsewhere.  What was put elsewhere is not
 * among them.
 */
#ifndef VMM_CLI_SNAPSHOT_KEPT_H
#define VMM_CLI_SNAPSHOT_KEPT_H

#include "vmm/cli/parts/part.h"
#include "vmm/cli/snapshot/saved.h"

struct kept;

struct kept *kept_new(void); /* NULL without memory */
/* Set where the pages and blocks go, instead of into this process's memory. */
void kept_put_elsewhere(struct kept *k,
			void (*put)(void *context, const struct snapfile_record *record,
				    const void *data),
			void *context);
void kept_free(struct kept *k); /* may be NULL */

/* `changes`: the records are changes to the kept checkpoint; otherwise they replace it. */
void kept_begin(struct kept *k, bool changes);
/* These return 0; or -1 with a reason that follows "the checkpoint": the record cannot belong to a
 * machine, or there is no memory. */
int kept_add(struct kept *k, const struct snapfile_record *record, const void *data,
	     struct problem *p);
int kept_commit(struct kept *k, struct problem *p);
void kept_abandon(struct kept *k);

/* Returns the machine of the kept checkpoint, or NULL if there is none yet. */
const struct saved_machine *kept_machine(const struct kept *k);
/* Returns the bytes that were added since kept_begin(). */
size_t kept_bytes(const struct kept *k);

/* A cursor begins as zeroes.  `changes`: it gives what a copy takes after kept_begin(copy, true),
 * where a record without data is a page that is zero now. */
struct kept_cursor { size_t at; struct part_cursor part; };
/* Gives the next record and its data (room for MAX_MSG_PAYLOAD); returns false at the end.  No
 * checkpoint may be committed between two calls. */
bool kept_next(const struct kept *k, struct kept_cursor *cursor, struct snapfile_record *record,
	       void *data);
/* Notes that a copy elsewhere equals this checkpoint, or that there is no copy any more. */
void kept_copied(struct kept *k, bool copied);
/* Returns a cursor for what the copy lacks: everything, if there is no copy, or if a whole
 * checkpoint has arrived since. */
struct kept_cursor kept_changes(const struct kept *k);

#endif
