/* schedule.h - daemons and monitors outrank VM processes: what waits for a page waits for them. */
#ifndef BASE_SCHEDULE_H
#define BASE_SCHEDULE_H

/* This process runs rarely and shortly, and should run at once when it is woken. Asks the host's scheduler for a slice of
 * 0.1 ms (Linux 6.12 and newer; older ones ignore it). Needs no privilege and never fails. */
void schedule_promptly(void);

/* The opposite, for a process that computes: by so much nicer than now. Inherited by exec. Where others wait for this host's
 * daemon it must go far behind: a guest that spins on a page would otherwise keep the processor from those who bring it. */
enum { NICE_BEHIND = 5, NICE_FAR_BEHIND = 15 };
void schedule_behind(int nicer);

#endif
