/* save.h - `vmp snapshot save`. */
#ifndef VMM_SAVE_H
#define VMM_SAVE_H

#include "vmm/options.h"

/* Saves a running machine, which goes on; returns the exit status, having printed a line. */
int save_machine(const struct options *o);

#endif
