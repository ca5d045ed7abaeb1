/* holder_record.h - what a machine's owner and the holders of its checkpoint's parts
 * (part_holder.c) say to each other: records as in a snapshot's file (snapfile.h) for pages and
 * blocks, and those below.
 *
 * A checkpoint has a number, which no other one of the machine has, whoever owns it.  When a holder
 * has said SEALED, it has that checkpoint and the one before, until COMMIT or BEGIN; so there is
 * always one that all have.
 */
#ifndef VMM_CLI_PARTS_HOLDER_RECORD_H
#define VMM_CLI_PARTS_HOLDER_RECORD_H

#include "vmm/cli/snapshot/snapfile.h"
#include "vmm/shared/presence.h"

enum hold_record {
	/* To a holder.  `index` is a checkpoint's number, unless stated otherwise. */
	HOLD_HELLO = 0x200, /* first; data: struct hold_hello; the answer is READY */
	HOLD_BEGIN,	    /* data: an uint32_t, not 0 if changes to the one before follow */
	HOLD_SEAL,	    /* all has come; the answer is SEALED */
	HOLD_COMMIT,	    /* it replaces the one before */
	HOLD_ABANDON,	    /* the one that comes */
	HOLD_GIVE,	    /* data: struct hold_give; the answer is that part, then GIVEN */
	HOLD_END,	    /* the machine has ended: end, too */
	/* From a holder.  `index` as in what is answered. */
	HOLD_READY,	    /* data: struct hold_ready */
	HOLD_SEALED,
	HOLD_GIVEN,
	HOLD_CANNOT,	    /* data: why, as text */
};

struct hold_hello {
	uint32_t mib;	/* it may have to hold so much */
	uint32_t place; /* among the owner's holders */
	/* When the owner's connection ends without END, wait for another owner, who may be a
	 * standby: `vmp hold` of the same name passes its connection on, without this record. */
	uint32_t lingers;
	char name[MAX_PRESENCE]; /* presence_name() of the machine's votes and the host */
};
/* The checkpoints that it has; 0: none. */
struct hold_ready { uint32_t is, sealed; };
/* Give those records for which layout_giver() names you. */
struct hold_give { uint32_t holders, alive, you; };

#endif
