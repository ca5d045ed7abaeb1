/* run.h - `vmp run`: checks, prepares, starts the daemons, carries the streams, ends everything. */
#ifndef VMM_CLI_RUN_RUN_H
#define VMM_CLI_RUN_RUN_H

#include "vmm/cli/options.h"

/* `vmp snapshot load`: the same for a saved machine, which goes on. */
int run_saved(const struct options *o);

#endif
