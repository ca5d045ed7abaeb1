/* bootparams.h - what a boot loader passes to Linux (Documentation/x86/boot.rst, 32-bit protocol).
 * Pure. */
#ifndef VMM_NODE_LOAD_BOOTPARAMS_H
#define VMM_NODE_LOAD_BOOTPARAMS_H

#include "base/types.h"

/* Fills the page at VMP_BOOT_PARAMS_GPA. The command line is at VMP_CMDLINE_GPA. initrd_bytes 0:
 * there is no initrd. */
void bootparams_build(void *page, uint32_t ram_pages, gpa_t initrd, uint32_t initrd_bytes);

#endif
