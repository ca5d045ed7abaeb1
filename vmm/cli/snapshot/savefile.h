/* savefile.h - writes a machine into a file (snapfile.h) record by record, and checks that it is
 * one (saved.h): for `vmp snapshot save`, and for the file of a checkpoint.
 *
 * Rules of use: savefile_begin(), savefile_add() for each record in the order of arrival, then
 * savefile_commit() or savefile_abandon().  Each returns 0, or -1 with the reason.  The old file
 * stays until the commit has returned 0.
 */
#ifndef VMM_CLI_SNAPSHOT_SAVEFILE_H
#define VMM_CLI_SNAPSHOT_SAVEFILE_H

#include "vmm/cli/snapshot/saved.h"

struct savefile {
	struct snapfile_writer *file; /* NULL: no file is being written */
	struct saved_machine machine; /* the records so far; it stays after the commit */
};

int savefile_begin(struct savefile *s, const char *path, struct problem *p);
int savefile_add(struct savefile *s, const struct snapfile_record *record, const void *data,
		 struct problem *p);
int savefile_commit(struct savefile *s, struct problem *p);
void savefile_abandon(struct savefile *s); /* also allowed after the commit, and twice */

#endif
