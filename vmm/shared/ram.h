/* ram.h - the guest's memory while a machine is loaded: which host has which pages at the start
 * (load.h, restore.h), and the link in the run folder by which a loading process on the same
 * computer reaches a host's memory.
 */
#ifndef VMM_SHARED_RAM_H
#define VMM_SHARED_RAM_H

#include "base/limits.h"
#include "base/types.h"

#define RAM_LINK_FORMAT "%s/ram-%u" /* the run folder, the host's number */

/* Pages are dealt to the hosts in stripes of this many, in turn. */
static inline uint32_t ram_stripe(uint32_t ram_pages)
{
	return (ram_pages + MAX_PRELOADED - 1) / MAX_PRELOADED;
}
static inline unsigned ram_host_of(gfn_t gfn, uint32_t ram_pages, unsigned hosts)
{
	return gfn / ram_stripe(ram_pages) % hosts;
}

#endif
