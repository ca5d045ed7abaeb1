/* detect.h - the failure detector. */
#ifndef PHOENIX_DETECT_H
#define PHOENIX_DETECT_H

#include "phoenix/core/bytes.h"
#include "phoenix/core/core.h"

/* P2P-MPI's double binary round-robin, and its binary one */
enum detect_protocol { DETECT_DBRR, DETECT_BRR };

/* 0: no node is ever declared gone */
void detect_set_timeout(struct phnx *ph, uint64_t timeout_us);
/* the timeout is detect_cleanup() of as many nodes as the session has at each time, and at least
 * CLEANUP_LEAST (phoenix/core/bounds.h) */
void detect_by_size(struct phnx *ph);
int detect_on_gossip(struct phnx *ph, struct reader *r);	/* FRAME_GOSSIP; -1: malformed */
/* For measurements: BRR instead of DBRR, and another least timeout than CLEANUP_LEAST for
 * detect_by_size().  All nodes of a session must gossip alike. */
void detect_set_protocol(struct phnx *ph, enum detect_protocol p, uint64_t least_us);
/* The node to gossip to in round r (0-based) as the s-th of n: P2P-MPI's equations 4 and 5. */
unsigned detect_target(enum detect_protocol p, unsigned s, unsigned n, unsigned r);
/* a cycle; after so many rounds all n nodes know a heartbeat, if their cycles are in step */
unsigned detect_rounds(enum detect_protocol p, unsigned n);
/* the paper's cleanup time: no heartbeat of a node that lives is older, in step or not */
uint64_t detect_cleanup(enum detect_protocol p, unsigned n, uint64_t interval_us);

int detect_init(struct phnx *ph);		/* -1: out of memory */
/* For how many us nothing has come over the link to a node, or without a link, been heard of it;
 * -1: there is no such node. */
int64_t detect_silence(struct phnx *ph, ph_vp_t name);
void detect_free(struct phnx *ph);
void detect_tick(struct phnx *ph, uint64_t now, uint64_t *next);

#endif
