/* schedule.c - see schedule.h. */
#include "base/schedule.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROMPT_SLICE_NS = 100000, NICE_BEHIND = 5 };

void schedule_promptly(void)
{
	struct sched_attr attributes = { .size = sizeof attributes, .sched_policy = SCHED_NORMAL,
					 .sched_nice = getpriority(PRIO_PROCESS, 0), .sched_runtime = PROMPT_SLICE_NS };

	syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void schedule_behind(void)
{
	struct sched_attr attributes = { .size = sizeof attributes, .sched_policy = SCHED_NORMAL, .sched_nice = NICE_BEHIND };

	syscall(SYS_sched_setattr, 0, &attributes, 0);
	setpriority(PRIO_PROCESS, 0, NICE_BEHIND);
}
