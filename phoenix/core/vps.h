/* vps.h - the inside of a set of virtual nodes: disjoint half-open ranges, ascending, that never
 * touch. */
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

/* Appends [lo, hi), which must not begin before the last range does; merges ranges that touch.
 * False: out of memory. */
bool vps_append(struct ph_vps *s, ph_vp_t lo, ph_vp_t hi);

#endif
