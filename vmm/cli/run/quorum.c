/* quorum.c - see quorum.h. */
#include "vmm/cli/run/quorum.h"

#include "vmm/cli/run/quorum.def"

bool quorum_owner(uint32_t reached, uint32_t all, bool agreed)
{
	return agreed ? QUORUM_OWNER(reached, all) : QUORUM_STANDBY(reached, all);
}

bool quorum_standby(uint32_t reached, uint32_t all) { return QUORUM_STANDBY(reached, all); }
