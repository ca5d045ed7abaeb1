/* checks.h - what must hold before a boot; each failure is one line that says what to do. */
#ifndef VMM_CLI_RUN_CHECKS_H
#define VMM_CLI_RUN_CHECKS_H

#include "vmm/cli/options.h"
#include "vmm/shared/problem.h"

struct host_files { char kernel[4096], image[4096]; };

/* Runs all checks, cheapest first, and fills in the files to boot from.  Returns 0, or -1 with the
 * problem. */
int checks_before_boot(const struct options *o, struct host_files *files, struct problem *p);

/* The same for a machine that is loaded from a snapshot. */
int checks_before_load(const struct options *o, struct problem *p);

/* Finds the guest's kernel and image: the given ones, or, if NULL, those that were built or
 * installed, undamaged; which kernel of them, depends on the guest's RAM.  Returns 0, or -1 with
 * the problem. */
int checks_guest(const char *kernel, const char *image, uint32_t mem_mib, struct host_files *files,
		 struct problem *p);

/* Single checks, for the tests. */
/* compares with SHA256SUMS in its folder */
int check_checksum(const char *file, struct problem *p);
int check_disk(const char *spec, struct problem *p);

#endif
