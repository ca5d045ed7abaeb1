/* checks.h - what must hold before a boot; each failure is one line that says what to do. */
#ifndef VMM_CLI_RUN_CHECKS_H
#define VMM_CLI_RUN_CHECKS_H

#include "vmm/cli/options.h"
#include "vmm/shared/problem.h"

struct host_files { char kernel[4096], image[4096]; };

/* All checks, cheapest first; fills in which files to boot from. 0, or -1 with the problem. */
int checks_before_boot(const struct options *o, struct host_files *files, struct problem *p);

/* The same for a machine that is loaded from a snapshot. */
int checks_before_load(const struct options *o, struct problem *p);

/* The pieces, for the tests. */
int check_checksum(const char *file, struct problem *p); /* against SHA256SUMS in its folder */
int check_disk(const char *spec, struct problem *p);

#endif
