/* logs.h - `vmp logs`, as far as its parts are to be called. */
#ifndef VMM_CLI_QUERY_LOGS_H
#define VMM_CLI_QUERY_LOGS_H

#include <stdio.h>
#include "base/types.h"
#include "vmm/shared/problem.h"

enum { LOGS_LAST = 4096 };

/* A log that is printed as it grows; all but `fd` is zero at first.  The log may lose its beginning
 * (run_log.h): what was printed last tells where to go on. */
struct logs_reader {
	int fd;
	off_t at; /* what is before it was printed */
	char last[LOGS_LAST];
	size_t n_last;
	bool lost; /* at the last look the file did not have what was printed last */
};

/* Prints what is new.  If the file does not have what was printed last, the next call prints it
 * from its beginning; this one does if `ended`.  Returns 0, or -1 with the problem. */
int logs_print(struct logs_reader *reader, bool ended, FILE *out, struct problem *p);

#endif
