/* faultpoint.h - deliberate faults, compiled in, named, off by default.  They prove that a test can
 * fail.
 *
 * A process that wants them calls fault_open() once; the environment then decides:
 * VMP_FAULT=name[:n][,name[:n]...].  A test in the same process uses fault_set().  Asking costs one
 * load and a branch that is never taken.
 */
#ifndef BASE_FAULTPOINT_H
#define BASE_FAULTPOINT_H

#include <stdint.h>

enum fault_point {
#define X(name, text, what) FAULT_##name,
#include "base/faultpoint.def"
#undef X
	FAULT_POINT_COUNT
};

extern const char *const fault_names[FAULT_POINT_COUNT];
/* 0: off; else the n of VMP_FAULT, 1 if none was given */
extern uint32_t fault_value[FAULT_POINT_COUNT];

static inline uint32_t fault_on(enum fault_point point)
{
	return __builtin_expect(fault_value[point], 0);
}

/* Called when the process is to die.  A test that simulates several processes in one sets its own
 * function, which does not return. */
extern void (*fault_death)(void);

/* Die by SIGKILL if the point is on with n = `step`. */
static inline void fault_die_at(enum fault_point point, uint32_t step)
{
	if (fault_on(point) == step)
		fault_death();
}

/* Switch a fault point on (n != 0) or off (0). */
void fault_set(enum fault_point point, uint32_t n);

/* Read one "name[:n]" list. 0, or -EINVAL and nothing changed when a name is unknown or n is not a
 * number above 0. */
int fault_parse(const char *list);

/* Read VMP_FAULT; die on a list that does not parse, since a test with a misspelt fault would test
 * nothing. */
void fault_open(void);

#endif
