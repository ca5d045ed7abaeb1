/* gather.c - see gather.h. */
#include "vmm/cli/run/gather.h"

#define Y(fact) (fact)
#define N(fact) !(fact)
#define X(fact) true

bool gather_decides(const struct gather_facts *f)
{
#define GATHER(taken, undecided, come, silent, enough, late) \
	if (taken(f->is_taken) && undecided(f->is_undecided) && come(f->comes) && \
	    silent(f->silent_comes) && enough(f->is_enough) && late(f->is_late)) \
		return true;
#include "vmm/cli/run/gather.def"
	return false;
}
