/* layout.h - where RAM is among guest-physical addresses, and where the guest kernel maps it: what
 * depends on how much RAM a machine has.
 *
 * RAM begins at 0.  More than 3840 MiB of it continue at 4 GiB: the devices are between.  A machine
 * of more than 3 GiB has another kernel, with PAE (guest-patches/pae).
 *
 * A frame's number is its place in the RAM file and in all tables.  They are `ram_pages` long, one
 * more than the highest frame: they have places for the frames of the hole, too, which nobody has a
 * right to.  Every frame that a guest or another process names passes ram_has().
 */
#ifndef BASE_LAYOUT_H
#define BASE_LAYOUT_H

#include "base/guest_abi.h"
#include "base/types.h"

enum {
	RAM_HOLE_GFN = 15 << (28 - PAGE_BITS), RAM_HOLE_END_GFN = 16 << (28 - PAGE_BITS),
	RAM_MOST_WITHOUT_PAE_GFN = 12 << (28 - PAGE_BITS),
};

/* The frames from 0 to the end of so much RAM. */
static inline uint32_t ram_pages_of(uint32_t mib)
{
	uint32_t pages = mib << (20 - PAGE_BITS);

	return pages <= RAM_HOLE_GFN ? pages : pages + (RAM_HOLE_END_GFN - RAM_HOLE_GFN);
}

static inline bool ram_has(uint32_t ram_pages, gfn_t gfn)
{
	return gfn < ram_pages && (gfn < RAM_HOLE_GFN || gfn >= RAM_HOLE_END_GFN);
}

/* True if the guest needs PAE to reach all its RAM. */
static inline bool ram_needs_pae(uint32_t ram_pages)
{
	return ram_pages > RAM_MOST_WITHOUT_PAE_GFN;
}

/* Where RAM ends below 4 GiB. */
static inline uint64_t ram_below_hole(uint32_t ram_pages)
{
	return (uint64_t)(ram_pages > RAM_HOLE_GFN ? RAM_HOLE_GFN : ram_pages) << PAGE_BITS;
}

/* The guest kernel maps all RAM below this at least: VMP_LOW_RAM, and 768 MiB with PAE. */
static inline uint32_t ram_low_limit(uint32_t ram_pages)
{
	return ram_needs_pae(ram_pages) ? 0x30000000 : VMP_LOW_RAM;
}

/* The linear address at which the guest kernel maps RAM: its PAGE_OFFSET. */
static inline gva_t kernel_base(uint32_t ram_pages)
{
	return ram_needs_pae(ram_pages) ? 0xc0000000 : VMP_USER_LIMIT;
}

#endif
