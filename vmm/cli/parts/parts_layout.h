/* parts_layout.h - which holders have a page or block of a checkpoint in parts: two of them, so
 * that any one can be lost; the only one, if there is one.  Pure.
 *
 * The holders of a layout are numbered from 0.  LAYOUT_RUN consecutive pages lie together, since
 * pages are loaded in runs.
 */
#ifndef VMM_CLI_PARTS_PARTS_LAYOUT_H
#define VMM_CLI_PARTS_PARTS_LAYOUT_H

#include "vmm/cli/snapshot/snapfile.h"

enum { LAYOUT_RUN = 64, LAYOUT_NOBODY = ~0u };

/* Returns the first of the two; the second one has the next number, after the last comes 0. */
unsigned layout_first(uint32_t holders, const struct snapfile_record *record);
/* Returns whether this holder is one of the two. */
bool layout_has(uint32_t holders, unsigned holder, const struct snapfile_record *record);
/* Returns who gives a record when the machine is loaded: the first of its holders that is in the
 * bit set `alive`; LAYOUT_NOBODY if none is. */
unsigned layout_giver(uint32_t holders, uint32_t alive, const struct snapfile_record *record);
/* Returns whether each record has a holder in the bit set `alive`; if not, `lost` is the first of
 * two neighbours that are not in it. */
bool layout_is_whole(uint32_t holders, uint32_t alive, unsigned *lost);

#endif
