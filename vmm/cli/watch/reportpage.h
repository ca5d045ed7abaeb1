/* reportpage.h - a recording as a page of HTML that needs nothing else, and files for it. */
#ifndef VMM_CLI_WATCH_REPORTPAGE_H
#define VMM_CLI_WATCH_REPORTPAGE_H

#include <stddef.h>
#include "vmm/cli/watch/recording.h"
#include "vmm/shared/problem.h"

enum { RECORD_MOST_BYTES = 16 << 20 };

/* Checks before a run whether `path` can be written, and leaves it as it is.  Returns 0, or -1 with
 * the problem. */
int reportpage_check(const char *path, struct problem *p);

/* Writes the page of a recording to `path`, or, if the name ends in ".json", the recording alone.
 * The old file stays until the new one is whole; what is not a regular file, as a pipe, is written
 * as it is.  Returns 0, or -1 with the problem. */
int reportpage_write(const char *path, const struct recording *r,
		     const struct recording_about *about, struct problem *p);
/* Makes the page of a recording that was written to a file ending in ".json". */
int reportpage_convert(const char *path, const char *record_path, struct problem *p);

#endif
