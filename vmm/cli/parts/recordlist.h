/* recordlist.h - records of a machine (snapfile.h) one after the other in memory.  A list begins as
 * zeroes. */
#ifndef VMM_CLI_PARTS_RECORDLIST_H
#define VMM_CLI_PARTS_RECORDLIST_H

#include <stddef.h>
#include "vmm/cli/snapshot/snapfile.h"

struct recordlist { uint8_t *bytes; size_t n, room; };

/* Returns 0, or -1 without memory. */
int recordlist_add(struct recordlist *list, const struct snapfile_record *record,
		   const void *data);
/* Returns the data of the record at `*at`, which begins as 0, and advances `*at`; NULL at the
 * end. */
const uint8_t *recordlist_next(const struct recordlist *list, size_t *at,
			       struct snapfile_record *record);
void recordlist_free(struct recordlist *list);

#endif
