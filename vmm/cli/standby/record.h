/* record.h - what a machine's owner says to its standby: records as a snapshot's file has them (snapfile.h), and these between them.
 *
 * Whoever reads them has checked each one's size, and nothing else; back come lines of text (sender.h).
 */
#ifndef VMM_CLI_STANDBY_RECORD_H
#define VMM_CLI_STANDBY_RECORD_H

#include "base/limits.h"
#include "vmm/cli/snapshot/snapfile.h"

enum standby_record {
	STANDBY_ORDERS = 0x100, /* data: orders.h, in pieces; index: 1 with the last; anew whenever they change */
	STANDBY_BEGIN,		/* a checkpoint's records follow; index: 1 if they are changes to the one before */
	STANDBY_COMMIT,		/* it stands; index: milliseconds since its cut */
	STANDBY_ALIVE,
	STANDBY_PREPARE,	/* get the other hosts ready: they shall be yours */
	STANDBY_RELEASE,	/* they shall not */
	STANDBY_GO,		/* go on with the machine: nothing is left of it here */
	STANDBY_END,		/* it has ended, or another one stands by */
};

/* A stream's bytes, cut into records. */
struct record_reader {
	void *context;
	/* False: read no more. */
	bool (*on_record)(void *context, const struct snapfile_record *record, const void *data);
	size_t n;
	_Alignas(8) uint8_t bytes[sizeof(struct snapfile_record) + MAX_MSG_PAYLOAD];
};

/* 0, or -EPROTO: what came is no record. */
int record_read(struct record_reader *r, const void *bytes, size_t n);

#endif
