/* spin_sees.c - see spin.h. */
#include "vmm/node/pages/spin.h"

enum { LOOP_BYTES = 64 }; /* most loops that wait are shorter */

bool spin_sees(const struct spin_view *before, const struct spin_view *now)
{
	if (now->count == before->count)
		return false;
	return now->pauses || (now->sum == before->sum &&
			       now->eip - before->eip + LOOP_BYTES <= 2 * LOOP_BYTES);
}
