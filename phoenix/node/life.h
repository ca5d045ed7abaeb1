/* life.h - a whole node: start, input, timers, end. */
#ifndef PHOENIX_LIFE_H
#define PHOENIX_LIFE_H

#include "phoenix/core/core.h"

/* NULL: out of memory */
struct phnx *node_new(const struct phnx_ops *ops, void *ctx, ph_vp_t lower, ph_vp_t upper);
void node_free(struct phnx *ph);
/* Acts on all input that was given.  Returns when to call again at the latest. */
uint64_t node_poll(struct phnx *ph);
uint64_t node_tick(struct phnx *ph);		/* the same, and looks at every timer */
/* node_poll() may wait until the application has answered a message */
bool node_can_wait(struct phnx *ph);
/* Returns whether input may lead to a call of the application's functions. */
bool node_calls_back(const struct phnx *ph);
void node_goodbye(struct phnx *ph);	/* tells all other nodes that this one is gone for good */

#endif
