/* bootparams.h - what a boot loader tells Linux (Documentation/x86/boot.rst, 32-bit protocol): pure. */
#ifndef VMM_NODE_LOAD_BOOTPARAMS_H
#define VMM_NODE_LOAD_BOOTPARAMS_H

#include "base/types.h"

/* Fill the page at VMP_BOOT_PARAMS_GPA; the command line stands at VMP_CMDLINE_GPA. initrd_bytes 0: none. */
void bootparams_build(void *page, uint32_t ram_bytes, gpa_t initrd, uint32_t initrd_bytes);

#endif
