/* quorum.c - see quorum.h. */
#include "vmm/cli/run/quorum.h"

#include "vmm/cli/run/quorum.def"

bool quorum_owner(bool doubt, uint32_t votes, bool held, uint32_t all, bool agreed)
{
	return !QUORUM_COUNTS(doubt, held) ||
	       (agreed ? QUORUM_OWNER(votes, held, all) : QUORUM_STANDBY(votes, held, all));
}

bool quorum_standby(uint32_t votes, bool held, uint32_t all)
{
	return QUORUM_STANDBY(votes, held, all);
}
