/* schedule.h - gives daemons and monitors priority over VM processes, since a CPU that waits for a
 * page waits for them. */
#ifndef BASE_SCHEDULE_H
#define BASE_SCHEDULE_H

/* Request a slice of 0.1 ms from the host's scheduler (Linux 6.12 and newer; older ones ignore it):
 * this process runs seldom and briefly, and should run at once when it is woken.  Needs no
 * privilege and never fails. */
void schedule_promptly(void);

/* Lower the priority of a process that computes, by `nicer` nice levels; inherited by exec.  If
 * other hosts wait for this host's daemon, use NICE_FAR_BEHIND: a guest that spins on a page would
 * otherwise keep the processor from the processes that fetch it.  NICE_APART stands between a guest
 * program's process and its kernel process (vmproc/user.h). */
enum { NICE_BEHIND = 5, NICE_FAR_BEHIND = 15, NICE_APART = 3 };
void schedule_behind(int nicer);

#endif
