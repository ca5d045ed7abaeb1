/* part_holder.h - `vmp hold`, a holder: started by vmp itself, by ssh or on its own computer, it
 * holds a part of the machine's last checkpoint in its memory (parts.h). */
#ifndef VMM_CLI_PARTS_PART_HOLDER_H
#define VMM_CLI_PARTS_PART_HOLDER_H

#include "vmm/cli/options.h"

/* Serves the owner on standard input and output, until that ends. */
int hold_command(const struct options *o);

#endif
