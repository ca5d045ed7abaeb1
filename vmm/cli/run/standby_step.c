/* standby_step.c - see standby_step.h. */
#include "vmm/cli/run/standby_step.h"

#define Y(fact) (fact)
#define N(fact) !(fact)
#define X(fact) true

enum standby_step standby_step(const struct standby_facts *f)
{
#define STEP(step, wanted, idle, there, leave, stand, prepared, orders, copy, replace, stop) \
	if (wanted(f->is_wanted) && idle(f->is_idle) && there(f->is_there) && \
	    leave(f->leaves) && stand(f->stands) && prepared(f->is_prepared) && \
	    orders(f->has_orders) && copy(f->has_copy) && replace(f->replaces) && stop(f->stops)) \
		return STEP_##step;
#include "vmm/cli/run/standby_step.def"
	return STEP_NONE;
}
