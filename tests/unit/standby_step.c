/* standby_step.c - an owner's next step with its standby (vmm/cli/run/standby_step.c): the way to
 * each step, and what holds for all combinations of facts.
 */
#include "tests/unit/unit.h"
#include "vmm/cli/run/standby_step.h"

/* A standby that has everything, while nobody wants host 0 to leave. */
static const struct standby_facts calm = {
	.is_wanted = true, .is_idle = true, .is_there = true, .has_orders = true, .has_copy = true,
};

/* One fact after the other, as host 0 leaves. */
static void host_0_leaves(void)
{
	struct standby_facts f = calm;

	CU_ASSERT_EQUAL(standby_step(&f), STEP_NONE);
	f.leaves = true;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_PREPARE);
	f.is_idle = false;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_NONE);
	f.is_idle = f.is_prepared = true;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_LAST);
	f.stops = true;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_NONE);
	f.stands = true; /* with a checkpoint that the standby does not have */
	f.has_copy = false;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_COPY);
	f.has_copy = true;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_GO);
}

/* Host 0 stays: the standby leaves the hosts that it has prepared, before anything else. */
static void host_0_stays(void)
{
	struct standby_facts f = calm;

	f.is_prepared = true;
	f.has_orders = f.has_copy = false;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_RELEASE);
}

static void checkpoints(void)
{
	struct standby_facts f = calm;

	f.has_copy = false;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_COPY);
	f.replaces = true;
	CU_ASSERT_EQUAL(standby_step(&f), STEP_NONE);
	f.has_orders = false; /* they come first: a copy without them is of no use */
	CU_ASSERT_EQUAL(standby_step(&f), STEP_ORDER);
}

/* Whether this step may be taken. */
static bool is_right(const struct standby_facts *f, enum standby_step step)
{
	bool may_act = f->is_wanted && f->is_idle && f->is_there;
	bool has_all = f->has_orders && f->has_copy;

	switch (step) {
	case STEP_NONE: return f->is_wanted;
	case STEP_END: return !f->is_wanted;
	case STEP_ORDER: return may_act && !f->has_orders;
	case STEP_COPY: return may_act && f->has_orders && !f->has_copy && !f->replaces;
	case STEP_PREPARE: return may_act && has_all && f->leaves && !f->is_prepared;
	case STEP_RELEASE: return may_act && !f->leaves && f->is_prepared;
	case STEP_LAST:
		return may_act && has_all && f->leaves && !f->stands && f->is_prepared && !f->stops;
	case STEP_GO: return may_act && has_all && f->leaves && f->stands && f->is_prepared;
	}
	return false;
}

#define Y(fact) (fact)
#define N(fact) !(fact)
#define X(fact) true

/* How many rows of the table hold. */
static unsigned rows_that_hold(const struct standby_facts *f)
{
	unsigned n = 0;

#define STEP(step, wanted, idle, there, leaving, stand, prepared, orders, copy, replace, stop) \
	n += wanted(f->is_wanted) && idle(f->is_idle) && there(f->is_there) && \
	     leaving(f->leaves) && stand(f->stands) && prepared(f->is_prepared) && \
	     orders(f->has_orders) && copy(f->has_copy) && replace(f->replaces) && \
	     stop(f->stops);
#include "vmm/cli/run/standby_step.def"
	return n;
}

static void all_combinations(void)
{
	for (unsigned n = 0; n < 1024; n++) {
		struct standby_facts f = {
			n & 1,	n & 2,	n & 4,	 n & 8,	  n & 16,
			n & 32, n & 64, n & 128, n & 256, n & 512,
		};
		enum standby_step step = standby_step(&f);

		CU_ASSERT(is_right(&f, step));
		CU_ASSERT_EQUAL(rows_that_hold(&f), step != STEP_NONE);
	}
}

/* The owner waits only for what is under way, or when nothing is to be done. */
static void never_idle_in_vain(void)
{
	for (unsigned n = 0; n < 1024; n++) {
		struct standby_facts f = {
			n & 1,	n & 2,	n & 4,	 n & 8,	  n & 16,
			n & 32, n & 64, n & 128, n & 256, n & 512,
		};
		bool waits = !f.is_idle || !f.is_there || (!f.has_copy && f.replaces) || f.stops;
		bool is_done = !f.leaves && !f.is_prepared && f.has_orders && f.has_copy;

		if (f.is_wanted && !waits && !is_done)
			CU_ASSERT_NOT_EQUAL(standby_step(&f), STEP_NONE);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "host 0 leaves", host_0_leaves },
		{ "host 0 stays", host_0_stays },
		{ "checkpoints", checkpoints },
		{ "all combinations", all_combinations },
		{ "never idle in vain", never_idle_in_vain },
		UNIT_END
	};

	return UNIT_RUN("standby step", tests);
}
