/* save.h - `vmp snapshot save`. */
#ifndef VMM_CLI_SNAPSHOT_SAVE_H
#define VMM_CLI_SNAPSHOT_SAVE_H

#include "vmm/cli/options.h"

/* Saves a running machine, which goes on, and prints a line.  Returns the exit status. */
int save_machine(const struct options *o);

#endif
