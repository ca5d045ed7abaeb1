/* run.h - `vmp run`: check, prepare, start the daemons, carry the streams, end everything. */
#ifndef VMM_CLI_RUN_RUN_H
#define VMM_CLI_RUN_RUN_H

#include "vmm/cli/options.h"

/* Also the keeper of `vmp up` (o->verb). Returns the exit status: the command's, or 125 after one line on standard error. */
int run_machine(const struct options *o);

/* `vmp snapshot load`: the same for a machine that goes on from where it was saved. */
int run_saved(const struct options *o);

/* `vmp standby`: for a machine that another process owns, until that one is lost, or hands it over. */
int run_standby(const struct options *o);

#endif
