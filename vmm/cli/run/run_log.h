/* run_log.h - limits the size of a log that is kept in memory. */
#ifndef VMM_CLI_RUN_RUN_LOG_H
#define VMM_CLI_RUN_RUN_LOG_H

#include <stddef.h>

/* Cuts a file that is longer than `most` bytes to its last lines, up to `kept` bytes.  Returns 0,
 * or -1 if that failed. */
int run_log_cut(int fd, size_t most, size_t kept);

#endif
