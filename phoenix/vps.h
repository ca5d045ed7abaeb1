/* vps.h - the inside of a virtual-node set: disjoint half-open ranges in ascending order, never touching. */
#ifndef PHOENIX_VPS_H
#define PHOENIX_VPS_H

#include <stdbool.h>
#include <stdint.h>
#include "phnx/phnx.h"

struct vrange {
	ph_vp_t lo, hi;
};
struct ph_vps {
	size_t n, room;
	struct vrange *r;
};

/* Appends [lo, hi), which must not begin before the last range does; merges what touches. False: out of memory. */
bool vps_append(struct ph_vps *s, ph_vp_t lo, ph_vp_t hi);
uint64_t phnx_random64(void);
void phnx_random_bytes(void *buf, size_t n);	/* n: 256 at most */

#endif
