/* up.h - `vmp up`: a machine in the background. */
#ifndef VMM_CLI_RUN_UP_H
#define VMM_CLI_RUN_UP_H

#include "vmm/cli/options.h"

/* Returns the exit status when userland is there, or after one line on standard error. */
int up_machine(const struct options *o);

#endif
