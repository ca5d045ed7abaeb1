/* record.h - what a machine's owner sends to its standby: records as in a snapshot's file
 * (snapfile.h), and those below between them.
 *
 * The reader here has checked each record's size, and nothing else.  The standby's answers are
 * lines of text (sender.h).
 */
#ifndef VMM_CLI_STANDBY_RECORD_H
#define VMM_CLI_STANDBY_RECORD_H

#include "base/limits.h"
#include "vmm/cli/snapshot/snapfile.h"

enum standby_record {
	/* data: orders.h, in pieces; index: 1 with the last; sent again after each change */
	STANDBY_ORDERS = 0x100,
	/* a checkpoint's records follow; index: 1 if they are changes to the one before */
	STANDBY_BEGIN,
	STANDBY_COMMIT,		/* the checkpoint is complete; index: milliseconds since its cut */
	STANDBY_ALIVE,		/* index: the owner's clock in ms; the answer is "alive INDEX" */
	STANDBY_PREPARE,	/* prepare the other hosts to be yours */
	STANDBY_RELEASE,	/* release them again */
	STANDBY_GO,		/* take over the machine: nothing of it is left here */
	STANDBY_END,		/* the machine has ended, or has another standby now */
	/* of the checkpoint that comes: where its pages are; index and data: parts_print() */
	STANDBY_PARTS,
};

/* Cuts a stream's bytes into records. */
struct record_reader {
	void *context;
	/* Takes a record.  Returns false to read no more. */
	bool (*on_record)(void *context, const struct snapfile_record *record, const void *data);
	size_t n;
	_Alignas(8) uint8_t bytes[sizeof(struct snapfile_record) + MAX_MSG_PAYLOAD];
};

/* Takes bytes.  Returns 0, or -EPROTO if they are no record. */
int record_read(struct record_reader *r, const void *bytes, size_t n);

#endif
