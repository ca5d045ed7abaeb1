/* savefile.h - a machine on its way into a file (snapfile.h), record by record, checked to be one (saved.h): for `vmp snapshot save`,
 * and for the file of a checkpoint.
 *
 * Rules of use: savefile_begin(), savefile_add() for each record in the order in which it comes, then savefile_commit() or
 * savefile_abandon().  Each gives 0, or -1 with the reason.  The file that was there before stands until commit has given 0.
 */
#ifndef VMM_CLI_SNAPSHOT_SAVEFILE_H
#define VMM_CLI_SNAPSHOT_SAVEFILE_H

#include "vmm/cli/snapshot/saved.h"

struct savefile {
	struct snapfile_writer *file; /* NULL: none is being written */
	struct saved_machine machine; /* what has been added; it stays after the commit */
};

int savefile_begin(struct savefile *s, const char *path, struct problem *p);
int savefile_add(struct savefile *s, const struct snapfile_record *record, const void *data, struct problem *p);
int savefile_commit(struct savefile *s, struct problem *p);
void savefile_abandon(struct savefile *s); /* also after the commit, and twice */

#endif
