/* query.h - commands that ask a running machine, or list all: ps, status, top, down, logs, cpu
 * move, console, exec, regs, pages.  Their functions: commands.def. */
#ifndef VMM_CLI_QUERY_QUERY_H
#define VMM_CLI_QUERY_QUERY_H

#include "vmm/cli/options.h"

/* Writes an age as "3d 4h", "2m 5s" or "7s".  Pure. */
const char *machines_print_age(uint64_t seconds, char *text, size_t bytes);

#endif
