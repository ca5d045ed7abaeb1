/* holder_record.h - what a machine's owner and the holders of its checkpoint's parts
 * (part_holder.c) say to each other: records as in a snapshot's file (snapfile.h) for pages and
 * blocks, and those below.
 *
 * A checkpoint has a number, which grows.  The owner tells all holders to commit when each has said
 * SEALED.  Until then a holder has the checkpoint before, too; so there is always one that all
 * have.
 */
#ifndef VMM_CLI_PARTS_HOLDER_RECORD_H
#define VMM_CLI_PARTS_HOLDER_RECORD_H

#include "vmm/cli/snapshot/snapfile.h"

enum hold_record {
	/* To a holder.  `index` is a checkpoint's number, unless stated otherwise. */
	/* index: the MiB that it may have to hold; data: an uint32_t, its place among the holders;
	 * the answer is READY */
	HOLD_HELLO = 0x200,
	HOLD_BEGIN,	    /* data: an uint32_t, not 0 if changes to the one before follow */
	HOLD_SEAL,	    /* all has come; the answer is SEALED */
	HOLD_COMMIT,	    /* it replaces the one before */
	HOLD_ABANDON,
	HOLD_GIVE,	    /* data: struct hold_give; the answer is that part, then GIVEN */
	/* From a holder.  `index` as in what is answered. */
	HOLD_READY,
	HOLD_SEALED,
	HOLD_GIVEN,
	HOLD_CANNOT,	    /* data: why, as text */
};

/* Give those records for which layout_giver() names you. */
struct hold_give { uint32_t holders, alive, you; };

#endif
