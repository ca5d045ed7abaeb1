/* mapping.c - changes which virtual nodes this node assumes, and tells routing/ and the queues. */
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"

int mapping_become(struct phnx *ph, ph_vps_t vps)
{
	if (!vps)
		return PH_ENOMEM;
	if (vps->n > MAX_RANGES) {
		ph_vps_destroy(vps);
		return PH_ETOOBIG;
	}
	free(ph->me.vps.r);
	ph->me.vps = *vps;
	free(vps);
	ph->me.stamp = route_next_stamp(ph);
	route_self_changed(ph);
	ph->pump = true;
	return 0;
}

static bool in_bounds(struct phnx *ph, const struct ph_vps *vps)
{
	return vps->n == 0 || (vps->r[0].lo >= ph->lower && vps->r[vps->n - 1].hi <= ph->upper);
}

int mapping_assume(struct phnx *ph, const struct ph_vps *vps)
{
	if (!in_bounds(ph, vps))
		return PH_EBOUND;
	return mapping_become(ph, ph_vps_create_union(&ph->me.vps, (ph_vps_t)vps));
}

int mapping_release(struct phnx *ph, const struct ph_vps *vps)
{
	if (!in_bounds(ph, vps))
		return PH_EBOUND;
	int error = mapping_become(ph, ph_vps_create_diff(&ph->me.vps, (ph_vps_t)vps));
	if (!error)
		flow_release(ph);
	return error;
}
