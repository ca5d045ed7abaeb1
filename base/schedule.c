/* schedule.c - see schedule.h. */
#include "base/schedule.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROMPT_SLICE_NS = 100000, NICE_MOST = 19 };

/* (TRICKS: short-slices) */
void schedule_promptly(void)
{
	struct sched_attr attributes = { .size = sizeof attributes,
					 .sched_policy = SCHED_NORMAL,
					 .sched_nice = getpriority(PRIO_PROCESS, 0),
					 .sched_runtime = PROMPT_SLICE_NS };

	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* A slice of 0 selects the host's default.  It replaces the short slice that is inherited from the
 * process that started this one. (TRICKS: guests-behind) */
void schedule_behind(int nicer)
{
	struct sched_attr attributes = { .size = sizeof attributes, .sched_policy = SCHED_NORMAL,
					 .sched_nice = getpriority(PRIO_PROCESS, 0) + nicer };

	if (attributes.sched_nice > NICE_MOST)
		attributes.sched_nice = NICE_MOST;
	if (syscall(SYS_sched_setattr, 0, &attributes, 0))
		setpriority(PRIO_PROCESS, 0, attributes.sched_nice);
}
