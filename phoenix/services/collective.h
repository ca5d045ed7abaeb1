/* collective.h - multicast and reduction over a range of virtual nodes. */
#ifndef PHOENIX_COLLECTIVE_H
#define PHOENIX_COLLECTIVE_H

#include "phoenix/core/core.h"

/* Sends to every node that assumes a part of [lo, hi).  Returns 0, or PH_EAGAIN: a queue is
 * full. */
int collective_multicast(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int tag, const void *body,
			 size_t len);

struct reduction;			/* a call that waits */
/* Begins a call of a reduction.  NULL: this node assumes nothing of [lo, hi), or memory is
 * short. */
struct reduction *reduce_begin(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, int id, size_t len);
/* Goes on with it.  value: this node's at first; combine() may fold others into it.  Returns 0
 * (value is the result), PH_EAGAIN (not yet) or an error.  After anything but PH_EAGAIN r is
 * freed. */
int reduce_poll(struct phnx *ph, struct reduction *r, void *value, size_t len,
		ph_combine_fn combine);
void reduce_end(struct phnx *ph, struct reduction *r);	/* the call gives up; frees r */

#endif
