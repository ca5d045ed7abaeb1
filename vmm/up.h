/* up.h - `vmp up`: a machine in the background. */
#ifndef VMM_UP_H
#define VMM_UP_H

#include "vmm/options.h"

/* Returns the exit status when userland is there, or after one line on standard error. */
int up_machine(const struct options *o);

#endif
