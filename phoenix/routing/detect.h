/* detect.h - the failure detector. */
#ifndef PHOENIX_DETECT_H
#define PHOENIX_DETECT_H

#include "phoenix/core/bytes.h"
#include "phoenix/core/core.h"

/* 0: no node is ever declared gone */
void detect_set_timeout(struct phnx *ph, uint64_t timeout_us);
/* the timeout is detect_timeout() of the session's nodes, as many as there are at each time */
void detect_by_size(struct phnx *ph);
int detect_on_gossip(struct phnx *ph, struct reader *r);	/* FRAME_GOSSIP; -1: malformed */
/* The node to gossip to in round r (0-based) as the s-th of n: P2P-MPI's double binary
 * round-robin, equation 5. */
unsigned detect_target(unsigned s, unsigned n, unsigned r);
uint64_t detect_timeout(unsigned n, uint64_t interval_us);
unsigned detect_rounds(unsigned n);	/* after so many rounds all n nodes know a heartbeat */

int detect_init(struct phnx *ph);		/* -1: out of memory */
void detect_free(struct phnx *ph);
void detect_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
