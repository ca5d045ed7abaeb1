/* bootparams.h - what a boot loader passes to Linux (Documentation/x86/boot.rst, 32-bit protocol).
 * Pure. */
#ifndef VMM_NODE_LOAD_BOOTPARAMS_H
#define VMM_NODE_LOAD_BOOTPARAMS_H

#include "base/guest_abi.h"
#include "base/limits.h"
#include "base/types.h"

enum {
	BOOTPARAMS_SEED_GPA = VMP_CMDLINE_GPA + MAX_CMDLINE, /* in the command line's page */
	BOOTPARAMS_SEED_BYTES = 32,
	BOOTPARAMS_SEED_AREA_BYTES = 16 + BOOTPARAMS_SEED_BYTES,
};

/* Fills the page at VMP_BOOT_PARAMS_GPA. The command line is at VMP_CMDLINE_GPA, the seed at
 * BOOTPARAMS_SEED_GPA. initrd_bytes 0: there is no initrd. */
void bootparams_build(void *page, uint32_t ram_pages, gpa_t initrd, uint32_t initrd_bytes);

/* Fills the area at BOOTPARAMS_SEED_GPA, BOOTPARAMS_SEED_AREA_BYTES long, with a seed for the
 * kernel's random numbers. Without one, the first program that calls getrandom() waits for 256
 * ticks of the timer. The kernel overwrites the seed with zeros. */
void bootparams_seed(void *area, const uint8_t seed[BOOTPARAMS_SEED_BYTES]);

#endif
