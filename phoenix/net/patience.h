/* patience.h - how much of its time a node spends on peers that have not proved themselves.
 *
 * Anybody can connect to a node that listens on the network, and each handshake costs it a tenth of
 * a millisecond or more.  So that time is counted.  A peer that proves itself gets its time back.
 * When strangers have used up a burst, the node accepts nobody until time has passed: they get no
 * more than a share of it.  Links that are up are not touched.
 *
 * Times are in microseconds.  Costs are processor time: other programs' load is no stranger's.
 */
#ifndef PHOENIX_PATIENCE_H
#define PHOENIX_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { PATIENCE_BURST_US = 250000, PATIENCE_SHARE = 10 };	/* share: one in so many */

/* All zeros at first. */
struct patience {
	uint64_t owed_us;	/* the time that strangers have had, less their share since */
	uint64_t at_us;		/* when that was so */
};

/* A stranger has cost this time. */
void patience_spend(struct patience *p, uint64_t now, uint64_t cost_us);
/* It has proved itself, and was no stranger. */
void patience_give_back(struct patience *p, uint64_t cost_us);
/* Returns when strangers may be accepted: 0 if they may now. */
uint64_t patience_until(struct patience *p, uint64_t now);

#endif
