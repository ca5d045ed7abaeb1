/* ram.h - the guest's memory on the hosts, as far as a machine that is loaded is concerned: which host has which pages at the start
 * (load.h, restore.h), and how its memory is reached by who loads it on the same computer: by a link in the run folder.
 */
#ifndef VMM_SHARED_RAM_H
#define VMM_SHARED_RAM_H

#include "base/limits.h"
#include "base/types.h"

#define RAM_LINK_FORMAT "%s/ram-%u" /* of the run folder, and the host's number */

/* Pages are dealt in stripes of this many, one host after the other. */
static inline uint32_t ram_stripe(uint32_t ram_pages) { return (ram_pages + MAX_PRELOADED - 1) / MAX_PRELOADED; }
static inline unsigned ram_host_of(gfn_t gfn, uint32_t ram_pages, unsigned hosts) { return gfn / ram_stripe(ram_pages) % hosts; }

#endif
